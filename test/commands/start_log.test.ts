import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { createStartLog, RotatedFile } from '../../src/commands/start_log.ts';
import type { Config } from '../../src/config.ts';

t.test('on a terminal the log goes to a file, and warnings to the terminal as sentences', async (t) => {
  const RAIL_DATA_DIR = join(t.testdir({}), 'new');
  let shown = '';
  const terminal = { isTTY: true, write: (text: string) => (shown += text) } as unknown as typeof process.stderr;
  const log = createStartLog({ RAIL_DATA_DIR, LOG_LEVEL: 'info' } as Config, terminal);
  log.info({ path: '/v1/sales', key: { secret: 'rail_live_secret' } }, 'request');
  log.debug('not asked for');
  log.warn({ processes: 3 }, 'A setting is wrong.');
  log.error({ err: new Error('the server is away') }, 'A job failed');
  t.equal(shown, 'rail: warning: A setting is wrong.\nrail: error: A job failed: the server is away\n');

  const path = join(RAIL_DATA_DIR, 'rail.log');
  const lines = (await readFile(path, 'utf8')).trim().split('\n');
  t.match(
    lines.map((line) => JSON.parse(line)),
    [
      { path: '/v1/sales', key: { secret: '[redacted]' } },
      { processes: 3 },
      { err: { message: 'the server is away' } },
    ],
  );
  t.equal((await stat(path)).mode & 0o777, 0o600);
});

t.test('the file is bounded: what is full takes the place of the one before', async (t) => {
  const path = join(t.testdir({}), 'rail.log');
  const file = new RotatedFile(path, 25);
  for (const line of ['the first\n', 'the second\n', 'the third\n', 'the fourth\n', 'the fifth\n']) file.write(line);
  t.equal(await readFile(`${path}.1`, 'utf8'), 'the third\nthe fourth\n');
  t.equal(await readFile(path, 'utf8'), 'the fifth\n');
  new RotatedFile(path, 25).write('the sixth\n');
  t.equal(await readFile(path, 'utf8'), 'the fifth\nthe sixth\n', 'a later start goes on');
});
