import type { AddressInfo } from 'node:net';
import t from 'tap';
import { buildApi } from '../../../src/api.ts';
import { openDatabase } from '../../../src/core/postgres/database.ts';
import { callerOf, closeApi, log, services, startRail } from '../../harness.ts';
import { startGate } from '../../processes.ts';

const rail = await startRail({ worker: false });
const { key, organization_id } = await rail.organization();
const gate = await startGate(rail.url);
const database = openDatabase(gate.url, { size: 4, name: 'rail test', log });
const app = await buildApi({ store: { ...rail.store, database }, services, log, limits: { answer_ms: 500 } });
await app.listen({ port: 0, host: '127.0.0.1' });
const address = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
t.teardown(async () => {
  gate.cut();
  await closeApi(app);
  await database.end();
});
const merchant = callerOf(address, key, organization_id);
const program = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };

for (const [what, statement] of [
  ['authenticates it', 'core.authenticate'],
  ['opens its transaction', 'core.open_request'],
  ['runs it', 'program.program'],
] as const) {
  t.test(`answers 503 to a request whose database stands still as it ${what}`, async (t) => {
    const frozen = gate.stopAt('before', ({ text }) => text.includes(statement));
    const [{ status, headers, body }] = await Promise.all([merchant.request('POST', '/v1/programs', program), frozen]);
    t.equal(status, 503);
    t.match(body.error, { code: 'service_unavailable', message: /not answered within 0\.5 seconds/ });
    t.ok(headers['retry-after']);
    gate.cut();
    t.equal((await merchant.request('POST', '/v1/programs', program)).status, 201, 'and goes on afterwards');
  });
}

t.test('answers 503 to a probe and to a short link in the same way', async (t) => {
  for (const path of ['/readyz', '/r/no-such-link']) {
    const frozen = gate.stopAt('before', () => true);
    const [response] = await Promise.all([fetch(address + path), frozen]);
    t.equal(response.status, 503, path);
    gate.cut();
  }
});
