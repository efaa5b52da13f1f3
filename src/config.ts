import { Resolver } from 'node:dns';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { trustedProxies } from './core/net/client_address.ts';
import { distance } from './core/values/texts/nearest.ts';

function integer(least: number, most: number) {
  const bounds = `must be an integer from ${least} to ${most}`;
  const inBounds = (value: number) => value >= least && value <= most;
  return z.string().trim().regex(/^\d+$/, bounds).transform(Number).refine(inBounds, bounds);
}
const url = (protocol: RegExp, example: string) =>
  z.url({ protocol, abort: true, error: `must be a URL such as ${example}` });
/** Links add a path to it. */
const baseUrl = url(/^https?$/, 'https://rail.example.com').refine(
  (given) => ['username', 'password', 'search', 'hash'].every((part) => new URL(given)[part as 'search'] === ''),
  'must be a URL such as https://rail.example.com, without a user, ? and #',
);
const encoded = 'with special characters of the password percent-encoded (%23 for #)';
const postgresUrl = url(/^postgres(ql)?$/, `postgres://rail:secret@db.example.com/rail, ${encoded}`);
const nameServers = z
  .string()
  .transform((list) => list.split(',').map((address) => address.trim()))
  .refine(
    areNameServers,
    'must be IP addresses, optionally with ports, comma-separated, such as 1.1.1.1,[2606:4700::1111]:53',
  );
const hostNames = z
  .string()
  .transform((list) => list.split(',').map((host) => host.trim().toLowerCase()))
  .refine(
    (hosts) => hosts.every((host) => /^[a-z0-9.-]+$/.test(host)),
    'must be host names, comma-separated, such as chat.example.com,hooks.example.com',
  );
const mailbox = '[^\\s<>()@",:;]+@[^\\s<>()@",:;]+';
/** An address with or without a name; nothing that could begin a second address or header. */
const oneAddress = new RegExp(`^(?:[^<>()@",:;\\r\\n]+<${mailbox}>|${mailbox})$`);
const loopback = /^http:\/\/(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])(?::\d+)?(?:\/|$)/;
const providerUrl = (provider: string) =>
  url(/^https?$/, 'https://api.example.com')
    .refine((given) => given.startsWith('https:') || loopback.test(given), 'must be https, or http to this machine')
    .optional()
    .describe(`Base URL of ${provider}. Set it only to test with another server. Unset: the provider's own.`);
const apiKey = (provider: string) =>
  z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/, 'must be an API key')
    .optional()
    .describe(`API key of ${provider}, for searches of organizations that have not set their own. Unset: none.`);
