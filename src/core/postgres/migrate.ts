import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { once } from '../values/once.ts';
import { watchBlockers } from './blockers.ts';
import { tries } from './database.ts';
import { isRetryable } from './errors.ts';
import { runOutside, runsOutside } from './outside_transaction.ts';
import { ensureRoles, requireOwnership, restoreProtection, setPrivileges, whatStopsRequests } from './privileges.ts';

const sql_dir = join(import.meta.dirname, '../../../sql');
const migration_lock = 7_245_001;
/** Requests queue up behind a lock that is waited for: they wait no longer than so. */
const lock_timeout_ms = 3_000;
const most_pause_ms = 15_000;
/** The number of times that the migrations are tried, each time with a longer pause: some ten minutes. */
const lock_tries = 40;
const lock_not_available = '55P03';
const turn_poll_ms = 200;
/** A table or view, a function, a type or another object that is not there. */
const names_nothing = new Set(['42P01', '42883', '42704']);
const isMigration = ({ name }: Digest): boolean => name.startsWith('migrations/');
const first_migration = 'migrations/0001_core.sql';

export interface File {
  name: string;
  text: string;
  sha256: string;
}

type Digest = Omit<File, 'text'>;

/** The files of this version, as they are when the process first asks: a checkout may change under one that runs. */
const ownFiles = once(async (): Promise<Digest[]> => {
  return (await allFiles(sql_dir)).map(({ name, sha256 }) => ({ name, sha256 }));
});

/**
 * Brings a database up to date: graphile-worker's schema, then sql/migrations once and in order and those of sql/live whose text
 * changed, in one transaction unless a file runs outside of one; then the privileges of the service's roles. Under an advisory lock, so that
 * N starting replicas do it once; the others wait. No request waits long for it: a lock that is not free within three seconds is asked for again later.
 * @param report takes what the migrations wait for and warn of, a sentence at a time
 * @param folder with the folders `migrations` and `live`
 * @returns the names of the files that were run, and the statements that set privileges right
 * @throws Error when a migration that has run was edited afterwards, or with the statement that this user may not run
 */
export async function migrate(
  url: string,
  report: (line: string) => void = () => {},
  folder = sql_dir,
): Promise<string[]> {
  const client = new pg.Client({ connectionString: url, application_name: 'rail migrate' });
  client.on('notice', ({ severity, message }) => severity === 'WARNING' && report(message as string));
  await client.connect();
  try {
    await waitForTurn(client);
    await client.query(`set lock_timeout = ${lock_timeout_ms}`);
    await requireOwnership(client);
    await unlocked(url, client, report, () => migrateQueue(url));
    await client.query('create schema if not exists migration');
    await client.query(`create table if not exists migration.applied (
      name text primary key, sha256 text not null, applied_at timestamptz not null default now())`);
    const pending = await pendingFiles(client, folder);
    await ensureRoles(client, pending[0]?.name === first_migration);
    for (const files of inTransactions(pending)) await unlocked(url, client, report, () => applyGroup(client, files));
    await unlocked(url, client, report, () => client.query('call core.adopt()'));
    const ran = [...pending.map(({ name }) => name), ...(await setPrivileges(client))];
    return [...ran, ...(await restoreProtection(client, report))];
  } finally {
    await client.end();
  }
}

/**
 * Returns whether the migrations that this version needs are in. A file of functions may be of another version, so that the replicas of a rolling
 * deploy stay ready while the newer functions are in.
 */
export async function isMigrated(on: Pick<pg.Pool, 'query'>): Promise<boolean> {
  try {
    return (await notApplied(on, await ownFiles())).every(({ name, known }) => known && name.startsWith('live/'));
  } catch (error) {
    if ((error as { code?: string }).code === '42P01') return false;
    throw error;
  }
}

export interface Migrated {
  /** Files that this version needs. */
  missing: string[];
  /** Files of functions that another version has brought in. */
  differing: string[];
  /** Files that this version does not know. */
  unknown: string[];
}

