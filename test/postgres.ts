import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { migrate } from '../src/core/postgres/migrate.ts';
import { openEmbeddedPostgres } from '../src/embedded_postgres/embedded_postgres.ts';
import { type Lock, tryLock } from '../src/embedded_postgres/lock.ts';

/** The database that every test file's own one is cloned from. */
export const template = 'rail_template';

/**
 * `durable`: as in production. `fast`: what is committed survives the end of every process, but not of the machine, which no test brings about.
 * `synchronous_commit` stays on in both: commits are waited for and become visible as in production.
 */
export type Durability = 'durable' | 'fast';

const settings: Record<Durability, Record<string, string>> = {
  durable: {},
  fast: { fsync: 'off', full_page_writes: 'off' },
};

/** By `fsync`: copying files is the cheapest where they need not be flushed. */
const copy_by = { on: 'wal_log', off: 'file_copy' };
const stop_ms = 15_000;

/**
 * A directory for all that a run of the tests writes, and for the Postgres servers that it starts. Directories of runs that were killed are
 * removed first, with the servers that still run in them.
 */
export async function makeRunDirectory(): Promise<string> {
  for (const name of await readdir(tmpdir())) {
    const path = join(tmpdir(), name);
    if (/^rail-run-\w+$/.test(name) && (await isAbandoned(path))) await removeRunDirectory(path);
  }
  const directory = join(tmpdir(), `rail-run-${randomBytes(6).toString('hex')}`);
  locks.set(directory, tryLock(`${directory}.lock`, 'exclusive')); // held before another run can see the directory
  await mkdir(directory);
  await chmod(directory, 0o711); // Postgres runs as another user than root
  return directory;
}

const locks = new Map<string, Lock | undefined>();

async function isAbandoned(directory: string): Promise<boolean> {
  const { uid } = await stat(directory);
  if (process.getuid && uid !== process.getuid()) return false;
  locks.set(directory, tryLock(`${directory}.lock`, 'exclusive'));
  return locks.get(directory) !== undefined;
}

/** Stops every Postgres in a run's directory, by a signal that saves nothing, and removes the directory. */
export async function removeRunDirectory(directory: string): Promise<void> {
  const postmasters = await Promise.all((await readdir(directory)).map((name) => postgresOf(join(directory, name))));
  for (const pid of postmasters.filter((pid) => pid !== undefined)) {
    if (!(await commandOf(pid)).includes(directory)) continue; // another process has been given the id since
    process.kill(pid, 'SIGQUIT');
    for (const end = Date.now() + stop_ms; isAlive(pid) && Date.now() < end; ) await sleep(10);
  }
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  await rm(`${directory}.lock`, { force: true });
  locks.get(directory)?.release();
  locks.delete(directory);
}

/** The process id of the Postgres that runs on a data directory. */
export async function postgresOf(dataDir: string): Promise<number | undefined> {
  const text = await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8').catch(() => '');
  return Number.parseInt(text, 10) || undefined;
}

/** Empty where there is no such process. */
async function commandOf(pid: number): Promise<string> {
  const ps = () => promisify(execFile)('ps', ['-o', 'command=', '-p', String(pid)]).then(({ stdout }) => stdout);
  return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ps().catch(() => ''));
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Starts a Postgres with the template migrated. It runs until the directory is removed. */
export async function startPostgresIn(directory: string, durability: Durability): Promise<string> {
  const dataDir = await mkdtemp(join(directory, `${durability}-`));
  const { url } = await openEmbeddedPostgres({ dataDir, mode: 'own', settings: settings[durability] });
  await onServer(url, (client) => client.query(`create database ${template}`));
  await migrate(databaseUrl(url, template));
  return url;
}

/** The Postgres of this run; a test file that is run by itself starts one. */
export async function serverUrl(
  t: { teardown(work: () => unknown): void },
  durability: Durability = 'fast',
): Promise<string> {
  const { RAIL_TEST_POSTGRES, RAIL_TEST_DURABLE_POSTGRES } = process.env;
  const running = durability === 'fast' ? RAIL_TEST_POSTGRES : RAIL_TEST_DURABLE_POSTGRES;
  if (running) return running;
  const directory = await makeRunDirectory();
  t.teardown(() => removeRunDirectory(directory));
  return startPostgresIn(directory, durability);
}

/** A fresh, migrated database of its own: its URL. */
export async function cloneDatabase(server_url: string): Promise<string> {
  return databaseUrl(server_url, await newDatabase(server_url, `template ${template}`));
}

/** A fresh database with nothing in it: its name. */
export const emptyDatabase = (server_url: string): Promise<string> => newDatabase(server_url, '');

async function newDatabase(server_url: string, options: string): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await onServer(server_url, async (client) => {
    const { rows } = await client.query<{ fsync: string }>('show fsync');
    const strategy = copy_by[rows[0]?.fsync as 'on' | 'off'];
    await client.query(`create database ${name} ${options} strategy ${strategy}`);
  });
  return name;
}

export function databaseUrl(server_url: string, database: string): string {
  const url = new URL(server_url);
  url.pathname = `/${database}`;
  return url.href;
}

async function onServer(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
