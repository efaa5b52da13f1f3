import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { settings } from '../src/config.ts';
import { eventually } from './harness.ts';
import { copyPrepared } from './postgres.ts';
import { isAlive, postgresOf } from './runner/run_directory.ts';

const main = join(import.meta.dirname, '../src/main.ts');
/** So long that only a process that hangs takes longer, however busy the machine is. */
const start_ms = 300_000;

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RailProcess {
  pid: number;
  /** Returns the text printed so far. */
  said(): { stdout: string; stderr: string };
  /** Waits until it has printed what fits, on either stream. @throws Error with all it said where it ends before */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  signal(signal: NodeJS.Signals): void;
  ended: Promise<Ended>;
  /** Signals it and waits for its end. */
  stop(signal?: NodeJS.Signals): Promise<Ended>;
}

/** A process of the command line. It knows the settings it is given, and none of the environment's. It is killed after the test. */
export function spawnRail(
  t: Test,
  args: string[],
  environment: NodeJS.ProcessEnv,
  /** The number of files and connections that it may open. */
  descriptors?: number,
  /** The text of its standard input. */
  input = '',
): RailProcess {
  const command = [process.execPath, main, ...args];
  const [file = '', ...rest] =
    descriptors === undefined ? command : ['/bin/sh', '-c', `ulimit -n ${descriptors}; exec "$0" "$@"`, ...command];
  const child = spawn(file, rest, {
    env: environmentOf(environment),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => {}); // it may end without reading
  child.stdin.end(input);
  const said = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => {
    said.stdout += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    said.stderr += chunk;
  });
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...said }));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    pid: child.pid as number,
    said: () => said,
    async until(pattern) {
      const found = () => pattern.exec(said.stdout) ?? pattern.exec(said.stderr);
      await eventually(
        () => found() !== null || child.exitCode !== null || child.signalCode !== null,
        `${pattern}`,
        start_ms,
      ).catch(() => {});
      const match = found();
      if (match) return match;
      throw new Error(`rail ${args.join(' ')} never said ${pattern}, only:\n${said.stdout}\n${said.stderr}`);
    },
    signal: (signal) => child.kill(signal),
    ended,
    stop(signal = 'SIGTERM') {
      child.kill(signal);
      return ended;
    },
  };
}

/** The environment without settings, with those that are given. */
export function environmentOf(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const ours = new Set(['NODE_OPTIONS', 'npm_lifecycle_event', ...settings.map(({ name }) => name)]);
  const inherited = Object.entries(process.env).filter(([name]) => !ours.has(name) && !name.startsWith('TAP'));
  return { ...Object.fromEntries(inherited), ...environment };
}

/** Runs a command to its end, in a process of its own. */
export const rail = (t: Test, args: string[], environment: NodeJS.ProcessEnv, input?: string): Promise<Ended> =>
  spawnRail(t, args, environment, undefined, input).ended;

/**
 * A data directory. Whatever Postgres runs in it is stopped after the test.
 * @param content `empty`, as before the first start; `migrated` where the test is not about the first start, which takes long
 */
export async function makeDataDir(t: Test, content: 'empty' | 'migrated'): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'rail-start-'));
  if (content === 'migrated') await copyPrepared(dataDir);
  t.teardown(async () => {
    const pid = await postgresOf(dataDir);
    if (pid !== undefined && isAlive(pid)) {
      process.kill(pid, 'SIGQUIT');
      await eventually(() => !isAlive(pid), 'Postgres to stop');
    }
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  });
  return dataDir;
}
