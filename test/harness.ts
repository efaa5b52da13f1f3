import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { pino } from 'pino';
import sql, { type Sql } from 'sql-template-tag';
import t from 'tap';
import { type Dispatcher, request } from 'undici';
import { buildApi } from '../src/api.ts';
import { type Violation, violations } from '../src/commands/audit.ts';
import { createKey } from '../src/core/access/api_key.ts';
import { createOrganization } from '../src/core/access/organization.ts';
import { createUser } from '../src/core/access/user.ts';
import { errorsOf } from '../src/core/description/operation_errors.ts';
import { createVault } from '../src/core/encryption/vault.ts';
import { register, runTick } from '../src/core/jobs/schedule.ts';
import { superviseWorker, type Worker, type WorkerOptions } from '../src/core/jobs/supervisor.ts';
import { trustedProxies } from '../src/core/net/client_address.ts';
import { openDatabase, run } from '../src/core/postgres/database.ts';
import { type Store, transaction } from '../src/core/postgres/transaction.ts';
import type { Mailer, Retention } from '../src/core/resource/services.ts';
import { newId } from '../src/core/values/id.ts';
import type { ProblemCode } from '../src/core/values/problem.ts';
import { operations } from '../src/operations.ts';
import { audits, extensions, schedules, writeEvents } from '../src/products.ts';
import { cloneDatabase, type Durability, serverUrl } from './postgres.ts';

export const log = pino({ level: process.env.LOG_LEVEL || 'silent' }, pino.destination(2));
/** The services of every test: one key, receivers on loopback allowed. */
export const encryption_key = Buffer.alloc(32, 7);
export const services = {
  vault: createVault([encryption_key]),
  allow_private_addresses: true,
  own_hosts: [],
  name_servers: undefined as string[] | undefined,
  chat_hosts: ['127.0.0.1'],
  provider_urls: {} as Record<string, string>,
  search_credentials: {} as Record<string, Record<string, string>>,
  visit_interval_ms: 1,
  patience_ms: { visit: 60_000, login: 60_000 },
  trusted_addresses: undefined as string[] | undefined,
  base_url: 'http://127.0.0.1',
  is_demo: true,
  mailer: undefined as Mailer | undefined,
  retention: undefined as Retention | undefined,
};

// biome-ignore lint/suspicious/noExplicitAny: what the service answers, before a test has looked at it
export type Json = Record<string, any>;

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Json;
  text: string;
}

export interface Caller {
  key: string;
  organization_id: string;
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string): Promise<Json>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Json>;
  patch(path: string, body: unknown): Promise<Json>;
  delete(path: string): Promise<Json>;
}

export interface Rail {
  /** The URL of its database. */
  url: string;
  /** The address of its API. */
  address: string;
  services: typeof services;
  store: Store;
  app: FastifyInstance;
  query<Row extends object = Json>(statement: Sql): Promise<Row[]>;
  /** Counts the statements that wait for a lock that another transaction holds. */
  waiting(): Promise<number>;
  /** A new organization with a key that may do everything, as often as it likes. */
  organization(options?: { scopes?: string[]; mode?: 'live' | 'test'; rate_limit?: number }): Promise<Caller>;
  /** Another key of an organization, which belongs to another person. */
  key(
    organization_id: string,
    options?: { scopes?: string[]; mode?: 'live' | 'test'; rate_limit?: number },
  ): Promise<Caller>;
  /** Returns violations of the data's invariants: none unless something is wrong. */
  audit(): Promise<Violation[]>;
  /** Runs a scheduled job as if the clock showed `at`. */
  tick(name: string, at: string): Promise<string | undefined>;
}

/**
 * The service on a database of its own: the API, and unless told otherwise a worker without its clock. All is stopped when the file's tests
 * are done; the file fails when its data is not as it must always be then.
 * @param audit false where a test corrupts its data on purpose
 * @param durability `durable` where a test kills what writes
 * @param provider_urls where servers that stand in for payout providers are
 * @param of_url a database that is there, in place of a new one
 * @param own services of this test that differ from those of all
 */
