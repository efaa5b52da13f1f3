import { writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import { cpuLine, isProfiled } from './profile.ts';

/**
 * Loaded into the processes of test files before anything else. tap's package `async-hook-domain` follows every promise of the process, so
 * that it can say to which test an error belongs that nobody caught; a quarter of a test's CPU time goes there. Without it, such an error
 * ends the process, as it would end the service, and its file has failed.
 */

const domain = 'export class Domain { destroy() {} }';

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'async-hook-domain'
      ? { url: `data:text/javascript,${encodeURIComponent(domain)}`, shortCircuit: true }
      : next(specifier, context),
});

if (isProfiled() && isMainThread) process.once('exit', () => writeSync(1, `${cpuLine()}\n`));
