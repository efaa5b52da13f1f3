/** Opens and closes what commands need that answer and end. */
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { type Config, misspelt, readConfig } from '../config.ts';
import { jsonText } from '../core/formats/json_text.ts';
import { run } from '../core/postgres/database.ts';
import { isMigrated, migrate } from '../core/postgres/migrate.ts';
import type { Store, WriteEvents } from '../core/postgres/transaction.ts';
import { Problem } from '../core/values/problem.ts';
import { createLog, openPostgres, openStore, reachPostgres } from '../service.ts';

/** The command was called wrongly. */
export class UsageError extends Error {
  readonly exitCode = 2;
}

/**
 * Has an error of the API name the options that stand for its fields: `'expires_at'` is `--expires-at`.
 * @param remedy what the command line adds to it
 * @throws UsageError where it is about one of these fields
 */
export const namingOptions = <T>(fields: string[], work: Promise<T>, remedy = ''): Promise<T> =>
  work.catch((error) => {
    if (!(error instanceof Problem && fields.includes(error.details.param ?? ''))) throw error;
    const named = (text: string, field: string) => text.replaceAll(`'${field}'`, `--${field.replaceAll('_', '-')}`);
    throw new UsageError(fields.reduce(named, error.message) + remedy);
  });

export interface Opened {
  config: Config;
  log: Logger;
  store: Store;
  /** The URL of the database, for code that needs a connection of its own. */
  url: string;
}

/**
 * Gives a command the service's database: that of `DATABASE_URL`, or the embedded one of `RAIL_DATA_DIR`, which it finds running or
 * starts for as long as it takes. An embedded one that is new is migrated first.
 * @throws Error when the database lacks migrations, which `rail migrate` brings in
 */
export async function withStore<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
  const config = readConfig();
  const log = createQuietLog(config);
  for (const line of misspelt()) console.error(`rail: ${line}`);
  const postgres = await openPostgres(config, 'use', log);
  try {
    const url = await reachPostgres(postgres, config, { log, max_wait_ms: 0 });
    const store = openStore(url, { size: 3, name: 'rail' }, log, noEvents);
    try {
      await requireMigrations(store, config, url);
      return await work({ config, log, store, url });
    } finally {
      await store.database.end();
    }
  } finally {
    await postgres.stop();
  }
}

/** Emitting loads all products, and with them most of the service's code. */
const noEvents: WriteEvents = () => {
  throw new Error('This command emits no events.');
};

async function requireMigrations({ database }: Store, config: Config, url: string): Promise<void> {
  if (await isMigrated(database)) return;
  if (config.DATABASE_URL) throw new Error("The database lacks migrations: run 'npx --no rail migrate' first.");
  await migrate(url);
}

/** @throws Error when no worker runs, saying what would follow */
export async function requireWorker(store: Store, consequence: string): Promise<void> {
  const missing = await noWorker(store, consequence);
  if (missing !== undefined) throw new Error(missing);
}

/** Says on standard error that no worker runs, and what follows. */
export async function warnWithoutWorker(store: Store, consequence: string): Promise<void> {
  const missing = await noWorker(store, consequence);
  if (missing !== undefined) console.error(`rail: ${missing}`);
}

async function noWorker({ database }: Store, consequence: string): Promise<string | undefined> {
  const workers = await run(database, sql`select id from core.worker limit 1`);
  return workers.length > 0
    ? undefined
    : `No worker runs, so ${consequence}: begin 'npx --no rail start' or 'npx --no rail worker'.`;
}

/** Commands say what they have to say themselves, unless everything is asked for. */
export const createQuietLog = (config: Config): Logger =>
  createLog({ LOG_LEVEL: ['trace', 'debug'].includes(config.LOG_LEVEL) ? config.LOG_LEVEL : 'error' });

/** Answers on standard output: one JSON document, or the lines for people. */
export function answer(data: object, { json, lines }: { json: boolean | undefined; lines: string[] }): void {
  console.log(json ? jsonText(data, 2) : lines.join('\n'));
}
