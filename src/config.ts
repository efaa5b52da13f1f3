import { z } from 'zod';

const integer = (least: number, most: number) => z.coerce.number().int().min(least).max(most);
const flag = z.enum(['0', '1']).transform((value) => value === '1');

/** The environment, one line a setting. The README lists them with what they mean. */
const Environment = z.object({
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }).optional(),
  RAIL_DATA_DIR: z.string().min(1).default('.rail'),
  PORT: integer(0, 65_535).default(3000),
  HOST: z.string().min(1).default('127.0.0.1'),
  BASE_URL: z.url({ protocol: /^https?$/ }).optional(),
  RAIL_ENCRYPTION_KEY: z.string().optional(),
  METRICS_PORT: integer(0, 65_535).optional(),
  WORKER_CONCURRENCY: integer(1, 500).default(10),
  DATABASE_POOL_SIZE: integer(2, 500).default(20),
  SMTP_URL: z.url({ protocol: /^smtps?$/ }).optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  RAIL_WEBHOOK_ALLOW_PRIVATE: flag.default(false),
});

export type Config = Readonly<z.infer<typeof Environment>>;

/**
 * Reads the settings, once: nobody else looks at `process.env`. A variable that is set to nothing counts as unset.
 * @throws Error that names each variable which is wrong, and what it should be.
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const result = Environment.safeParse(given);
  if (result.success) return Object.freeze(result.data);
  const faults = result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`The environment is not right.\n  ${faults.join('\n  ')}`);
}
