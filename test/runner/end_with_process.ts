import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Ends the children of this process as soon as it is gone itself, however it ends: a shell waits for the end of its standard input, which this
 * process holds open.
 */

/** Stops the Postgres in a data directory by a signal that saves nothing, and removes the directory. */
export const endWithProcess = (dataDir: string): void => void whenGone(stop_postgres, dataDir);

/** Kills a process that was started, and removes a directory that is its own. */
export function killWithProcess(child: ChildProcess, directory: string): void {
  const shell = whenGone(kill, directory, String(child.pid));
  child.once('exit', () => shell.kill('SIGKILL')); // its id may be given to another process
}

function whenGone(script: string, ...args: string[]): ChildProcess {
  const shell = spawn('/bin/sh', ['-c', script, 'sh', ...args], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // Ctrl-C reaches the whole group, and this must outlive it
  });
  shell.unref();
  (shell.stdin as unknown as { unref(): void }).unref();
  return shell;
}

/** The file is gone if Postgres was stopped in order. */
const stop_postgres = `
  cat
  pid=$(head -n 1 "$1/postgres/postmaster.pid" 2>/dev/null)
  [ -n "$pid" ] && kill -QUIT "$pid" 2>/dev/null
  while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
  rm -rf "$1"`;

const kill = `
  cat
  kill -KILL "$2" 2>/dev/null
  rm -rf "$1"`;