/** Returns the state of the migrations, file by file. */
export async function whatIsMigrated(on: Pick<pg.Pool, 'query'>): Promise<Migrated> {
  const { rows } = await on.query<{ is_new: boolean }>(`select to_regclass('migration.applied') is null as is_new`);
  const own = await ownFiles();
  const files = own.map(({ name }) => name);
  if (rows[0]?.is_new) return { missing: files, differing: [], unknown: [] };
  const pending = await notApplied(on, own);
  const isDiffering = ({ name, known }: Digest & { known: boolean }) => known && name.startsWith('live/');
  const applied = await on.query<{ name: string }>('select name from migration.applied');
  return {
    missing: pending.filter((file) => !isDiffering(file)).map(({ name }) => name),
    differing: pending.filter(isDiffering).map(({ name }) => name),
    unknown: applied.rows
      .map(({ name }) => name)
      .filter((name) => name.startsWith('migrations/') && !files.includes(name)),
  };
}

/** Returns the reason why processes that serve or work must wait, as a sentence; undefined where the database is ready for them. */
export async function whyNotReady(on: Pick<pg.Pool, 'query'>): Promise<string | undefined> {
  if (!(await isMigrated(on))) return "The database is missing migrations. Run 'npx --no rail migrate'.";
  const { rows } = await on.query<{ is_here: boolean }>(
    'select exists (select from core.cluster c join pg_control_system() s using (system_identifier)) as is_here',
  );
  if (!rows[0]?.is_here) return "The database was restored from a dump. Run 'npx --no rail migrate'.";
  const missing = await whatStopsRequests(on);
  return missing && `The database is missing privileges (${missing}). Run 'npx --no rail migrate'.`;
}

/** The tables of graphile-worker. Loaded here: whoever only asks whether a database is migrated is spared it. */
async function migrateQueue(url: string): Promise<void> {
  const { runMigrations } = await import('graphile-worker');
  const pgPool = new pg.Pool({
    connectionString: url,
    onConnect: async (client) => void (await client.query(`set lock_timeout = ${lock_timeout_ms}`)),
  });
  // A statement on a connection that breaks fails by itself.
  pgPool.on('error', () => {}).on('connect', (client) => client.on('error', () => {}));
  try {
    await runMigrations({ pgPool });
  } finally {
    await pgPool.end();
  }
}

/** Without a statement that waits: its snapshot would be waited for by an index that another process builds outside a transaction. */
async function waitForTurn(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query('select pg_try_advisory_lock($1) as mine', [migration_lock]);
    if (rows[0].mine) return;
    await sleep(turn_poll_ms);
  }
}

/** Returns the files to run; `known` where an earlier text of the file was run. */
export const pendingFiles = async (
  on: Pick<pg.Pool, 'query'>,
  folder = sql_dir,
): Promise<(File & { known: boolean })[]> => notApplied(on, await allFiles(folder));

/** @throws Error when a migration that has run was edited afterwards */
async function notApplied<Each extends Digest>(
  on: Pick<pg.Pool, 'query'>,
  files: Each[],
): Promise<(Each & { known: boolean })[]> {
  const { rows } = await on.query<Digest>('select name, sha256 from migration.applied');
  const applied = new Map(rows.map(({ name, sha256 }) => [name, sha256]));
  const isEdited = ({ name, sha256 }: Digest) => applied.has(name) && applied.get(name) !== sha256;
  const edited = files.find((file) => isMigration(file) && isEdited(file));
  if (edited?.name === first_migration)
    throw new Error(
      'This database was made by a version of Rail before 0.1.0, which cannot be upgraded. Set DATABASE_URL to an empty database.',
    );
  if (edited)
    throw new Error(
      `${edited.name} was edited after it ran on this database. Undo that, and put the change into a new migration.`,
    );
  return files
    .filter(({ name, sha256 }) => applied.get(name) !== sha256)
    .map((file) => ({ ...file, known: applied.has(file.name) }));
}

