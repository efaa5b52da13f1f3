import t from 'tap';
import { buildApi } from '../../src/api.ts';
import { createKey } from '../../src/core/access/api_key.ts';
import { openDatabase } from '../../src/core/postgres/database.ts';
import { findReplicaFault } from '../../src/service.ts';
import { closeApi, log, services, startRail } from '../harness.ts';
import { startProcess } from '../processes.ts';
import { openShop } from '../shop.ts';

const rail = await startRail({ worker: false });
/** Stands in for a replica that lags for ever: what is read there is not found. */
const other = await startRail({ worker: false });
const { merchant, program_id } = await openShop(rail);
const { secret } = await createKey(rail.store.database, {
  ...{ organization_id: merchant.organization_id, name: 'test', mode: 'live', scopes: ['*'], rate_limit: 1_000 },
});

/** The status that an API with such a replica answers. */
async function apiWith(replica_url: string): Promise<(url: string, accept?: string) => Promise<number>> {
  const replica = openDatabase(replica_url, { size: 2, name: 'rail test' });
  const app = await buildApi({ store: { ...rail.store, replica }, services, log });
  t.teardown(async () => {
    await closeApi(app);
    await replica.end();
  });
  const authorization = `Bearer ${secret}`;
  return async (url, accept = 'application/json') =>
    (await app.inject({ url, headers: { authorization, accept } })).statusCode;
}

const query = `program_id=${program_id}&from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z`;

t.test('reports are read on the replica where there is one, and everything else is not', async (t) => {
  const statusOf = await apiWith(other.url);
  t.equal(await statusOf(`/v1/programs/${program_id}`), 200);
  t.equal(await statusOf(`/v1/partners?program_id=${program_id}`), 200);
  t.equal(await statusOf(`/v1/reports/overview?${query}`), 404);
  t.equal(await statusOf(`/v1/reports?report=partners&${query}`), 404);
  t.equal(await statusOf(`/v1/reports/overview?${query}`, 'text/csv'), 404);
});

t.test('a replica that is away keeps nothing else from its work', async (t) => {
  const statusOf = await apiWith('postgres://nobody@127.0.0.1:1/none');
  t.equal(await statusOf(`/v1/reports/overview?${query}`), 503);
  t.equal(await statusOf(`/v1/programs/${program_id}`), 200);
});

t.test('a process says at its start what is wrong with the replica', async (t) => {
  t.equal(await findReplicaFault({ ...rail.store, replica: rail.store.database }), undefined);
  const { database } = other.store;
  t.match(await findReplicaFault({ ...rail.store, replica: database }), /another database/);
  const api = await startProcess('api', rail.url, { DATABASE_READ_URL: 'postgres://rail:hidden@127.0.0.1:1/none' });
  await api.end('SIGTERM');
  const [away, ...more] = api.logged.filter(({ msg }) => /DATABASE_READ_URL/.test(msg));
  t.match(away, { level: 40, replica: '127.0.0.1:1', reason: /ECONNREFUSED/, msg: /leave it unset/ });
  t.notMatch(JSON.stringify(away), 'hidden');
  t.same(more, []);
});
