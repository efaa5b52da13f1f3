import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Logger, pino } from 'pino';
import type { Config } from './config.ts';
import { isUnavailable, openDatabase } from './core/database.ts';
import { type EmbeddedPostgres, openEmbeddedPostgres } from './core/embedded_postgres.ts';
import { createMailer, type Mailer } from './core/mail.ts';
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
      serializers: { err: withoutClient },
      redact: {
        paths: ['*.authorization', '*.secret', '*.password', '*.connectionString', 'err.config', 'err.parameters'],
        censor: '[redacted]',
      },
    },
    pino.destination({ dest: 2, sync: true }),
  );

/** The driver hangs its whole connection on an error. */
const withoutClient = (error: Error): object => ({ ...pino.stdSerializers.err(error), client: undefined });

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
  const base_url = (config.BASE_URL ?? `http://${config.HOST}:${config.PORT}`).replace(/\/+$/, '');
  return {
    vault,
    allow_private_addresses: config.RAIL_WEBHOOK_ALLOW_PRIVATE,
    base_url,
    own_hosts,
    name_servers: config.RAIL_WEBHOOK_NAME_SERVERS,
    mailer: await openMailer(config, base_url),
  };
}

/** The sender's domain is that of the service, unless it is told another; an address of a machine is none. */
async function openMailer({ SMTP_URL, MAIL_FROM }: Config, base_url: string): Promise<Mailer | undefined> {
  if (SMTP_URL === undefined) return undefined;
  const { hostname } = new URL(base_url);
  const domain = isIP(hostname.replace(/^\[|\]$/g, '')) ? 'localhost' : hostname;
  return createMailer({ smtp_url: SMTP_URL, from: MAIL_FROM ?? `Rail <rail@${domain}>` });
}

/**
 * The encryption key of the environment; else one that is made once and kept in the data directory. It is written whole, and to the disk,
 * before it has its name, so that nobody reads half of it.
 */
async function openVault(config: Config): Promise<Vault> {
  if (config.RAIL_ENCRYPTION_KEY) return createVault(parseEncryptionKeys(config.RAIL_ENCRYPTION_KEY));
  const file = keyFile(config);
  if (!existsSync(file)) {
    await mkdir(config.RAIL_DATA_DIR, { recursive: true, mode: 0o711 });
    const unnamed = `${file}.${randomUUID()}`;
    await writeFile(unnamed, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flush: true });
    await link(unnamed, file).catch(ignore('EEXIST'));
    await rm(unnamed);
  }
  return createVault(parseEncryptionKeys(await readFile(file, 'utf8')));
}

const keyFile = (config: Config): string => join(config.RAIL_DATA_DIR, 'encryption_key');

/**
 * For processes that share a database with others, and so must share the key with them.
 * @throws Error when there is none in the environment
 */
export function requireSharedKey(config: Config): void {
  if (!config.DATABASE_URL || config.RAIL_ENCRYPTION_KEY) return;
  throw new Error(
    'RAIL_ENCRYPTION_KEY is not set: all processes on one DATABASE_URL need the same key. Make it once with `openssl rand -base64 32`.',
  );
}

/**
 * For what works beside a running service: it may use the key of the data directory, and never makes one.
 * @throws Error when there is none
 */
export function requireSomeKey(config: Config): void {
  if (existsSync(keyFile(config))) return;
  requireSharedKey(config);
}

interface Patience {
  log: Logger;
  /** How long to try again, in milliseconds; 0 for one try. */
  patience_ms: number;
  /** Ends the waiting. */
  stopping?: AbortSignal;
}

const least_version = 15;

/**
 * Waits until a Postgres answers, and says that it does. An embedded one is up already.
 * @throws Error when it is away for too long, refuses this user or database, or is older than 15
 */
export async function reachPostgres(
  { DATABASE_URL: url }: Config,
  { log, patience_ms, stopping }: Patience,
): Promise<void> {
  if (!url) return;
  const where = new URL(url).host;
  for (const end = Date.now() + patience_ms; ; await sleep(1_000, undefined, { signal: stopping })) {
    try {
      return requireVersion(await serverVersion(url));
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      const reason = message || code;
      if (!isUnavailable(error)) throw new Error(`Postgres at ${where}: ${reason}`, { cause: error });
      if (Date.now() >= end)
        throw new Error(`Postgres at ${where} cannot be reached (${reason}): check DATABASE_URL, and that it runs.`, {
          cause: error,
        });
      log.warn({ postgres: where, reason }, 'Postgres cannot be reached yet; trying again');
    }
  }
}

async function serverVersion(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url, application_name: 'rail', connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return rows[0]?.server_version ?? '';
  } finally {
    await client.end().catch(() => {});
  }
}

/** @param version as Postgres tells it: `18.4`, `16beta1`  @throws Error when it is older than 15 */
export function requireVersion(version: string): void {
  if (Number.parseInt(version, 10) >= least_version) return;
  throw new Error(`it is version ${version}, and rail needs ${least_version} or later.`);
}

function ignore(expected: string): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (error.code !== expected) throw error;
  };
}