export async function startRail({
  worker = true,
  audit = true,
  durability = 'fast' as Durability,
  provider_urls = undefined as Record<string, string> | undefined,
  of_url = undefined as string | undefined,
  own = {} as Partial<typeof services>,
} = {}): Promise<Rail> {
  const url = of_url ?? (await cloneDatabase(await serverUrl(t, durability)));
  const database = openDatabase(url, { size: 20, name: 'rail test', ...patient_database });
  const store: Store = { database, writeEvents };
  const own_services = { ...services, ...(provider_urls ? { provider_urls } : {}), ...own };
  const app = await buildApi({ store, services: own_services, log, limits: patient_api });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const base_url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const running = worker ? startWorker({ url, store, services: own_services, concurrency: 4, log }) : undefined;
  await running?.ready;
  t.teardown(async () => {
    try {
      const wrong = audit ? await auditOf(database) : [];
      await running?.stop();
      await closeApi(app);
      await database.end();
      if (wrong.length > 0) throw new Error(`The audit found what must not be: ${JSON.stringify(wrong, null, 2)}`);
    } catch (error) {
      console.error(error); // tap does not say what a teardown throws
      throw error;
    }
  });

  const key: Rail['key'] = async (organization_id, { scopes = ['*'], mode = 'live', rate_limit = 100_000 } = {}) => {
    const { id: user_id } = await createUser(database, { organization_id, email: `${newId('colleague')}@example.com` });
    const { secret } = await createKey(database, { organization_id, name: 'test', mode, scopes, rate_limit, user_id });
    return callerOf(base_url, secret, organization_id);
  };
  return {
    url,
    address: base_url,
    services: own_services,
    store,
    app,
    key,
    query: (statement) => run(database, statement),
    waiting: async () => {
      const those = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return (await run(database, those)).length;
    },
    audit: () => auditOf(database),
    async organization(options) {
      const { id } = await createOrganization(database, { name: 'Test', owner_email: 'owner@example.com' });
      return key(id, options);
    },
    async tick(name, at) {
      await register(store, schedules);
      return transaction(store, { organization_id: null, request_id: null }, (tx) => runTick(tx, name, at));
    },
  };
}

/** The worker, without its clock: what is scheduled runs when the test calls `tick`, and not amid a test because a minute is over. */
export const startWorker = (options: WorkerOptions): Worker =>
  superviseWorker({ ...options, schedules: [], extensions });

/** Nobody waits for an answer any more. A connection that is opened, or becomes idle, while the API closes would keep it for a minute. */
export async function closeApi(app: FastifyInstance): Promise<void> {
  const cut_off = setInterval(() => app.server.closeAllConnections(), 50);
  await app.close();
  clearInterval(cut_off);
}

/** The privileges that these read are those of the template, which hardly a test changes, and they take more than half of the whole audit. */
const audits_of_data = audits.filter((name) => name !== 'core.audit' && name !== 'data.audit');

async function auditOf(database: Pool): Promise<Violation[]> {
  const client = await database.connect();
  try {
    return (await Array.fromAsync(violations(client, { names: audits_of_data }))).flat();
  } finally {
    client.release(); // one that is opened anew reads the catalogue again
  }
}

