import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Logger, type LoggerOptions, pino } from 'pino';
import sql from 'sql-template-tag';
import type { Config } from './config.ts';
import { findWrongKey } from './core/encryption/key_check.ts';
import type { Vault } from './core/encryption/vault.ts';
import type { Condition, Readiness } from './core/metrics/readiness.ts';
import { by_turns, hasSession } from './core/pool/pooler.ts';
import { isRefusedForTls, urlsByTls } from './core/pool/tls.ts';
import { type Database, openDatabase, run } from './core/postgres/database.ts';
import { isUnavailable, textOf } from './core/postgres/errors.ts';
import { whyNotReady } from './core/postgres/migrate.ts';
import { whyNoSpace } from './core/postgres/outage.ts';
import type { Store, WriteEvents } from './core/postgres/transaction.ts';
import type { Mailer, Retention, Services } from './core/resource/services.ts';
import type { EmbeddedPostgres } from './embedded_postgres/embedded_postgres.ts';
import { openVault } from './encryption_key.ts';
import { createMailer } from './mail/smtp.ts';

/** Logs go to standard error, one JSON object a line; standard output belongs to what commands answer. */
export const createLog = (config: Pick<Config, 'LOG_LEVEL'>): Logger =>
  pino(logOptions(config), pino.destination({ dest: 2, sync: true }));

/** The fields and redactions of every log, wherever it goes. */
export const logOptions = ({ LOG_LEVEL }: Pick<Config, 'LOG_LEVEL'>): LoggerOptions => ({
  level: LOG_LEVEL,
  base: null,
  timestamp: pino.stdTimeFunctions.isoTime,
  serializers: { err: withoutClient },
  redact: {
    paths: ['*.authorization', '*.secret', '*.password', '*.connectionString', 'err.config', 'err.parameters'],
    censor: '[redacted]',
  },
});

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
  const { openEmbeddedPostgres } = await import('./embedded_postgres/embedded_postgres.ts');
  const embedded: EmbeddedPostgres = await openEmbeddedPostgres({
    dataDir: config.RAIL_DATA_DIR,
    mode,
    keepRunning: mode === 'own',
    log: (line, level = 'info') => log[level](line),
  });
  return embedded;
}

/** @param read_url a replica, which gets as many connections again */
export const openStore = (
  url: string,
  connections: { size: number; name: string; is_shared?: boolean },
  log: Logger,
  writeEvents: WriteEvents,
  read_url?: string,
): Store => ({
  database: openDatabase(url, { ...connections, log }),
  replica: read_url === undefined ? undefined : openDatabase(read_url, { ...connections, log }),
  writeEvents,
});

export async function closeStore({ database, replica }: Store): Promise<void> {
  await Promise.all([database.end(), replica?.end()]);
}

/** A host as it stands in a URL: an IPv6 address in brackets. */
const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** Returns whether a host means every address, which no link can name. */
export const isEveryAddress = (host: string): boolean =>
  ['0.0.0.0', '[::]'].includes(URL.parse(`http://${urlHost(host)}`)?.hostname ?? '');

/** Returns the URL by which a client on this machine reaches a server on `host`. */
export function localUrl(host: string, port: number): string {
  const loopback = host.includes(':') ? '::1' : '127.0.0.1';
  return `http://${urlHost(isEveryAddress(host) ? loopback : host)}:${port}`;
}

/** @throws Error where HOST is every address, and nothing says which of them links name */
export function requireBaseUrl({ HOST, BASE_URL }: Config): void {
  if (BASE_URL || !isEveryAddress(HOST)) return;
  throw new Error(
    `BASE_URL is not set, and HOST is ${HOST}, which links cannot name. Set BASE_URL to the URL that clients reach the API at, as in https://rail.example.com.`,
  );
}

/** Opens the services that handlers and tasks need besides the store. Logs a warning when private addresses are allowed. */
export async function openServices(config: Config, log: Logger, database: Database): Promise<Services> {
  const vault = await openVault(config, database);
  if (config.RAIL_WEBHOOK_ALLOW_PRIVATE) {
    log.warn(
      'RAIL_WEBHOOK_ALLOW_PRIVATE=1: webhooks may be sent to private addresses. This is for development and tests alone.',
    );
  }
  const own_hosts = config.BASE_URL ? [new URL(config.BASE_URL).hostname] : [];
  const base_url = baseUrlOf(config);
  return {
    vault,
    allow_private_addresses: config.RAIL_WEBHOOK_ALLOW_PRIVATE,
    base_url,
    own_hosts,
    chat_hosts: config.RAIL_CHAT_HOSTS ?? [],
    name_servers: config.RAIL_WEBHOOK_NAME_SERVERS,
    provider_urls: providerUrls(config),
    search_credentials: searchCredentials(config),
    operator_organization: config.RAIL_OPERATOR_ORGANIZATION,
    visit_interval_ms: 1_000,
    mailer: await openMailer(config, base_url),
    retention: retentionOf(config),
  };
}

