import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import pg from 'pg';
import { pino } from 'pino';
import t from 'tap';
import { request } from 'undici';
import { buildApi } from '../../../src/api.ts';
import { openDatabase } from '../../../src/core/postgres/database.ts';
import {
  callerOf,
  closeApi,
  eventually,
  type Json,
  patient_database,
  services,
  sql,
  startRail,
} from '../../harness.ts';

/** Fewer connections than requests that wait, and long enough for those that need not. */
const size = 8;
const answer_ms = 6_000;

const rail = await startRail({ worker: false });
const { key, organization_id } = await rail.organization();
const logged: Json[] = [];
const log = pino(
  { level: 'info' },
  new Writable({
    write(line: Buffer, _, done) {
      logged.push(JSON.parse(line.toString()));
      done();
    },
  }),
);
const name = 'rail locked';
const database = openDatabase(rail.url, { ...patient_database, size, name });
const app = await buildApi({ store: { ...rail.store, database }, services, log, limits: { answer_ms } });
await app.listen({ port: 0, host: '127.0.0.1' });
t.teardown(async () => {
  await closeApi(app);
  await database.end();
});
const address = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
const merchant = callerOf(address, key, organization_id);
const program = await merchant.post('/v1/programs', {
  name: 'Acme',
  website_url: 'https://acme.example.com',
  currency: 'USD',
});
await merchant.post('/v1/rules', { program_id: program.id, name: 'All', rate_type: 'percent', rate_value: 2000 });
const partner = await merchant.post('/v1/partners', { program_id: program.id, email: 'ada@partner.example.com' });

const saleOf = (charge: string) => ({
  program_id: program.id,
  partner_id: partner.id,
  customer: { email: `${charge}@customer.example.com` },
  amount_minor: 9900,
  currency: 'USD',
  external_charge_id: charge,
});
const click = () =>
  merchant.request('POST', '/v1/clicks', {
    ...{ program_id: program.id, value: partner.handle, landing_url: 'https://acme.example.com/' },
    visitor_token: crypto.randomUUID(),
  });

/** Another session that locks a table until it is told to let go. */
async function lock(table: string): Promise<{ pid: number; unlock(): Promise<void> }> {
  const client = new pg.Client({ connectionString: rail.url, application_name: 'a stuck session' });
  await client.connect();
  await client.query(`begin; lock table ${table}`);
  const { rows } = await client.query('select pg_backend_pid() as pid');
  return { pid: rows[0].pid, unlock: () => client.end() };
}

/** Counts the connections of the API that do something, or hold a transaction. */
async function busy(): Promise<number> {
  const [row] = await rail.query<{ count: number }>(
    sql`select count(*) as count from pg_stat_activity where application_name = ${name} and state <> 'idle'`,
  );
  return row?.count as number;
}

t.test('a locked table holds up the requests that need it, and no others', async (t) => {
  const { pid, unlock } = await lock('program.sale');
  const charges = Array.from({ length: 3 * size }, (_, nth) => `ch_${nth}`);
  const held_up = Promise.all([
    ...charges.map((charge) => merchant.request('POST', '/v1/sales', saleOf(charge))),
    ...charges.map(() => merchant.request('GET', `/v1/sales?program_id=${program.id}`)),
  ]);
  await eventually(async () => (await rail.waiting()) > 1, 'requests to wait for the lock');
  for (let nth = 0; nth < 10; nth++) {
    t.equal((await click()).status, 201);
    t.equal((await merchant.request('GET', '/v1/programs')).status, 200);
    t.equal((await fetch(`${address}/readyz`)).status, 200);
  }
  for (const { status, headers, body } of await held_up) {
    t.equal(status, 503);
    t.match(body.error, { code: 'service_unavailable', message: /Retry with the same idempotency key/ });
    t.match(headers['retry-after'], /^[1-9]\d*$/);
  }
  await eventually(async () => (await busy()) === 0, 'all connections to be free while the table is still locked');
  const named = logged.filter(({ blockers }) => blockers);
  t.match(named, [{ blockers: new RegExp(`^pid ${pid} .a stuck session`), tables: 'program.sale' }], 'once');
  await unlock();
  t.same((await merchant.get(`/v1/sales?program_id=${program.id}`)).data, [], 'what was answered 503 has no effect');
  t.equal((await merchant.request('POST', '/v1/sales', saleOf('ch_0'))).status, 201);
});

t.test('a client that leaves gives its connection back', async (t) => {
  const { unlock } = await lock('program.sale');
  app.answer_ms = 600_000;
  const left = new AbortController();
  // Two clients: one alone would send one request after the other.
  const asked = {
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    signal: left.signal,
  };
  const body = JSON.stringify(saleOf('ch_left'));
  const sale = request(`${address}/v1/sales`, { ...asked, method: 'POST', body }).catch((error) => error.name);
  await eventually(async () => (await rail.waiting()) === 1, 'one to wait for the lock');
  const rows = fetch(`${address}/v1/sales?program_id=${program.id}&format=csv`, asked).catch((error) => error.name);
  await eventually(async () => (await rail.waiting()) === 2, 'both to wait for the lock');
  left.abort();
  t.same(await Promise.all([sale, rows]), ['AbortError', 'AbortError']);
  await eventually(async () => (await busy()) === 0, 'their connections to be free');
  await unlock();
  app.answer_ms = answer_ms;
  t.equal((await merchant.request('POST', '/v1/sales', saleOf('ch_left'))).status, 201);
});

t.test('the log names whose request was given up before its key was looked up', async (t) => {
  // A key with the usual limit is looked up by each request.
  const { key: usual } = await rail.key(organization_id, { rate_limit: 25 });
  const other = callerOf(address, usual, organization_id);
  await other.get('/v1/programs');
  const { unlock } = await lock('core.api_key');
  app.answer_ms = 500;
  const { status, headers } = await other.request('GET', '/v1/programs');
  app.answer_ms = answer_ms;
  await unlock();
  t.equal(status, 503);
  t.match(
    logged.find(({ request_id }) => request_id === headers['rail-request-id']),
    { organization_id, api_key_id: /^key_/, status: 503 },
  );
});
