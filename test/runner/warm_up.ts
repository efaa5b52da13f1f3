import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const main = join(import.meta.dirname, '../../src/main.ts');
const files = ['src/**/*.ts', 'tasks/**/*.ts', 'test/harness.ts', 'test/samples.ts', 'test/processes.ts'];
const packages = ['commander', 'fast-check', 'postgraphile'];

/**
 * Has all of the service and what its tests share compiled, for the cache that the processes of the tests read (NODE_COMPILE_CACHE). A process
 * writes to it when it ends by itself: most of those that tests start are killed, and those that run test files end last.
 */
export async function warmUp(environment: NodeJS.ProcessEnv): Promise<void> {
  const env = { ...process.env, ...environment };
  for (const args of [[import.meta.filename], [main, '--help']])
    await once(spawn(process.execPath, args, { env, stdio: 'ignore' }), 'close');
}

if (import.meta.main) {
  const paths = globSync(files).map((file) => resolve(file));
  for (const path of paths) if (path !== main) await import(pathToFileURL(path).href);
  for (const name of packages) await import(name);
  process.exit();
}