/** The URL of the service without a slash at the end: paths are appended to it. */
export const baseUrlOf = ({ BASE_URL, HOST, PORT }: Config): string =>
  (BASE_URL ?? localUrl(HOST, PORT)).replace(/(?<!\/)\/+$/, '');

export const retentionOf = (config: Config): Retention => ({
  event_days: config.EVENT_RETENTION_DAYS,
  mail_days: config.MAIL_RETENTION_DAYS,
  run_days: config.RUN_RETENTION_DAYS,
  audit_days: config.AUDIT_LOG_RETENTION_DAYS,
  click_days: config.CLICK_RETENTION_DAYS ?? null,
  import_days: config.IMPORT_RETENTION_DAYS,
  search_days: config.SEARCH_RETENTION_DAYS,
});

function providerUrls(config: Config): Record<string, string> {
  const { RAIL_PAYPAL_URL, RAIL_WISE_URL, RAIL_STRIPE_URL, RAIL_BRAVE_URL, RAIL_YOUTUBE_URL } = config;
  const billing = { paddle: config.RAIL_PADDLE_URL, chargebee: config.RAIL_CHARGEBEE_URL };
  const payouts = { paypal: RAIL_PAYPAL_URL, wise: RAIL_WISE_URL, stripe: RAIL_STRIPE_URL };
  return setOf({ ...payouts, ...billing, brave: RAIL_BRAVE_URL, youtube: RAIL_YOUTUBE_URL });
}

function searchCredentials(config: Config): Record<string, Record<string, string>> {
  const { RAIL_SEARXNG_URL, RAIL_BRAVE_API_KEY, RAIL_YOUTUBE_API_KEY, RAIL_YOUTUBE_DAILY_QUOTA } = config;
  return setOf<Record<string, string>>({
    searxng: RAIL_SEARXNG_URL === undefined ? undefined : { url: RAIL_SEARXNG_URL },
    brave: RAIL_BRAVE_API_KEY === undefined ? undefined : { api_key: RAIL_BRAVE_API_KEY },
    youtube:
      RAIL_YOUTUBE_API_KEY === undefined
        ? undefined
        : { api_key: RAIL_YOUTUBE_API_KEY, daily_quota: String(RAIL_YOUTUBE_DAILY_QUOTA) },
  });
}

/** Returns the values that are set. */
const setOf = <Value>(values: Record<string, Value | undefined>): Record<string, Value> =>
  Object.fromEntries(Object.entries(values).filter((entry): entry is [string, Value] => entry[1] !== undefined));

/** The sender's domain is that of the service, unless a setting names another; an address of a machine is none. */
async function openMailer({ SMTP_URL, MAIL_FROM }: Config, base_url: string): Promise<Mailer | undefined> {
  if (SMTP_URL === undefined) return undefined;
  const { hostname } = new URL(base_url);
  const domain = isIP(hostname.replace(/^\[|\]$/g, '')) ? 'localhost' : hostname;
  return createMailer({ smtp_url: SMTP_URL, from: MAIL_FROM ?? `Rail <rail@${domain}>` });
}

/** The conditions of a process that serves or works: the database is ready, was used with its key, and takes writes. */
const conditions: { name: string; why(on: Pick<Database, 'query'>, vault: Vault): Promise<string | undefined> }[] = [
  { name: 'database', why: (on) => whyNotReady(on) },
  { name: 'encryption_key', why: findWrongKey },
  { name: 'disk_space', why: (on) => whyNoSpace(on) },
];