const flag = z.enum(['0', '1'], 'must be 0 or 1').transform((value) => value === '1');
const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** The environment, one line a setting. `rail --help` lists them. */
const Environment = z.object({
  DATABASE_URL: postgresUrl
    .optional()
    .describe('Postgres 15 or later. Unset: an embedded Postgres 18 under RAIL_DATA_DIR.'),
  DATABASE_READ_URL: postgresUrl
    .optional()
    .describe(
      'A replica of DATABASE_URL, for the same user, which reports, data logins and GraphQL read. Unset: they read DATABASE_URL.',
    ),
  DATABASE_PASSWORD: z
    .string()
    .min(1)
    .optional()
    .describe('Password of DATABASE_URL and DATABASE_READ_URL, where they contain none. Unset: none is added.'),
  RAIL_DATA_DIR: z
    .string()
    .min(1)
    .default('.rail')
    .describe('Directory of the embedded Postgres, demo.json and the generated encryption key.'),
  PORT: integer(0, 65_535).default(3000).describe('Port of the API; 0 selects a free port.'),
  HOST: z.string().min(1).default('127.0.0.1').describe('Address that the API listens on; 0.0.0.0 in a container.'),
  BASE_URL: baseUrl
    .optional()
    .describe(
      'URL that clients reach the API at, which links and emails contain. Webhooks cannot be sent to its host. Required by api and worker if HOST is 0.0.0.0 or ::. Unset: http://HOST:PORT.',
    ),
  DRAIN_SECONDS: integer(0, 60)
    .default(0)
    .describe(
      'Seconds for which an API behind a proxy goes on taking requests when it is stopped. /readyz answers 503 meanwhile, and each connection is closed with its next answer.',
    ),
  RAIL_ENCRYPTION_KEY: z
    .string()
    .optional()
    .describe(
      '32 bytes in base64 (openssl rand -base64 32), the same in all processes. Several keys: comma-separated; the first one encrypts. Unset: a key that is generated once, in RAIL_DATA_DIR.',
    ),
  METRICS_PORT: integer(0, 65_535)
    .optional()
    .describe('Port of GET /metrics, /healthz and /readyz, on HOST; 0 selects a free port. Unset: no port is opened.'),
  OTEL_EXPORTER_OTLP_ENDPOINT: url(/^https?$/, 'http://collector.example.com:4318')
    .optional()
    .describe(
      'OTLP endpoint that requests, jobs and deliveries are sent to as OpenTelemetry traces. Other OTEL_… variables are those of OpenTelemetry. Unset: nothing is traced.',
    ),
  OTEL_SERVICE_NAME: z
    .string()
    .optional()
    .describe('Name of the service in traces. Unset: rail-api, rail-worker or rail-start.'),
  WORKER_CONCURRENCY: integer(1, 500)
    .default(10)
    .describe(
      'Jobs that a worker runs at a time. It sends webhooks to ten times as many endpoints at a time, and to twice as many slow ones.',
    ),
  DATABASE_POOL_SIZE: integer(1, 500)
    .default(20)
    .describe(
      'Maximum number of connections to Postgres per process. api needs 4, worker 11, and start 15, and one more with METRICS_PORT.',
    ),
  EVENT_RETENTION_DAYS: integer(7, 3_650)
    .default(30)
    .describe(
      'Days that events and webhook deliveries are kept. They are deleted a week at a time, so up to eight days later.',
    ),
  MAIL_RETENTION_DAYS: integer(7, 3_650)
    .default(90)
    .describe('Days that mail to people of organizations is kept in core.outgoing_mail.'),
  AUDIT_LOG_RETENTION_DAYS: integer(30, 3_650).default(400).describe('Days that entries of the audit log are kept.'),
  RUN_RETENTION_DAYS: integer(60, 3_650).default(90).describe('Days that runs of scheduled jobs are kept.'),
  CLICK_RETENTION_DAYS: integer(400, 3_650)
    .optional()
    .describe(
      'Days that clicks are kept of visitors who became no customers. Reports count the clicks that are there. Unset: all are kept.',
    ),
  IMPORT_RETENTION_DAYS: integer(7, 3_650)
    .default(90)
    .describe('Days that imports of prospects and the rows that they refused are kept after they end.'),
  SEARCH_RETENTION_DAYS: integer(30, 3_650)
    .default(365)
    .describe(
      'Days that the results of searches, the visits of scans and the pages that they fetched are kept. Searches, scans and prospects stay.',
    ),
  TRUSTED_PROXIES: z
    .string()
    .transform((setting) => setting.trim())
    .refine(
      areProxies,
      'must be the number of proxies, from 0 to 9, or their networks, comma-separated, such as 10.0.0.0/8, and not every address',
    )
    .optional()
    .describe(
      'Proxies in front of the API whose X-Forwarded-For is trusted: their number, or their networks. Unset: none.',
    ),
  MAX_CONNECTIONS: integer(1, 1_000_000)
    .optional()
    .describe('Maximum number of HTTP connections per process. Unset: 60 % of its file descriptors, at most 10,000.'),
  RATE_LIMIT_PER_ADDRESS: integer(0, 1_000_000)
    .default(100)
    .describe('Requests per second and process that one public address may make without a valid API key; 0: no limit.'),
  LOG_LEVEL: z
    .enum(levels, `must be one of ${levels.join(', ')}`)
    .default('info')
    .describe(
      `${levels.join(', ')}. Logs go to standard error. With debug or trace, errors of commands include a stack trace.`,
    ),
  RAIL_WEBHOOK_ALLOW_PRIVATE: flag
    .default(false)
    .describe(
      '1: webhooks may be sent to private addresses, such as that of a listener on this machine. For development and tests only. npm start sets it.',
    ),
  RAIL_WEBHOOK_NAME_SERVERS: nameServers
    .optional()
    .describe(
      'IP addresses of the name servers that resolve hosts of webhooks, comma-separated. Unset: those of the system.',
    ),
  RAIL_DEMO_MAIL: flag
    .default(false)
    .describe(
      '1: npm start also runs a mail server, a search engine and websites on loopback, to try recruitment. No email leaves this machine.',
    ),
  RAIL_OPERATOR_ORGANIZATION: z
    .string()
    .regex(/^org_[0-9a-z]{26}$/, 'must be the id of an organization, such as org_…')
    .optional()
    .describe(
      'Organization whose owners and admins see jobs and health of the whole service in the dashboard. Unset: nobody does; with npm start, the demo organization.',
    ),
  RAIL_CHAT_HOSTS: hostNames
    .optional()
    .describe(
      'Hosts that team-chat endpoints may be at, comma-separated, besides those of Slack, Discord and Microsoft Teams.',
    ),
  RAIL_PAYPAL_URL: providerUrl('PayPal'),
  RAIL_WISE_URL: providerUrl('Wise'),
  RAIL_STRIPE_URL: providerUrl('Stripe'),
  RAIL_PADDLE_URL: providerUrl('Paddle'),
  RAIL_CHARGEBEE_URL: providerUrl('Chargebee'),
  RAIL_SEARXNG_URL: url(/^https?$/, 'https://search.example.com')
    .optional()
    .describe(
      'URL of a SearXNG instance for searches, with JSON among its formats. Its address may be private. Unset: none.',
    ),
  RAIL_BRAVE_API_KEY: apiKey('the Brave Search API'),
  RAIL_BRAVE_URL: providerUrl('the Brave Search API'),
  RAIL_YOUTUBE_API_KEY: apiKey('the YouTube Data API'),
  RAIL_YOUTUBE_DAILY_QUOTA: integer(1, 100_000_000)
    .default(10_000)
    .describe('Quota units of RAIL_YOUTUBE_API_KEY that searches may use per day.'),
  RAIL_YOUTUBE_URL: providerUrl('the YouTube Data API'),
  SMTP_URL: url(/^smtps?$/, `smtps://user:password@smtp.example.com, ${encoded}`)
    .optional()
    .describe(
      'SMTP server that sends mail. Unset: mail is written to the log and to core.outgoing_mail, and not sent.',
    ),
  MAIL_FROM: z
    .string()
    .regex(oneAddress, 'must be one address, such as Rail <rail@example.com>')
    .optional()
    .describe('Sender of mail, such as Rail <rail@example.com>. Unset: rail@ and the host of BASE_URL.'),
});

