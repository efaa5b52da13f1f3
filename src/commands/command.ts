/** What all commands that answer and end have in common. */
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { type Config, misspelt, readConfig } from '../config.ts';
import { run } from '../core/postgres/database.ts';
import { isMigrated, migrate } from '../core/postgres/migrate.ts';
import type { Store, WriteEvents } from '../core/postgres/transaction.ts';
import { createLog, openPostgres, openStore, reachPostgres } from '../service.ts';

/** The command was called wrongly. */
export class UsageError extends Error {
  readonly exitCode = 2;
}

export interface Opened {
  config: Config;
  log: Logger;
  store: Store;
  /** Where the database is, for what needs a connection of its own. */
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

/** Who emits loads all products, and with them most of the service's code. */
const noEvents: WriteEvents = () => {
  throw new Error('This command emits no events.');
};

async function requireMigrations({ database }: Store, config: Config, url: string): Promise<void> {
  if (await isMigrated(database)) return;
  if (config.DATABASE_URL) throw new Error("The database lacks migrations: run 'rail migrate' first.");
  await migrate(url);
}

/** @throws Error when no worker runs, saying what would follow */
export async function requireWorker({ database }: Store, consequence: string): Promise<void> {
  const workers = await run(database, sql`select id from core.worker limit 1`);
  if (workers.length === 0) throw new Error(`No worker runs, so ${consequence}: begin 'rail start' or 'rail worker'.`);
}

/** Commands say what they have to say themselves, unless everything is asked for. */
export const createQuietLog = (config: Config): Logger =>
  createLog({ LOG_LEVEL: ['trace', 'debug'].includes(config.LOG_LEVEL) ? config.LOG_LEVEL : 'error' });

/** Answers on standard output: one JSON document, or the lines for people. */
export function answer(data: object, { json, lines }: { json: boolean | undefined; lines: string[] }): void {
  console.log(json ? JSON.stringify(data, null, 2) : lines.join('\n'));
}

/** Lines of aligned columns under their names, or what there is to say when there are none. What cells hold cannot control the terminal. */
export function table(columns: string[], rows: (string | number)[][], when_empty: string): string[] {
  if (rows.length === 0) return [when_empty];
  const cells = [columns, ...rows.map((row) => row.map((cell) => printable(String(cell))))];
  const widths = columns.map((_, column) => Math.max(...cells.map((row) => widthOf(row[column] as string))));
  return cells.map((row) =>
    row
      .map((cell, column) => cell + ' '.repeat((widths[column] as number) - widthOf(cell)))
      .join('  ')
      .trimEnd(),
  );
}

/** Without control characters, but those that join letters and emojis. */
const printable = (text: string): string => text.replaceAll(/(?:(?!\u200c|\u200d)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}])+/gu, ' ');

const characters = new Intl.Segmenter('en');
const wide =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u;

/** How many columns of a terminal a text takes: two for a character of Chinese, Japanese or Korean, and for an emoji. */
function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  return [...characters.segment(text)].reduce((width, { segment }) => width + (wide.test(segment) ? 2 : 1), 0);
}
