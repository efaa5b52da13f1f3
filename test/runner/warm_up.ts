import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Test } from 'tap';
import { flags as flags_of_worker } from '../../src/commands/small_memory.ts';

const main = join(import.meta.dirname, '../../src/main.ts');
/** The modules that load the rest. Not every file is named: some do their work as soon as they are loaded. */
const service = [
  'src/command_line/rail.ts',
  'src/worker.ts',
  'src/products.ts',
  'src/**/worker_extension.ts',
  'src/commands/**/*.ts',
  'tasks/**/*.ts',
];
const packages = ['commander', 'graphile-worker', 'undici'];
const requests = [
  'src/core/description/texts.ts',
  'src/recruitment/threads/*.ts',
  'src/recruitment/inboxes/sender_policy/*.ts',
  'src/program/payouts/files/*_report.ts',
];
const tests = ['src/api.ts', 'test/harness.ts', 'test/samples.ts', 'test/processes.ts', 'fast-check', 'postgraphile'];

/**
 * Has all of the service and what its tests share compiled, for the cache that the processes of the tests read (NODE_COMPILE_CACHE). A process
 * writes to it when it ends by itself: most of those that tests start are killed, and those that run test files end last. Workers have code
 * of their own, as their V8 has other flags.
 * @throws Error where something cannot be loaded
 */
export async function warmUp(environment: NodeJS.ProcessEnv): Promise<void> {
  const env = { ...process.env, GRAPHILE_ENV: 'production', ...environment };
  const compile = async (...args: string[]) => {
    const [code] = await once(spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'inherit'] }), 'close');
    if (code !== 0) throw new Error(`node ${args.join(' ')} ended with ${code}.`);
  };
  await Promise.all([
    compile(import.meta.filename, ...service, ...requests, ...packages, ...tests).then(() => compile(main, '--help')),
    compile(...flags_of_worker, import.meta.filename, ...service, ...packages).then(() =>
      compile(...flags_of_worker, main, '--help'),
    ),
  ]);
}

/** Has all of the service compiled once for the processes that the tests of this one start, for as long as they last. */
export async function shareCompiled(t: Test): Promise<void> {
  const NODE_COMPILE_CACHE = await mkdtemp(join(tmpdir(), 'rail-compiled-'));
  t.teardown(() => rm(NODE_COMPILE_CACHE, { recursive: true, force: true }));
  process.env.NODE_COMPILE_CACHE = NODE_COMPILE_CACHE;
  await warmUp({ NODE_COMPILE_CACHE });
}

if (import.meta.main) {
  const urlsOf = (pattern: string) => globSync(pattern).map((file) => pathToFileURL(resolve(file)).href);
  for (const given of process.argv.slice(2))
    for (const module of given.endsWith('.ts') ? urlsOf(given) : [given]) await import(module);
  process.exit();
}
