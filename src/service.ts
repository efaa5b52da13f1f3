import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Logger, pino } from 'pino';
import type { Config } from './config.ts';
import { openDatabase } from './core/database.ts';
import { type EmbeddedPostgres, openEmbeddedPostgres } from './core/embedded_postgres.ts';
import type { Services } from './core/operation.ts';
import { createVault, parseEncryptionKeys, type Vault } from './core/secret.ts';
import type { Store } from './core/transaction.ts';
import { events } from './program/index.ts';
import { eventWriter } from './webhooks/event.ts';

/** Logs go to standard error, one JSON object a line; standard output belongs to what commands answer. */
export const createLog = ({ LOG_LEVEL }: Pick<Config, 'LOG_LEVEL'>): Logger =>
  pino(
    {
      level: LOG_LEVEL,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: {
        paths: ['*.authorization', '*.secret', '*.password', '*.connectionString', 'err.config', 'err.parameters'],
        censor: '[redacted]',
      },
    },
    pino.destination({ dest: 2, sync: true }),
  );

export interface Postgres {
  url: string;
  stop(): Promise<void>;
}

/**
 * The Postgres of this service: `DATABASE_URL`, else the embedded one of `RAIL_DATA_DIR`.
 * @param mode `own` for `rail start`, which keeps it running; `use` for a command, which finds it or starts it for its own duration
 */
export async function openPostgres(config: Config, mode: 'own' | 'use', log: Logger): Promise<Postgres> {
  if (config.DATABASE_URL) return { url: config.DATABASE_URL, stop: async () => {} };
  const embedded: EmbeddedPostgres = await openEmbeddedPostgres({
    dataDir: config.RAIL_DATA_DIR,
    mode,
    log: (line) => log.info(line),
  });
  return embedded;
}

export const openStore = (url: string, config: Config, log: Logger): Store => ({
  database: openDatabase(url, { size: config.DATABASE_POOL_SIZE, name: 'rail', log }),
  writeEvents: eventWriter(events),
});

/** What handlers and tasks need besides the store. Says loudly when private addresses are allowed. */
export async function openServices(config: Config, log: Logger): Promise<Services> {
  const vault = await openVault(config);
  if (config.RAIL_WEBHOOK_ALLOW_PRIVATE) {
    log.warn(
      'RAIL_WEBHOOK_ALLOW_PRIVATE=1: webhooks may be sent to private addresses. This is for development and tests alone.',
    );
  }
  const own_hosts = config.BASE_URL ? [new URL(config.BASE_URL).hostname] : [];
  return { vault, allow_private_addresses: config.RAIL_WEBHOOK_ALLOW_PRIVATE, own_hosts };
}

/** The encryption key of the environment; in development one is made once and kept in the data directory. */
async function openVault(config: Config): Promise<Vault> {
  if (config.RAIL_ENCRYPTION_KEY) return createVault(parseEncryptionKeys(config.RAIL_ENCRYPTION_KEY));
  const file = join(config.RAIL_DATA_DIR, 'encryption_key');
  await mkdir(config.RAIL_DATA_DIR, { recursive: true });
  await writeFile(file, `${randomBytes(32).toString('base64')}\n`, { flag: 'wx', mode: 0o600 }).catch((error) => {
    if (error.code !== 'EEXIST') throw error;
  });
  return createVault(parseEncryptionKeys(await readFile(file, 'utf8')));
}
