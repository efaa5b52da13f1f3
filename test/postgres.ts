import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { openEmbeddedPostgres } from '../src/core/embedded_postgres.ts';
import { migrate } from '../src/core/migrate.ts';

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

/** A fresh, migrated database of its own. */
export async function cloneDatabase(server_url: string, name: string): Promise<string> {
  const database = `test_${createHash('sha256').update(`${name} ${process.pid} ${Math.random()}`).digest('hex').slice(0, 16)}`;
  await onServer(server_url, (client) => client.query(`create database ${database} template ${template}`));
  return databaseUrl(server_url, database);
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
