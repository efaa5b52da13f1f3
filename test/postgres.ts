import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { migrate } from '../src/core/postgres/migrate.ts';
import { openEmbeddedPostgres } from '../src/embedded_postgres/embedded_postgres.ts';
import { databasePrefix } from './runner/profile.ts';
import { makeRunDirectory, removeRunDirectory } from './runner/run_directory.ts';

/** The database that every test file's own one is cloned from. */
export const template = 'rail_template';

/**
 * `durable`: as in production. `fast`: what is committed survives the end of every process, but not of the machine, which no test brings about.
 * `synchronous_commit` stays on in both: commits are waited for and become visible as in production.
 * Both accept more connections than the APIs and workers of all test files that run at once can open.
 */
export type Durability = 'durable' | 'fast';

/** A client hashes the password anew for each connection: 4,096 rounds in place of this one, the largest part of what a connection takes. */
const scram_iterations = '1';

const settings: Record<Durability, Record<string, string>> = {
  durable: { max_connections: '600', scram_iterations },
  // Autovacuum off: a worker of it would look into one of the many databases of a run every second.
  fast: {
    max_connections: '600',
    scram_iterations,
    fsync: 'off',
    full_page_writes: 'off',
    autovacuum_naptime: '10min',
  },
};

/** By `fsync`: copying files is the cheapest where they need not be flushed. */
const copy_by = { on: 'wal_log', off: 'file_copy' };

/** Makes a data directory whose Postgres has all migrations in `rail` and in the template, and does not run. */
export async function prepareDataDir(directory: string): Promise<string> {
  const dataDir = join(directory, 'prepared');
  const postgres = await openEmbeddedPostgres({ dataDir, mode: 'own', settings: settings.fast });
  await migrate(postgres.url);
  await onServer(databaseUrl(postgres.url, 'postgres'), async (client) => {
    await client.query(`create database ${template} template rail`);
    await closeDatabases(client);
    await client.query(`alter role rail password ${client.escapeLiteral(new URL(postgres.url).password)}`);
  });
  await makeCopyable(databaseUrl(postgres.url, template));
  await postgres.stop();
  return dataDir;
}

/** Does what the first login of a data team does on a server. Test files make theirs at the same time, and would disturb each other. */
async function closeDatabases(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select quote_ident(d.datname) as name from pg_database d where d.datallowconn`,
  );
  for (const { name } of rows) await client.query(`revoke connect on database ${name} from public`);
}

/**
 * Makes an empty data directory a copy of the one that this run has prepared: initdb and the migrations take some seconds of CPU time.
 * @returns false where no run has prepared one
 */
export async function copyPrepared(dataDir: string, prepared = process.env.RAIL_TEST_DATA_DIR): Promise<boolean> {
  if (prepared === undefined) return false;
  // Postgres keeps its owner, who may be another user than this one.
  await promisify(execFile)('cp', ['-a', join(prepared, 'postgres'), join(prepared, 'postgres.json'), dataDir]);
  return true;
}

/**
 * Starts a Postgres with the template migrated. It runs until the directory is removed.
 * @param prepared the data directory to copy. Without one, nothing but the template has the migrations and their privileges.
 */
export async function startPostgresIn(directory: string, durability: Durability, prepared?: string): Promise<string> {
  const dataDir = await mkdtemp(join(directory, `${durability}-`));
  const is_copy = prepared !== undefined && (await copyPrepared(dataDir, prepared));
  const { url } = await openEmbeddedPostgres({ dataDir, mode: 'own', settings: settings[durability] });
  if (is_copy) return url;
  await onServer(url, async (client) => {
    await client.query(`create database ${template}`);
    await closeDatabases(client);
  });
  await prepareTemplate(url);
  return url;
}

/** Migrates the template of a server, which is there. */
export async function prepareTemplate(server_url: string): Promise<void> {
  const url = databaseUrl(server_url, template);
  await migrate(url);
  await makeCopyable(url);
}

/** A copy of a database holds emails and payouts, as what was restored does: those of a template are databases of their own. */
const makeCopyable = (url: string): Promise<void> =>
  onServer(url, (client) => client.query('update core.cluster set database_oid = null'));

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

/** A copy of a database as it is at this moment, as a dump that is restored beside it. Its sessions are ended. */
export async function copyDatabase(url: string): Promise<string> {
  const name = new URL(url).pathname.slice(1);
  const server_url = databaseUrl(url, 'postgres');
  await onServer(server_url, async (client) => {
    await client.query(`alter database ${name} allow_connections false`);
    await client.query('select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1', [name]);
  });
  try {
    return databaseUrl(url, await newDatabase(server_url, `template ${name}`));
  } finally {
    await onServer(server_url, (client) => client.query(`alter database ${name} allow_connections true`));
  }
}

/** Drops the databases of a test file that has ended, but for one that something is still connected to. */
export async function dropDatabases(server_url: string, file: string): Promise<void> {
  await onServer(server_url, async (client) => {
    const names = `^${databasePrefix(file)}[0-9a-f]{16}$`;
    const { rows } = await client.query<{ name: string }>(
      'select datname as name from pg_database where datname ~ $1',
      [names],
    );
    for (const { name } of rows)
      await client.query(`drop database ${name}`).catch((error) => {
        if (error.code !== in_use) throw error;
      });
  });
}

const in_use = '55006';

/** A fresh database with nothing in it: its name. */
export const emptyDatabase = (server_url: string): Promise<string> => newDatabase(server_url, '');

async function newDatabase(server_url: string, options: string): Promise<string> {
  const name = `${databasePrefix(process.env.RAIL_TEST_FILE ?? 'file')}${randomBytes(8).toString('hex')}`;
  await onServer(server_url, async (client) => {
    const { rows } = await client.query<{ fsync: string }>('show fsync');
    const strategy = copy_by[rows[0]?.fsync as 'on' | 'off'];
    // Nobody may connect before PUBLIC may not: the audits of tests that run beside this one look for that.
    await client.query(`create database ${name} ${options} strategy ${strategy} allow_connections false`);
    await client.query(`revoke connect on database ${name} from public`);
    await client.query(`alter database ${name} allow_connections true`);
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
