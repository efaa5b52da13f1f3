import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import { mark, type Request } from './command_main.ts';
import { type Ended, environmentOf, rail } from './rail_process.ts';

/**
 * Commands that answer and end, run one after the other in a process that stays: each is what `rail` does with its arguments and environment,
 * without the time that a process needs to start. What runs until it is stopped or is killed has a process of its own:
 * test/rail_process.ts.
 */

const main = join(import.meta.dirname, 'command_main.ts');
/** Two commands can run at once; further ones wait. */
const most = 2;
const started = new Set<ChildProcess>();
const idle: ChildProcess[] = [];
const waiting: ((child: ChildProcess) => void)[] = [];

/**
 * Runs a command to its end. It knows the settings it is given, and none of the environment's.
 * @param input what its standard input holds
 */
export async function command(args: string[], environment: NodeJS.ProcessEnv, input = ''): Promise<Ended> {
  if (args[0] === 'worker') return rail(t, args, environment, input); // it starts anew in its process
  const child = await takeProcess();
  const printed = Promise.all([textOf(child, 'stdout'), textOf(child, 'stderr')]);
  child.send({ args, environment: environmentOf(environment), input } satisfies Request);
  const [[{ code }], [stdout, stderr]] = await Promise.all([once(child, 'message'), printed]);
  giveBack(child);
  return { code, stdout, stderr };
}

async function takeProcess(): Promise<ChildProcess> {
  if (idle.length > 0 || started.size < most) return idle.pop() ?? startProcess();
  return new Promise((take) => waiting.push(take));
}

function giveBack(child: ChildProcess): void {
  const take = waiting.shift();
  if (take) take(child);
  else idle.push(child);
}

/** It is gone when the file's tests are done. */
function startProcess(): ChildProcess {
  const child = fork(main, { silent: true, execArgv: [] });
  const closed = once(child, 'close');
  started.add(child);
  t.teardown(async () => {
    started.delete(child);
    idle.splice(0);
    child.kill('SIGKILL');
    await closed;
  });
  return child;
}

/**
 * Returns the text that a process prints until the mark.
 * @throws Error if it ends before
 */
function textOf(child: ChildProcess, name: 'stdout' | 'stderr'): Promise<string> {
  const stream = child[name] as NodeJS.ReadableStream;
  let text = '';
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error(`The process of the commands has ended: ${text}`));
    const add = (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const end = text.indexOf(mark);
      if (end === -1) return;
      stream.off('data', add).off('close', fail);
      resolve(Buffer.from(text.slice(0, end), 'latin1').toString());
    };
    stream.on('data', add).on('close', fail);
  });
}
