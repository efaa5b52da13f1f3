import type { AddressInfo } from 'node:net';
import t from 'tap';
import { buildApi } from '../../../src/api.ts';
import { openDatabase } from '../../../src/core/postgres/database.ts';
import {
  callerOf,
  closeApi,
  eventually,
  log,
  patient_api,
  patient_database,
  services,
  sql,
  startRail,
} from '../../harness.ts';
import { type Statement, startGate } from '../../processes.ts';

const rail = await startRail({ worker: false });
const { key, organization_id } = await rail.organization();
const gate = await startGate(rail.url);
const database = openDatabase(gate.url, { ...patient_database, size: 4, name: 'rail test', log });
const app = await buildApi({ store: { ...rail.store, database }, services, log, limits: patient_api });
await app.listen({ port: 0, host: '127.0.0.1' });
const address = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
t.teardown(async () => {
  gate.cut();
  await closeApi(app);
  await database.end();
});
const merchant = callerOf(address, key, organization_id);
const program = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };

/**
 * Returns the answer to a request whose database stands still at a statement. On a busy machine a request may not come so far within the time for an
 * answer: then another one follows.
 */
async function answeredFrozen<Answer>(ask: () => Promise<Answer>, picks: (statement: Statement) => boolean) {
  let isFrozen = false;
  app.answer_ms = 500;
  const frozen = gate.stopAt('before', picks).then(() => {
    isFrozen = true;
  });
  let answer: Answer;
  do answer = await ask();
  while (!isFrozen);
  await frozen;
  app.answer_ms = patient_api.answer_ms;
  gate.cut();
  return answer;
}

for (const [what, statement] of [
  ['authenticates it', 'core.authenticate'],
  ['opens its transaction', 'core.open_request'],
  ['runs it', 'program.program'],
] as const) {
  t.test(`answers 503 to a request whose database stands still as it ${what}`, async (t) => {
    const create = () => merchant.request('POST', '/v1/programs', program);
    const { status, headers, body } = await answeredFrozen(create, ({ text }) => text.includes(statement));
    t.equal(status, 503);
    t.match(body.error, { code: 'service_unavailable', message: /not answered within 0\.5 seconds/ });
    t.ok(headers['retry-after']);
    t.equal((await create()).status, 201, 'and goes on afterwards');
  });
}

t.test('answers 503 to a probe and to a short link in the same way', async (t) => {
  for (const path of ['/readyz', '/r/no-such-link']) {
    const { status } = await answeredFrozen(
      () => fetch(address + path),
      () => true,
    );
    t.equal(status, 503, path);
  }
});

t.test('a connection that a cancel may still reach has no next holder', async (t) => {
  const cancels = gate.holdCancels();
  const locking = await rail.store.database.connect();
  await locking.query('begin; lock table core.api_key');
  app.answer_ms = 500;
  const refused = merchant.request('GET', '/v1/programs');
  const waiting = sql`select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  let held: { pid: number } | undefined;
  await eventually(async () => {
    [held] = await rail.query<{ pid: number }>(waiting);
    return held !== undefined;
  }, 'the request to wait for the lock');
  t.equal((await refused).status, 503);
  app.answer_ms = patient_api.answer_ms;
  await eventually(() => cancels.count > 1, 'the first cancel to be given up');
  const before = cancels.count;
  await locking.query('commit');
  locking.release();
  const gone = sql`select from pg_stat_activity where pid = ${held?.pid}`;
  await eventually(async () => (await rail.query(gone)).length === 0, 'the connection to be closed');
  t.ok(cancels.count <= before + 1, 'one at a time');
  t.equal((await merchant.request('POST', '/v1/programs', program)).status, 201);
});
