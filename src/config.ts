import { Resolver } from 'node:dns';
import { z } from 'zod';

const integer = (least: number, most: number) => z.coerce.number().int().min(least).max(most);
const nameServers = z
  .string()
  .transform((list) => list.split(',').map((address) => address.trim()))
  .refine(areNameServers, 'IP addresses, perhaps with ports, comma-separated: 1.1.1.1,[2606:4700::1111]:53');
const mailbox = '[^\\s<>()@",:;]+@[^\\s<>()@",:;]+';
/** With or without a name; nothing that could begin a second address or header. */
const oneAddress = new RegExp(`^(?:[^<>()@",:;\\r\\n]+<${mailbox}>|${mailbox})$`);
const flag = z.enum(['0', '1']).transform((value) => value === '1');

/** The environment, one line a setting. `rail --help` lists them. */
const Environment = z.object({
  DATABASE_URL: z
    .url({ protocol: /^postgres(ql)?$/ })
    .optional()
    .describe('Postgres 15 or later. Unset: an embedded Postgres 18 under RAIL_DATA_DIR.'),
  RAIL_DATA_DIR: z
    .string()
    .min(1)
    .default('.rail')
    .describe('Where the embedded Postgres, demo.json and a generated encryption key are kept.'),
  PORT: integer(0, 65_535).default(3000).describe('Port of the API; 0 takes a free one.'),
  HOST: z.string().min(1).default('127.0.0.1').describe('Address that the API listens on; 0.0.0.0 in a container.'),
  BASE_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Public address of the API. No webhook may be sent to its host.'),
  RAIL_ENCRYPTION_KEY: z
    .string()
    .optional()
    .describe('32 bytes in base64 (openssl rand -base64 32), the same for all processes; several, comma-separated.'),
  METRICS_PORT: integer(0, 65_535)
    .optional()
    .describe('Port of GET /metrics for Prometheus, on HOST; 0 takes a free one. Unset: no port is opened.'),
  WORKER_CONCURRENCY: integer(1, 500).default(10).describe('Jobs that a worker runs at a time.'),
  DATABASE_POOL_SIZE: integer(2, 500).default(20).describe('Connections to Postgres that a process keeps at most.'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Logs go to standard error. From debug on, errors of commands come with their stack.'),
  RAIL_WEBHOOK_ALLOW_PRIVATE: flag
    .default(false)
    .describe('1: webhooks may be sent to private addresses, as of rail listen. Development and tests alone.'),
  RAIL_WEBHOOK_NAME_SERVERS: nameServers
    .optional()
    .describe("IP addresses of the name servers that resolve webhooks' hosts, comma-separated. Unset: the system's."),
  SMTP_URL: z
    .url({ protocol: /^smtps?$/ })
    .optional()
    .describe(
      'Server that mail goes out by. Unset: mail is written to the log and to core.outgoing_mail, and not sent.',
    ),
  MAIL_FROM: z
    .string()
    .regex(oneAddress, 'must be one address, as in Rail <rail@example.com>')
    .optional()
    .describe('Sender of mail, as in Rail <rail@example.com>. Unset: rail@ and the host of BASE_URL.'),
});

export type Config = Readonly<z.infer<typeof Environment>>;

/** What can be set, for people: a name, what it means, and what holds when it is unset. */
export const settings = Object.entries(Environment.shape).map(([name, setting]) => ({
  name,
  meaning: setting.description ?? '',
  default_value: setting.parse(undefined),
}));

/**
 * Reads the settings, once: nobody else looks at `process.env`. A variable that is set to nothing counts as unset.
 * @throws Error that names each variable which is wrong, and what it should be.
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const result = Environment.safeParse(given);
  if (result.success) return Object.freeze(result.data);
  const faults = result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`The environment is not right. ${faults.join('; ')}`);
}

function areNameServers(addresses: string[]): boolean {
  try {
    new Resolver().setServers(addresses);
    return true;
  } catch {
    return false;
  }
}

/** Whether errors are to come with their stack: known even where the environment is not right. */
export const wantsStacks = (environment: NodeJS.ProcessEnv = process.env): boolean =>
  ['trace', 'debug'].includes(environment.LOG_LEVEL ?? '');

/** Whether npx runs this: between it and us stands a shell, which does not pass signals on. */
export const isRunByNpx = (environment: NodeJS.ProcessEnv = process.env): boolean =>
  environment.npm_lifecycle_event === 'npx';
