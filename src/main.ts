#!/usr/bin/env node
/**
 * The command line. Each command's code is loaded only when the command runs. `rail.js` starts it; it can be run itself, because npx keeps a link to the
 * file that was `rail` when it first ran in a checkout, and this file was.
 */
import { keepMemorySmall } from './commands/small_memory.ts';

if (process.argv[2] === 'worker') keepMemorySmall();
const { CommanderError } = await import('commander');
const { wantsStacks } = await import('./config.ts');
const { createCommandLine } = await import('./command_line/rail.ts');

/** 0 for help, 1 for a failure, 2 for wrong usage. A stack is shown only where the log level asks for it. */
async function fail(error: unknown): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const { stack, exitCode } = error as Error & { exitCode?: number };
  const { textOf } = await import('./core/postgres/errors.ts');
  console.error(`rail: ${wantsStacks() ? stack : textOf(error)}`);
  return exitCode ?? 1;
}

/** A closed pipe (`rail key list | head`) ends the command. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

await createCommandLine()
  .parseAsync()
  .catch(async (error) => {
    process.exitCode = await fail(error);
  });
// Printed text may still wait for its reader: a pipe holds 64 KiB.
await Promise.all(
  [process.stdout, process.stderr].map((stream) => new Promise((flushed) => stream.write('', flushed))),
);
process.exit();
