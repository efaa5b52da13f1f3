import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { eventually } from '../harness.ts';
import { isAlive } from './run_directory.ts';

const module = join(import.meta.dirname, 'end_with_process.ts');

t.test('the Postgres of a process that is killed ends with it, and so does its directory', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rail-ends-'));
  const postmaster = spawn('sleep', ['300'], { stdio: 'ignore' });
  t.teardown(() => postmaster.kill('SIGKILL'));
  await mkdir(join(dataDir, 'postgres'));
  await writeFile(join(dataDir, 'postgres/postmaster.pid'), `${postmaster.pid}\n`);
  const code = `(await import(${JSON.stringify(module)})).endWithProcess(${JSON.stringify(dataDir)}); console.log('begun');`;
  const running = spawn(process.execPath, ['--eval', `${code} setInterval(() => {}, 1_000);`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(running.stdout, 'data');
  t.ok(isAlive(postmaster.pid as number), 'it runs as long as the process does');
  running.kill('SIGKILL');
  const [, signal] = await once(postmaster, 'exit');
  t.equal(signal, 'SIGQUIT');
  await eventually(() => !existsSync(dataDir), 'the directory to be removed');
});

t.test('a process that has nothing else to do is not kept from ending', async (t) => {
  const dataDir = t.testdir({});
  const code = `(await import(${JSON.stringify(module)})).endWithProcess(${JSON.stringify(dataDir)});`;
  const [exit_code] = await once(spawn(process.execPath, ['--eval', code], { stdio: 'ignore' }), 'exit');
  t.equal(exit_code, 0);
});