/** Returns the reason why such a process waits, as a sentence; undefined where all conditions hold. */
export async function whyUnfit(database: Pick<Database, 'query'>, vault: Vault): Promise<string | undefined> {
  for (const { why } of conditions) {
    const reason = await why(database, vault);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** Each of them, one after the other, for `/readyz?verbose`. One that cannot be checked, because another does not hold, says so. */
async function conditionsOf(on: Pick<Database, 'query'>, vault: Vault): Promise<Condition[]> {
  const found: Condition[] = [];
  for (const { name, why } of conditions) {
    const text = await why(on, vault).catch(({ message }: Error) => `It cannot be checked: ${message}`);
    found.push({ name, state: text === undefined ? 'ok' : 'error', text: text ?? null });
  }
  return found;
}

export const readinessOf = (vault: Vault): Readiness => ({
  why: (on) => whyUnfit(on, vault),
  conditions: (on) => conditionsOf(on, vault),
});

interface WaitOptions {
  log: Logger;
  /** The time of all tries, in milliseconds; 0 for one try. */
  max_wait_ms: number;
  /** Ends the waiting. */
  stopping?: AbortSignal;
  /** Told where a pooler lends sessions for no longer than a transaction. Left out: that is refused. */
  onShared?: (() => void) | undefined;
}

const least_version = 15;

/**
 * Waits until a Postgres answers, and says that it does. An embedded one is up already.
 * @returns its URL, with TLS or without, as `sslmode` lets it be
 * @throws Error when it is away for too long, refuses this user or database, is older than 15, or writes times in another style than ISO
 */
export async function reachPostgres(
  { url: embedded_url }: Pick<Postgres, 'url'>,
  { DATABASE_URL: url }: Pick<Config, 'DATABASE_URL'>,
  { log, max_wait_ms, stopping, onShared }: WaitOptions,
): Promise<string> {
  if (!url) return embedded_url;
  const where = new URL(url).host;
  for (const end = performance.now() + max_wait_ms; ; await sleep(1_000, undefined, { signal: stopping })) {
    try {
      return await fittingUrl(url, onShared);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      const reason = message || code;
      if (!isUnavailable(error)) throw new Error(`Postgres at ${where}: ${reason}`, { cause: error });
      if (performance.now() >= end) throw new Error(whyUnreached(where, error), { cause: error });
      log.warn({ postgres: where, reason }, 'Postgres cannot be reached yet; trying again');
    }
  }
}

function whyUnreached(where: string, error: unknown): string {
  const text = textOf(error);
  if ((error as { code?: string }).code === '53300') return `${where}: ${text}`;
  return `Postgres at ${where} cannot be reached (${text}): check DATABASE_URL, and that it runs.`;
}

/** @throws Error of the last way that `sslmode` allows */
async function fittingUrl(url: string, onShared?: () => void): Promise<string> {
  const [first, second] = urlsByTls(url) as [string, string?];
  try {
    requireFit(await serverSettings(first, onShared));
    return first;
  } catch (error) {
    if (second === undefined || !isRefusedForTls(error as Error)) throw error;
    requireFit(await serverSettings(second, onShared));
    return second;
  }
}

/** A replica that is away is tried as it would be first, once it is back. */
export const replicaUrl = (url: string, onShared?: () => void): Promise<string> =>
  fittingUrl(url, onShared).catch(() => urlsByTls(url)[0] as string);

interface ServerSettings {
  /** The version, in Postgres' own form: `18.4`, `16beta1`. */
  version: string;
  /** Such as `ISO, MDY`. */
  date_style: string;
  /** The user's name in SQL. */
  user: string;
  database: string;
}

async function serverSettings(url: string, onShared?: () => void): Promise<ServerSettings> {
  const client = new pg.Client({ connectionString: url, application_name: 'rail', connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  try {
    await client.connect();
    if (!(await hasSession(client, url))) {
      if (!onShared) throw new Error(by_turns);
      onShared();
    }
    const { rows } = await client.query<ServerSettings>(
      `select current_setting('server_version') as version, current_setting('datestyle') as date_style, quote_ident(current_user) as "user",
        quote_ident(current_database()) as database`,
    );
    return rows[0] as ServerSettings;
  } finally {
    await client.end().catch(() => {});
  }
}

/** @throws Error when it is older than 15, or writes times in a style that is not read here */
export function requireFit({ version, date_style, user, database }: ServerSettings): void {
  if (Number.parseInt(version, 10) < least_version)
    throw new Error(`it is version ${version}, and rail needs ${least_version} or later.`);
  if (!date_style.startsWith('ISO'))
    throw new Error(
      `its DateStyle is '${date_style}', and rail needs ISO. Run: alter role ${user} in database ${database} set datestyle = 'ISO'`,
    );
}

/** @returns why what is read on the replica fails; undefined where it does not, or there is none */
export async function findReplicaFault({ database, replica }: Store): Promise<string | undefined> {
  if (!replica) return undefined;
  try {
    const [[own], [found]] = await Promise.all([identify(database), identify(replica)]);
    return found?.id === own?.id ? undefined : 'it is another database than that of DATABASE_URL';
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return message || code;
  }
}

/** Reads the identity as core.database_epoch() does, which a database that is none of Rail's lacks. A replica has the identifiers of its primary. */
const identify = (database: Database): Promise<{ id: string }[]> =>
  run(
    database,
    sql`select format('%s-%s', c.system_identifier, d.oid) as id
      from pg_control_system() c
      cross join pg_database d
      where d.datname = current_database()`,
  );