/** A client of the API. `get`, `post`, `patch` and `delete` throw unless they succeed; `request` gives whatever came. */
export function callerOf(base_url: string, key: string, organization_id: string): Caller {
  const call: Caller['request'] = async (method, path, body, headers = {}) => {
    // The global `fetch` costs some times as much.
    const response = await request(new URL(path, base_url), {
      method: method as Dispatcher.HttpMethod,
      headers: {
        Authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.body.text();
    const answer = {
      status: response.statusCode,
      headers: response.headers,
      body: bodyOf(text, response.headers['content-type'] as string | undefined),
      text,
    };
    requireDescribed(method, path, answer.body.error?.code);
    return answer;
  };
  return clientOf(call, key, organization_id);
}

/**
 * The same client, which asks again with the same idempotency key as long as the service does not answer within its limit: for processes of the
 * service, whose limit is that of production, however busy the machine is.
 */
export function persistent({ request: once, key, organization_id }: Caller): Caller {
  const call: Caller['request'] = async (method, path, body, headers = {}) => {
    const own = method === 'POST' ? { 'Idempotency-Key': newId('retry'), ...headers } : headers;
    for (;;) {
      const answer = await once(method, path, body, own);
      const { code } = answer.body.error ?? {};
      if (code !== 'service_unavailable' && code !== 'idempotency_key_in_flight') return answer;
    }
  };
  return clientOf(call, key, organization_id);
}

function clientOf(call: Caller['request'], key: string, organization_id: string): Caller {
  const succeed = async (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Json> => {
    const answer = await call(method, path, body, headers);
    if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`);
    return answer.body;
  };
  return {
    key,
    organization_id,
    request: call,
    get: (path) => succeed('GET', path),
    post: (path, body, headers) => succeed('POST', path, body, headers),
    patch: (path, body) => succeed('PATCH', path, body),
    delete: (path) => succeed('DELETE', path),
  };
}

function bodyOf(text: string, type: string | undefined): Json {
  if (type?.startsWith('application/x-ndjson')) return { data: linesOf(text) };
  return text && (type === undefined || type.startsWith('application/json')) ? JSON.parse(text) : {};
}

/** The lines of NDJSON. */
export const linesOf = (text: string): Json[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

/** Whatever a test provokes must stand in the description: a code that an operation does not name fails the test. */
function requireDescribed(method: string, path: string, code: ProblemCode | undefined): void {
  if (code === undefined) return;
  const [asked = ''] = path.split('?');
  const is_word = descriptions.some((one) => one.path === asked);
  const described = descriptions.find(
    (one) => one.method === method && (is_word ? one.path === asked : one.pattern.test(asked)),
  );
  if (!described || described.errors().includes(code)) return;
  throw new Error(`${described.name} answered ${code}, which its description does not name: add it to its 'errors'.`);
}

const descriptions = operations.map((operation) => {
  let errors: ProblemCode[] | undefined;
  return {
    name: operation.name,
    method: operation.method,
    path: operation.path,
    pattern: new RegExp(`^${operation.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    errors() {
      errors ??= errorsOf(operation);
      return errors;
    },
  };
});

export interface Received {
  headers: Record<string, string>;
  raw: string;
  body: Json;
}

/** A receiver of webhooks on loopback. `answer` says what it replies; 200 unless told otherwise. */
export async function startReceiver(
  answer: (received: Received, nth: number) => number | Promise<number> = () => 200,
): Promise<{
  url: string;
  received: Received[];
  /** The bodies of the events that have come, each once: one whose answer took too long comes again. */
  events(): Json[];
  server: Server;
  /** Waits until at least so many have come. */
  until(count: number): Promise<Received[]>;
}> {
  const received: Received[] = [];
  // Ports are used again: the worker of another test may still send to a receiver that had this one.
  const path = `/hook/${crypto.randomUUID()}`;
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const raw = Buffer.concat(chunks).toString('utf8');
    const one = { headers: request.headers as Record<string, string>, raw, body: JSON.parse(raw) };
    received.push(one);
    response.writeHead(await answer(one, received.length)).end('ok');
  };
  const server = createServer((request, response) => {
    if (!request.url?.startsWith(path)) return void response.writeHead(404).end();
    take(request, response).catch((error) => {
      if (request.complete) throw error; // who sends may be killed amid a request
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    received,
    events: () => [...new Map(received.map(({ body }) => [body.id, body])).values()],
    server,
    async until(count) {
      await eventually(() => received.length >= count, `${count} webhooks`);
      return received;
    },
  };
}

/** So long that only what never comes takes longer, however busy the machine is. */
const patience_ms = 120_000;
/** Limits of an API whose test is not about them. */
export const patient_api = { answer_ms: patience_ms, proxies: trustedProxies('127.0.0.0/8,::1,10.0.0.0/8') };
/** The same of connections to Postgres. */
export const patient_database = { connect_ms: patience_ms, statement_ms: patience_ms, silence_ms: 1.5 * patience_ms };

/** Waits until a condition holds. @throws Error that says what did not come */
export async function eventually(
  holds: () => boolean | Promise<boolean>,
  what: string,
  within_ms = patience_ms,
): Promise<void> {
  const begun = Date.now();
  while (!(await holds())) {
    const waited = Date.now() - begun;
    if (waited > within_ms) throw new Error(`Waited in vain for ${what}.`);
    // To ask costs more than to wait: who has waited for long may wait for a little more.
    await sleep(Math.min(Math.max(waited / 8, 5), 250));
  }
}

/** Waits until the day is over in a time zone, where little of it is left: for a test that counts by days, and must not run over midnight. */
export async function awayFromMidnight(timeZone = 'UTC'): Promise<void> {
  const clock = new Intl.DateTimeFormat('en-GB', { timeZone, timeStyle: 'short' });
  while (clock.format() >= '23:57') await sleep(1_000);
}

export { sql };
