/** The process in which commands run, one after the other: a message of `command_process.ts` names each. */
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

export interface Request {
  args: string[];
  environment: NodeJS.ProcessEnv;
  /** The text of its standard input. */
  input: string;
}

/** Ends what a command has printed, on each stream. */
export const mark = '\0end of the command\0';

class Exit {
  readonly code: number;

  constructor(code: number) {
    this.code = code;
  }
}

if (import.meta.main) {
  const main = pathToFileURL(join(import.meta.dirname, '../src/main.ts')).href;
  let count = 0;
  process.exit = (code = process.exitCode) => {
    throw new Exit(Number(code ?? 0));
  };
  process.on('message', async ({ args, environment, input }: Request) => {
    for (const name of Object.keys(process.env)) delete process.env[name];
    Object.assign(process.env, environment);
    process.argv.splice(2, process.argv.length, ...args);
    process.exitCode = undefined;
    Object.defineProperty(process, 'stdin', {
      value: Readable.from(input ? [Buffer.from(input)] : []),
      configurable: true,
    });
    const code = await codeOf(import(`${main}?${++count}`));
    // Removes the listeners of this command: too many would be warned of.
    process.stdout.removeAllListeners('error');
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(signal);
    for (const stream of [process.stdout, process.stderr]) stream.write(mark);
    process.send?.({ code });
  });
}

/** Returns the exit code of a command, which ends with its exit. */
async function codeOf(running: Promise<unknown>): Promise<number> {
  try {
    await running;
  } catch (error) {
    if (error instanceof Exit) return error.code;
    console.error(error);
  }
  return 1;
}