export type Config = Readonly<z.infer<typeof Environment>>;

/** The settings, for people: the name, the meaning, and the default. */
export const settings = Object.entries(Environment.shape).map(([name, setting]) => ({
  name,
  meaning: setting.description ?? '',
  default_value: setting.parse(undefined),
}));

/** The settings that hold a password or a key. */
export const secret_settings = [
  'DATABASE_URL',
  'DATABASE_READ_URL',
  'DATABASE_PASSWORD',
  'RAIL_ENCRYPTION_KEY',
  'SMTP_URL',
  'RAIL_BRAVE_API_KEY',
  'RAIL_YOUTUBE_API_KEY',
] as const satisfies (keyof Config)[];

/**
 * Reads the settings, once: nothing else reads `process.env`. An empty variable counts as unset. `NAME_FILE` names a file that holds the setting `NAME`.
 * @throws Error that names each invalid variable, and what is allowed
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const result = Environment.safeParse({ ...given, ...readFiles(given) });
  if (result.success) return Object.freeze(withPassword(result.data));
  const faults = result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`Invalid environment. ${faults.join('; ')}`);
}

const isFile = (name: string): boolean => name.endsWith('_FILE') && name.slice(0, -5) in Environment.shape;

function readFiles(given: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const files = Object.entries(given).filter(([name]) => isFile(name)) as [string, string][];
  return Object.fromEntries(
    files.map(([name, path]) => {
      const setting = name.slice(0, -5);
      if (given[setting] !== undefined)
        throw new Error(`Invalid environment. Set ${setting} or ${name}, and not both.`);
      return [setting, readSetting(name, path)];
    }),
  );
}

function readSetting(name: string, path: string): string {
  try {
    const text = readFileSync(path, 'utf8').trim();
    if (text !== '') return text;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`Invalid environment. ${name}: the file ${path} cannot be read (${code}).`);
  }
  throw new Error(`Invalid environment. ${name}: the file ${path} is empty.`);
}

function withPassword(config: z.infer<typeof Environment>): z.infer<typeof Environment> {
  const complete = (text: string | undefined) => {
    const { DATABASE_PASSWORD: password } = config;
    if (text === undefined || password === undefined || new URL(text).password !== '') return text;
    const url = new URL(text);
    url.password = encodeURIComponent(password);
    return url.href;
  };
  const { DATABASE_URL, DATABASE_READ_URL } = config;
  return { ...config, DATABASE_URL: complete(DATABASE_URL), DATABASE_READ_URL: complete(DATABASE_READ_URL) };
}

/**
 * Finds names that may be misspelt: every unknown `RAIL_…`, and those that differ from another setting by underscores and by a few letters. Returns a
 * sentence for each; none of them is an error, because others set variables too.
 */
