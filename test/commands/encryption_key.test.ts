import t from 'tap';
import { findWrongKey } from '../../src/core/encryption/key_check.ts';
import { command } from '../command_process.ts';
import { encryption_key, eventually, type Json, sql, startRail } from '../harness.ts';
import { spawnRail } from '../rail_process.ts';

const other_key = Buffer.alloc(32, 9).toString('base64');
const service = await startRail({ worker: false });
// As a process with the right key does at its start.
await findWrongKey(service.store.database, service.services.vault);

t.test(
  'a process with another key than the database was used with does not start, and says which is missing',
  async (t) => {
    const right = { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'), PORT: '0' };
    const wrong = { ...right, RAIL_ENCRYPTION_KEY: other_key };
    const [{ key_id }] = (await service.query(
      sql`select encode(substring(value from 2 for 4), 'hex') as key_id from core.encryption_check`,
    )) as [Json];

    const commands = [['api'], ['worker'], ['payouts', 'export', '--batch', 'pbt_none']];
    for (const args of commands) {
      const { code, stderr, stdout } = await command(args, wrong);
      t.equal(code, 1, args.join(' '));
      t.match(stderr, `The database holds values encrypted with the key ${key_id}`, args.join(' '));
      t.match(stderr, 'Set it to the key that this database was used with');
      t.notMatch(`${stdout}${stderr}`, other_key, 'no key is shown');
    }
    t.same(await service.query(sql`select count(*) from core.encryption_check`), [{ count: 1 }], 'nothing changed');
  },
);

t.test('an API that waits for the migrations is not ready with another key', async (t) => {
  await service.query(sql`alter table core.encryption_check rename to encryption_check_later`);
  await service.query(sql`update migration.applied set name = 'hidden' where name = 'migrations/0001_core.sql'`);
  const api = spawnRail(t, ['api'], { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: other_key, PORT: '0' });
  const [, port] = await api.until(/"port":(\d+),"msg":"api ready"/);
  const readiness = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).json() as Promise<Json>;
  t.match((await readiness()).error.message, 'missing migrations');

  await service.query(sql`alter table core.encryption_check_later rename to encryption_check`);
  await service.query(sql`update migration.applied set name = 'migrations/0001_core.sql' where name = 'hidden'`);
  await eventually(
    async () => (await readiness()).error?.message.includes('encrypted with the key'),
    'the key to be refused',
  );
});
