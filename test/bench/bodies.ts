import { randomBytes } from 'node:crypto';
import { request } from 'undici';
import { z } from 'zod';
import { openDatabase } from '../../src/core/postgres/database.ts';
import type { Operation } from '../../src/core/resource/operation.ts';
import { operations } from '../../src/operations.ts';
import { stablePort } from '../ports.ts';
import type { Bench, Figure, Progress, Sample } from './harness.ts';
import { type Merchant, makeMerchant } from './merchant.ts';
import { type Running, startNode, startPostgres } from './processes.ts';

/** The size of a body: less than the 1 MiB that the service reads. */
const bytes = 995_000;
/** The values of a body: less than the 10,000 that the service reads. */
const values = 9_900;

/** Measures for how long the most expensive bodies hold up everybody else's requests. */
export const bodies: Bench = {
  name: 'bodies',
  doc: 'The longest time that the event loop of the API stands still while each operation reads bodies that are built to be slow.',
  defaults: { rounds: 1, seconds: 1 },
  async setup(stack, progress) {
    const url = await startPostgres(stack);
    const metrics_port = String(await stablePort());
    const environment = {
      DATABASE_URL: url,
      RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      METRICS_PORT: metrics_port,
      LOG_LEVEL: 'warn',
    };
    const server = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const database = openDatabase(url, { size: 2, name: 'rail bench' });
    stack.defer(() => database.end());
    const merchant = await makeMerchant(database, server);
    const place: Place = { server, merchant, metrics: `http://127.0.0.1:${metrics_port}/metrics`, progress };
    return {
      postgres_url: url,
      figures,
      notes: [
        'Each body goes into each field of each operation, and only the worst of them is reported: a single pass, whatever --seconds says.',
      ],
      sides: shapes.map(({ name, doc, value }) => ({ name, doc, run: () => worstOf(place, value()) })),
    };
  },
};

const figures: Record<string, Figure> = {
  stall: { unit: 'ms', better: 'lower', doc: 'the longest that the event loop stood still', at_most: 200 },
  idle: { unit: 'ms', better: 'lower', doc: 'the same while nothing is asked: what the machine adds' },
};

interface Place {
  server: Running;
  merchant: Merchant;
  metrics: string;
  progress: Progress;
}

const listOf = (item: string, room = bytes): string =>
  `[${Array(Math.floor(room / (item.length + 1)))
    .fill(item)
    .join()}]`;
const objectOf = (count: number, name = 'key'): string =>
  `{${Array.from({ length: count }, (_, nth) => `"${name}${nth}":${nth}`).join()}}`;

/** The text of a value, each built against another part of what reads a body. */
const shapes: { name: string; doc: string; value: () => string }[] = [
  { name: 'lists', doc: 'lists in a list, to the last byte', value: () => listOf('[]') },
  { name: 'lists_within', doc: 'as many lists as are read', value: () => listOf('[]', values * 3) },
  {
    name: 'objects_within',
    doc: 'as many nested objects as are read',
    value: () => listOf('{"a":{"b":{}}}', (values / 3) * 15),
  },
  {
    name: 'deep_within',
    doc: 'as many lists of 60 levels as are read',
    value: () => listOf(`${'['.repeat(60)}${']'.repeat(60)}`, (values / 60) * 121),
  },
  { name: 'names', doc: '50,000 names', value: () => objectOf(50_000) },
  {
    name: 'names_within',
    doc: 'as many names as are read, each of 90 characters',
    value: () => objectOf(values, 'k'.repeat(85)),
  },
  {
    name: 'texts_within',
    doc: 'as many texts as are read, each of 90 characters',
    value: () => listOf(`"${'t'.repeat(90)}"`, values * 93),
  },
  {
    name: 'numbers_within',
    doc: 'as many numbers as are read, each of 90 digits',
    value: () => listOf('9'.repeat(90), values * 91),
  },
  { name: 'number', doc: 'one number of 995,000 digits', value: () => '9'.repeat(bytes) },
  { name: 'text', doc: 'one text of a letter, again and again', value: () => `"${'a'.repeat(bytes)}"` },
  { name: 'text_of_dots', doc: 'one text of dots and letters', value: () => `"${'a.'.repeat(bytes / 2)}"` },
  {
    name: 'text_of_at',
    doc: 'one text like an address of mail without end',
    value: () => `"a@${'a.'.repeat(bytes / 2 - 2)}a"`,
  },
  {
    name: 'text_of_url',
    doc: 'one text like a URL without end',
    value: () => `"https://a.example/${'%41/../'.repeat(bytes / 7 - 4)}"`,
  },
  { name: 'text_of_spaces', doc: 'one text of spaces', value: () => `"${' '.repeat(bytes)}"` },
  { name: 'text_of_digits', doc: 'one text of digits', value: () => `"${'1'.repeat(bytes)}"` },
  { name: 'text_of_escapes', doc: 'one text of escapes', value: () => `"${'\\u0061'.repeat(bytes / 6)}"` },
];

/** Sends the value in every field of every operation. */
async function worstOf({ server, merchant, metrics, progress }: Place, value: string): Promise<Sample> {
  const idle = await stallDuring(metrics, () => new Promise((resolve) => setTimeout(resolve, 500)));
  let stall = 0;
  for (const { name, method, path, field } of places()) {
    const ms = await stallDuring(metrics, async () => {
      const { statusCode, body } = await request(server.url + path, {
        method,
        headers: merchant.headers,
        body: `{"${field}":${value}}`,
      });
      await body.dump();
      if (statusCode >= 500) throw new Error(`${name} answered ${statusCode} to its ${field}.`);
    });
    if (ms > 100) progress(`bodies: ${name}, ${field}: ${Math.round(ms)} ms`);
    stall = Math.max(stall, ms);
  }
  return { stall, idle };
}

function places(): (Pick<Operation, 'name' | 'method' | 'path'> & { field: string })[] {
  const with_body = operations.filter(({ method }) => method !== 'GET');
  return with_body.flatMap(({ name, method, path, body }) =>
    [...fieldsOf(body), 'unknown'].map((field) => ({
      ...{ name, method, field },
      path: path.replaceAll(/\{\w+\}/g, 'x'),
    })),
  );
}

const fieldsOf = (body: z.ZodType): string[] =>
  Object.keys(z.toJSONSchema(body, { io: 'input', unrepresentable: 'any' }).properties ?? {});

/** The longest that the event loop stood still meanwhile, in ms, as the service itself measures it: it starts anew whenever it is asked. */
async function stallDuring(metrics: string, work: () => Promise<unknown>): Promise<number> {
  await longestStall(metrics);
  await work();
  return longestStall(metrics);
}

async function longestStall(metrics: string): Promise<number> {
  const { body } = await request(metrics);
  const [, seconds] = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(await body.text()) ?? [];
  return Number(seconds) * 1_000;
}