const allFiles = async (folder: string): Promise<File[]> => [
  ...(await filesIn(folder, 'migrations')),
  ...(await filesIn(folder, 'live')),
];

async function filesIn(folder: string, kind: 'migrations' | 'live'): Promise<File[]> {
  const names = (await readdir(join(folder, kind), { recursive: true })).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(folder, kind, name), 'utf8');
      return { name: `${kind}/${name}`, text, sha256: createHash('sha256').update(text).digest('hex') };
    }),
  );
}

/** The files in their order, in groups: each that runs outside a transaction is one of its own. */
export function inTransactions(files: File[]): File[][] {
  const groups: File[][] = [];
  for (const file of files) {
    const last = groups.at(-1);
    if (last?.[0] && !runsOutside(last[0]) && !runsOutside(file)) last.push(file);
    else groups.push([file]);
  }
  return groups;
}

/** Waits between the tries for those that hold the locks, and not in front of everybody else in the queue for them. */
async function unlocked(
  url: string,
  client: pg.Client,
  report: (line: string) => void,
  work: () => Promise<unknown>,
): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  await using blockers = await watchBlockers(url, rows[0]?.pid as number);
  for (let attempt = 1; ; attempt++) {
    try {
      await work();
      return;
    } catch (error) {
      if (!isLocked(error) || attempt === lock_tries) throw error;
      const pause_ms = Math.min(attempt * 1_000, most_pause_ms);
      report(`The migrations wait for a lock that ${blockers.last()} holds. Trying again in ${pause_ms / 1_000} s.`);
      await sleep(pause_ms);
    }
  }
}

const isLocked = (error: unknown): boolean =>
  (((error as Error).cause ?? error) as { code?: string }).code === lock_not_available;

const applyGroup = (client: pg.Client, files: File[]): Promise<void> =>
  files[0] && runsOutside(files[0]) ? apply(client, files[0], runOutside) : applyAll(client, files);

/**
 * All or none: the processes of the version before never meet the new schema with the old functions. They run on meanwhile: a deadlock with
 * one of them is tried again.
 */
async function applyAll(client: pg.Client, files: File[], attempt = 1): Promise<void> {
  await client.query(`begin; set local lock_timeout = ${lock_timeout_ms}`);
  try {
    for (const file of files.filter(isMigration)) await apply(client, file);
    await applyLive(
      client,
      files.filter((file) => !isMigration(file)),
    );
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    if (attempt === tries || !isRetryable((error as Error).cause ?? error)) throw error;
    await applyAll(client, files, attempt + 1);
  }
}

/** Functions and views name each other: a file that names what is not there yet runs after the others. */
async function applyLive(client: pg.Client, files: File[]): Promise<void> {
  const later: File[] = [];
  for (const file of files) {
    await client.query('savepoint file');
    try {
      await apply(client, file);
    } catch (error) {
      if (!names_nothing.has(((error as Error).cause as { code?: string }).code ?? '')) throw error;
      await client.query('rollback to savepoint file');
      later.push(file);
      if (later.length === files.length) throw error;
    }
  }
  if (later.length > 0) await applyLive(client, later);
}

async function apply(
  client: pg.Client,
  { name, text, sha256 }: File,
  run: (client: pg.Client, text: string, lock_timeout_ms: number) => Promise<unknown> = runWhole,
): Promise<void> {
  try {
    await run(client, text, lock_timeout_ms);
    await client.query(
      `insert into migration.applied (name, sha256) values ($1, $2)
      on conflict (name) do update set sha256 = excluded.sha256, applied_at = now()`,
      [name, sha256],
    );
  } catch (error) {
    throw new Error(`${name} failed: ${(error as Error).message}`, { cause: error });
  }
}

const runWhole = (client: pg.Client, text: string) => client.query(text);