export function misspelt(environment: NodeJS.ProcessEnv = process.env): string[] {
  const unknown = Object.keys(environment).filter(
    (name) => !(name in Environment.shape) && !isFile(name) && !name.startsWith('RAIL_TEST_'),
  );
  return unknown.flatMap((name) => {
    const meant = settings.find((setting) => isNearly(name, setting.name));
    if (meant) return [`${name} is not a setting. Did you mean ${meant.name}?`];
    return name.startsWith('RAIL_') ? [`${name} is not a setting. 'npx --no rail help' lists all settings.`] : [];
  });
}

/** A letter in four, and at most three (`PROXY`, `PROXIES`): names as short as PORT are near to what others set. */
function isNearly(given: string, setting: string): boolean {
  const [a, b] = [given, setting].map((name) => name.toUpperCase().replaceAll('_', '')) as [string, string];
  const most = b.length > 5 ? Math.min(3, Math.floor(b.length / 4)) : 0;
  return Math.abs(a.length - b.length) <= most && distance(a, b) <= most;
}

function areProxies(setting: string): boolean {
  return isTaken(() => trustedProxies(setting));
}

function areNameServers(addresses: string[]): boolean {
  return isTaken(() => new Resolver().setServers(addresses));
}

function isTaken(use: () => unknown): boolean {
  try {
    use();
    return true;
  } catch {
    return false;
  }
}

/** Returns whether errors include their stack: known even where the environment is invalid. */
export const wantsStacks = (environment: NodeJS.ProcessEnv = process.env): boolean =>
  ['trace', 'debug'].includes(environment.LOG_LEVEL ?? '');

/** Returns whether npx runs this process: it does so through a shell, which does not forward signals. */
export const isRunByNpx = (environment: NodeJS.ProcessEnv = process.env): boolean =>
  environment.npm_lifecycle_event === 'npx';
