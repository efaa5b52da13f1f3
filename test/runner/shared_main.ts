import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import root from 'tap';
import { setFile } from './file_of_process.ts';
import { timeout_s } from './outcome.ts';
import { cpuLine, isProfiled } from './profile.ts';

/**
 * The process in which several test files run, one after the other: a line of standard input names each. A file is a subtest of the process,
 * so that its teardowns run when it ends. After each its counts are printed, as a file that runs by itself does at its end.
 */

const tapOfFile = pathToFileURL(resolve(import.meta.dirname, 'file_of_process.ts')).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'tap' && context.parentURL !== tapOfFile
      ? { url: tapOfFile, shortCircuit: true }
      : next(specifier, context),
});

/** The file that runs. */
let running: string | undefined;
// Node itself writes it after tap has counted the file, when its output is no longer read.
process.on('uncaughtExceptionMonitor', (error, origin) => console.error(origin, error));
// The stack names whoever ends the process amid a file, of which tap says only that it is unfinished.
process.once('exit', (code) => {
  if (running !== undefined) console.error(new Error(`The process ended with ${code} while ${running} ran.`));
});

/** The number of times that each file was run. */
const runs = new Map<string, number>();

for await (const file of createInterface({ input: process.stdin })) {
  process.env.RAIL_TEST_FILE = file;
  running = file;
  const run = (runs.get(file) ?? 0) + 1;
  runs.set(file, run);
  let counts = { total: 0, pass: 0, fail: 0 };
  const results = await root.test(file, { timeout: timeout_s * 1000 }, async (test) => {
    counts = test.counts;
    setFile(test);
    // A module of one URL is loaded once, so a file that is named again has another.
    await import(`${pathToFileURL(resolve(file)).href}${run > 1 ? `?run=${run}` : ''}`);
  });
  running = undefined;
  const { total, pass, fail } = counts;
  // Not by root.comment: tap keeps a comment until something comes after it.
  if (isProfiled()) console.log(cpuLine());
  console.log('# %o', { total, pass, fail: results?.ok ? fail : Math.max(fail, 1) });
}
