import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { encryption_key, eventually, type Json, sql, startRail } from '../harness.ts';
import { makeDataDir, rail, spawnRail } from '../rail_process.ts';

const other_key = Buffer.alloc(32, 9).toString('base64');

t.test(
  'a process with another key than the database was used with does not start, and says which is missing',
  async (t) => {
    const service = await startRail();
    const right = { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'), PORT: '0' };
    const wrong = { ...right, RAIL_ENCRYPTION_KEY: other_key };
    await spawnRail(t, ['worker'], { ...right, METRICS_PORT: '0' }).until(/metrics ready/);
    const [{ key_id }] = (await service.query(
      sql`select encode(substring(value from 2 for 4), 'hex') as key_id from core.encryption_check`,
    )) as [Json];

    const commands = [['api'], ['worker'], ['payouts', 'export', '--batch', 'pbt_none']];
    for (const args of commands) {
      const { code, stderr, stdout } = await rail(t, args, wrong);
      t.equal(code, 1, args.join(' '));
      t.match(stderr, `The database holds values encrypted with the key ${key_id}`, args.join(' '));
      t.match(stderr, 'Set it to the key that this database was used with');
      t.notMatch(`${stdout}${stderr}`, other_key, 'no key is shown');
    }
    t.same(await service.query(sql`select count(*) from core.encryption_check`), [{ count: 1 }], 'nothing changed');
  },
);

t.test('an API that waits for the migrations is not ready with another key', async (t) => {
  const service = await startRail();
  await service.query(sql`alter table core.encryption_check rename to encryption_check_later`);
  await service.query(sql`update migration.applied set name = 'hidden' where name = 'migrations/0001_core.sql'`);
  const api = spawnRail(t, ['api'], { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: other_key, PORT: '0' });
  const [, port] = await api.until(/"port":(\d+),"msg":"api ready"/);
  const readiness = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).json() as Promise<Json>;
  t.match((await readiness()).error.message, 'missing migrations');

  await service.query(sql`alter table core.encryption_check_later rename to encryption_check`);
  await service.query(sql`update migration.applied set name = 'migrations/0001_core.sql' where name = 'hidden'`);
  const right = { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'), PORT: '0' };
  await spawnRail(t, ['worker'], { ...right, METRICS_PORT: '0' }).until(/metrics ready/);
  await eventually(
    async () => (await readiness()).error?.message.includes('encrypted with the key'),
    'the key to be refused',
  );
});

t.test('a key that is gone is never replaced beside a database that was used with it', async (t) => {
  const dataDir = await makeDataDir(t, 'migrated');
  const file = join(dataDir, 'encryption_key');
  const settings = { RAIL_DATA_DIR: dataDir, PORT: '0' };
  const first = spawnRail(t, ['start'], settings);
  await first.until(/Rail is running/);
  await first.stop();
  const key = await readFile(file);

  await rename(file, `${file}.away`);
  const { code, stderr } = await rail(t, ['start'], settings);
  t.equal(code, 1);
  t.match(stderr, `and there is no ${file}. Restore that file, or set RAIL_ENCRYPTION_KEY to the key`);
  await t.rejects(readFile(file), { code: 'ENOENT' }, 'none was made');

  await writeFile(file, key);
  const again = spawnRail(t, ['start'], settings);
  await again.until(/Rail is running/);
  await again.stop();
  await rm(`${file}.away`);
});
