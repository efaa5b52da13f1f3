import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { migrate } from '../../src/core/postgres/migrate.ts';
import { openEmbeddedPostgres } from '../../src/embedded_postgres/embedded_postgres.ts';
import { stablePort } from '../ports.ts';
import { endWithProcess, killWithProcess } from '../runner/end_with_process.ts';

export interface Machine {
  os: string;
  cpu: string;
  cores: number;
  memory_gib: number;
  node: string;
  /** The load of the minute before the first round: shows what else the machine was doing. */
  load_average: number;
  postgres?: string;
  synchronous_commit?: string;
  fsync?: string;
}

export async function machineOf(postgres_url: string | undefined): Promise<Machine> {
  const settings = postgres_url
    ? await onServer(postgres_url, async (client) => {
        const { rows } = await client.query<Pick<Machine, 'postgres' | 'synchronous_commit' | 'fsync'>>(
          `select current_setting('server_version') as postgres, current_setting('synchronous_commit') as synchronous_commit,
            current_setting('fsync') as fsync`,
        );
        return rows[0];
      })
    : {};
  return {
    os: `${type()} ${release()}`,
    cpu: cpus()[0]?.model.trim() || 'unknown CPU',
    cores: availableParallelism(),
    memory_gib: Math.round(totalmem() / 2 ** 30),
    node: process.versions.node,
    load_average: Number((loadavg()[0] as number).toFixed(2)),
    ...settings,
  };
}

async function onServer<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * A migrated Postgres of the bench's own, with the settings that the service's embedded one has, and those given besides.
 * @param kept the folder of its data, made where there is none and left there at the end; without one it is removed
 */
export async function startPostgres(
  stack: AsyncDisposableStack,
  settings: Record<string, string> = {},
  kept?: string,
): Promise<string> {
  const dataDir = kept ?? (await temporaryFolder(stack));
  const postgres = await openEmbeddedPostgres({ dataDir, mode: 'own', settings });
  stack.defer(() => postgres.stop());
  await migrate(postgres.url);
  return postgres.url;
}

async function temporaryFolder(stack: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rail-bench-'));
  endWithProcess(folder);
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export interface Running {
  pid: number;
  /** The URL, if it listens. */
  url: string;
}

/**
 * Starts `node <file> <args>` as a process of its own, with its log in a file, and waits until it is ready.
 * @param file a path from this folder  @param ready a path that answers 200, or a line that the log must hold
 * @throws Error with the end of its log when it ends before it is ready
 */
export async function startNode(
  stack: AsyncDisposableStack,
  file: string,
  args: string[],
  environment: Record<string, string>,
  ready: { path: string } | { line: string },
): Promise<Running> {
  const folder = await mkdtemp(join(tmpdir(), 'rail-bench-log-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const log = join(folder, 'log');
  const sink = await open(log, 'w');
  const port = await stablePort();
  const child = spawn(process.execPath, [...nodeOptions(), join(import.meta.dirname, file), ...args], {
    env: { ...process.env, PORT: String(port), HOST: '127.0.0.1', ...environment },
    stdio: ['ignore', 'ignore', sink.fd],
  });
  killWithProcess(child, folder);
  stack.defer(() => stopProcess(child));
  await sink.close();
  const url = `http://127.0.0.1:${port}`;
  const isReady = 'path' in ready ? () => answers(`${url}${ready.path}`) : () => holds(log, ready.line);
  for (const end = Date.now() + 60_000; !(await isReady()); await sleep(20)) {
    if (child.exitCode === null && child.signalCode === null && Date.now() < end) continue;
    throw new Error(
      `${[file, ...args].join(' ')} did not become ready:\n${(await readFile(log, 'utf8')).slice(-2_000)}`,
    );
  }
  return { pid: child.pid as number, url };
}

/** `RAIL_BENCH_NODE_OPTIONS`: options for the processes that are measured and not for the one that measures, such as --cpu-prof. */
const nodeOptions = (): string[] => (process.env.RAIL_BENCH_NODE_OPTIONS ?? '').split(' ').filter(Boolean);

const answers = (url: string): Promise<boolean> =>
  fetch(url).then(
    async (response) => {
      await response.body?.cancel();
      return response.ok;
    },
    () => false,
  );

const holds = async (file: string, line: string): Promise<boolean> => (await readFile(file, 'utf8')).includes(line);

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const killer = setTimeout(() => child.kill('SIGKILL'), 20_000);
  await gone;
  clearTimeout(killer);
}

export interface Used {
  cpu_us: number;
  memory_bytes: number;
}

/** CPU time of processes so far, in µs, by the names that they are given under; of those alone whose time can be read. */
export async function cpuOf(pids: Record<string, number | undefined>): Promise<Record<string, number>> {
  const used = Object.entries(pids).map(
    async ([name, pid]) => [name, pid === undefined ? undefined : (await usedBy(pid))?.cpu_us] as const,
  );
  return Object.fromEntries((await Promise.all(used)).filter(([, us]) => us !== undefined)) as Record<string, number>;
}

/** Seconds of CPU between two readings of `cpuOf`. */
export const usedBetween = (before: Record<string, number>, after: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(after).map(([name, us]) => [name, (us - (before[name] as number)) / 1_000_000]));

const ticks_a_second = 100;

/** CPU time and resident memory of a process and its children, ended ones included. Undefined where there is no /proc. */
export async function usedBy(pid: number): Promise<Used | undefined> {
  const processes = await Promise.all(
    (await readdir('/proc').catch(() => []))
      .filter((name) => /^\d+$/.test(name))
      .map((name) => readFile(`/proc/${name}/stat`, 'utf8').then(parseStat, () => undefined)),
  );
  const family = processes.filter((one) => one !== undefined && (one.pid === pid || one.parent === pid));
  const own = family.find((one) => one?.pid === pid);
  if (!own) return undefined;
  return {
    cpu_us: family.reduce((sum, one) => sum + (one?.cpu_us ?? 0), own.ended_us),
    memory_bytes: family.reduce((sum, one) => sum + (one?.memory_bytes ?? 0), 0),
  };
}

function parseStat(text: string) {
  const pid = Number.parseInt(text, 10);
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const us = (...indexes: number[]) =>
    indexes.reduce((sum, index) => sum + (fields[index] as number), 0) * (1_000_000 / ticks_a_second);
  return {
    pid,
    parent: fields[1] as number,
    cpu_us: us(11, 12),
    ended_us: us(13, 14),
    memory_bytes: (fields[21] as number) * 4_096,
  };
}

/** The pid of the Postgres server behind a url on this machine: the parent of the process that serves a connection. */
export async function postmasterOf(url: string): Promise<number | undefined> {
  return onServer(url, async (client) => {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    return readFile(`/proc/${rows[0]?.pid}/stat`, 'utf8').then(
      (text) => parseStat(text).parent,
      () => undefined,
    );
  });
}
