import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { keepDemo } from '../../src/commands/demo.ts';
import type { Config } from '../../src/config.ts';
import { sql, startRail } from '../harness.ts';

const rail = await startRail({ worker: false });

t.test(
  'on a Postgres of one’s own, the folder of demo.json is made before the organization whose keys it holds',
  async (t) => {
    const folder = join(t.testdir({ file: '' }), 'new');
    const keep = (RAIL_DATA_DIR: string) =>
      keepDemo(
        { config: { RAIL_DATA_DIR, DATABASE_URL: rail.url } as Config, store: rail.store, services: rail.services },
        rail.address,
      );
    await t.rejects(keep(join(folder, '../file/folder')));
    t.same(await rail.query(sql`select id from core.organization`), [], 'nothing is made whose keys would be lost');
    const demo = await keep(folder);
    t.same(JSON.parse(await readFile(join(folder, 'demo.json'), 'utf8')), demo);
  },
);
