import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { type Config, readConfig } from '../../config.ts';
import { examine, isLacking, type Line } from '../../core/doctor/check.ts';
import { textOf } from '../../core/postgres/errors.ts';
import { loadChecks } from '../../products.ts';
import { openPostgres, type Postgres, reachPostgres } from '../../service.ts';
import { answer, createQuietLog } from '../command.ts';
import { databaseChecks } from './database.ts';
import { machineChecks } from './machine.ts';
import { linesOf, summaryOf } from './picture.ts';
import { settingLines } from './settings.ts';

/** `rail doctor`. Exit code 1: something is wrong. */
export async function doctor({ json }: { json?: boolean }): Promise<void> {
  const lines: Line[] = [];
  for await (const line of diagnose(process.env)) {
    lines.push(line);
    if (!json) console.log(linesOf(line).join('\n'));
  }
  answer(lines, { json, lines: ['', summaryOf(lines)] });
  if (lines.some(({ state }) => state === 'error')) process.exitCode = 1;
}

/** Says what it finds as it finds it: first what needs no database. */
export async function* diagnose(environment: NodeJS.ProcessEnv): AsyncGenerator<Line> {
  let config: Config;
  try {
    config = readConfig(environment);
  } catch (invalid) {
    yield line('settings/values', (invalid as Error).message, 'No process starts until this is mended.');
    return;
  }
  yield* settingLines(config, environment);
  yield* examine(machineChecks(config));
  yield* diagnoseDatabase(config);
}

const line = (name: string, text: string, remedy: string): Line => ({ name, state: 'error', text, remedy });

async function* diagnoseDatabase(config: Config): AsyncGenerator<Line> {
  if (!config.DATABASE_URL && !existsSync(join(config.RAIL_DATA_DIR, 'postgres.json'))) {
    const text = `DATABASE_URL is not set, and ${config.RAIL_DATA_DIR} holds no database.`;
    yield line('postgres/reachable', text, "Set DATABASE_URL or RAIL_DATA_DIR, or begin 'npx --no rail start'.");
    return;
  }
  let postgres: Postgres | undefined;
  let client: pg.Client | undefined;
  try {
    postgres = await openPostgres(config, 'use', createQuietLog(config));
    client = await connect(postgres, config);
  } catch (failure) {
    yield line('postgres/reachable', textOf(failure), 'Until Postgres answers, nothing else of it can be checked.');
  }
  try {
    if (client) yield* diagnoseWith(client, config);
  } finally {
    await client?.end().catch(() => {});
    await postgres?.stop();
  }
}

/** A connection of its own, as the processes would open it. */
async function connect(postgres: Postgres, config: Config): Promise<pg.Client> {
  const url = await reachPostgres(postgres, config, { log: createQuietLog(config), max_wait_ms: 0 });
  const client = new pg.Client({
    connectionString: url,
    application_name: 'rail doctor',
    connectionTimeoutMillis: 5_000,
    query_timeout: 10_000,
  });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** Checks that lack their tables, in a database that is not migrated, are left out. */
async function* diagnoseWith(client: pg.Client, config: Config): AsyncGenerator<Line> {
  let is_migrated = true;
  for await (const found of examine([...(await loadChecks()), ...databaseChecks(config)], client)) {
    if (found.name === 'postgres/migrations') is_migrated = found.state !== 'error';
    if (is_migrated || !isLacking(found)) yield found;
  }
}
