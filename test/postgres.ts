import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { migrate } from '../src/core/postgres/migrate.ts';
import { openEmbeddedPostgres } from '../src/embedded_postgres/embedded_postgres.ts';

/** The database that every test file's own one is cloned from. */
export const template = 'rail_template';

/** One Postgres for a whole run, with the template migrated. Durable as in production: what is tested is what runs. */
export async function startTestPostgres(): Promise<{ url: string; stop(): Promise<void> }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'rail-test-'));
  const postgres = await openEmbeddedPostgres({ dataDir, mode: 'own' });
  await onServer(postgres.url, (client) => client.query(`create database ${template}`));
  await migrate(databaseUrl(postgres.url, template));
  return {
    url: postgres.url,
    async stop() {
      await postgres.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** The Postgres of this run; a test file that is run by itself starts one. */
export async function serverUrl(t: { teardown(work: () => unknown): void }): Promise<string> {
  if (process.env.RAIL_TEST_POSTGRES) return process.env.RAIL_TEST_POSTGRES;
  const postgres = await startTestPostgres();
  t.teardown(() => postgres.stop());
  return postgres.url;
}

/** A fresh, migrated database of its own: its URL. */
export async function cloneDatabase(server_url: string): Promise<string> {
  return databaseUrl(server_url, await newDatabase(server_url, `template ${template}`));
}

/** A fresh database with nothing in it: its name. */
export const emptyDatabase = (server_url: string): Promise<string> => newDatabase(server_url, '');

async function newDatabase(server_url: string, options: string): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await onServer(server_url, (client) => client.query(`create database ${name} ${options}`));
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
