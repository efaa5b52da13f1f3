import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import sql from 'sql-template-tag';
import type { Config } from '../config.ts';
import { type Database, run } from '../core/database.ts';
import type { Services } from '../core/operation.ts';
import { type Store, transaction } from '../core/transaction.ts';
import { update } from '../core/write.ts';
import { requireSomeKey } from '../encryption_key.ts';
import { events as product } from '../program/index.ts';
import { program } from '../program/program.ts';
import { openServices } from '../service.ts';
import { createEndpoint } from '../webhooks/endpoint.ts';
import { type Opened, UsageError, withStore } from './command.ts';
import { readDemo } from './demo.ts';
import { catchStop, stopped } from './process.ts';
import { Sequence, signatureFaults } from './received_webhook.ts';

const watch_ms = 1_000;
const most_failures = 3;
const most_body_bytes = 4 * 1024 * 1024;

interface ListenOptions {
  program?: string;
  port: number;
  events: string[];
  json?: boolean;
}

interface Listened {
  id: string;
  organization_id: string;
  name: string;
}

interface Registered {
  organization_id: string;
  endpoint_id: string;
  secret: string;
}

/** `rail listen`: receives a program's webhooks until it is stopped, and checks what comes. */
export async function listen(options: ListenOptions): Promise<void> {
  refuseUnknown(options.events);
  const stopping = catchStop();
  await withStore((opened) => listenUntil(stopping, opened, options));
}

async function listenUntil(stopping: AbortSignal, opened: Opened, options: ListenOptions): Promise<void> {
  requireSomeKey(opened.config);
  const { store } = opened;
  const of = await chooseProgram(store.database, opened.config, options.program);
  await removeAbandoned(store, of);
  const server = await openServer(options.port);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const registered = await register(opened, of, url, options.events);
  const receiver = receive(server, store.database, registered, options.json === true);
  const watch = watchDeliveries(store.database, registered);
  console.error(
    `Listening to ${of.id} (${of.name}) on ${url} as ${registered.endpoint_id}. Ctrl-C ends it and removes the endpoint.`,
  );
  await Promise.race([stopped(stopping), watch.lost]);
  watch.stop();
  server.close();
  server.closeAllConnections();
  await remove(store, registered);
  console.error(`${receiver.received} received, ${receiver.faulty} at fault.`);
  if (receiver.faulty > 0) process.exitCode = 1;
}

function refuseUnknown(types: string[]): void {
  const known = Object.keys(product.catalogue);
  const unknown = types.filter((type) => !known.includes(type));
  if (unknown.length > 0) throw new UsageError(`Unknown event ${unknown.join(', ')}. Known: ${known.join(' ')}`);
}

/** The one that was asked for, else the demo's, else the only one. */
async function chooseProgram(database: Database, config: Config, asked: string | undefined): Promise<Listened> {
  const programs = await run<Listened>(
    database,
    sql`select id, organization_id, name from program.program order by id`,
  );
  if (asked !== undefined) {
    const found = programs.find(({ id }) => id === asked);
    if (found) return found;
    throw new Error(`There is no program '${asked}'.`);
  }
  const demo = await readDemo(config);
  const chosen =
    programs.find(({ id }) => id === demo?.program_id) ?? (programs.length === 1 ? programs[0] : undefined);
  if (chosen) return chosen;
  if (programs.length === 0)
    throw new Error("There is no program yet: create one with POST /v1/programs, or begin 'rail start'.");
  const names = programs.slice(0, 20).map(({ id, name }) => `${id} (${name})`);
  throw new Error(`Which program? Give --program with one of ${names.join(', ')}.`);
}

async function openServer(port: number): Promise<Server> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening').catch((error) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new Error(`Port ${port} is taken: give --port another one, or leave it out.`);
  });
  return server;
}

/** Tells whose an endpoint is, so that one whose process was killed can be removed by the next. */
const marker = 'rail listen on';
const describe = (): string => `${marker} ${hostname()}, process ${process.pid}`;

async function register(
  { config, log, store }: Opened,
  of: Listened,
  url: string,
  event_types: string[],
): Promise<Registered> {
  // Whether the service sends to this machine is its own setting: what it refuses shows among the failures.
  const services: Services = { ...(await openServices(config, log)), allow_private_addresses: true, own_hosts: [] };
  const { organization_id } = of;
  const made = await transaction(store, { organization_id, request_id: null }, async (tx) => {
    await program.get(tx, of.id, { lock: true });
    return createEndpoint(tx, services, { program_id: of.id, url, description: describe(), event_types });
  });
  return { organization_id, endpoint_id: made.id, secret: made.secret };
}

async function remove(store: Store, { organization_id, endpoint_id }: Omit<Registered, 'secret'>): Promise<void> {
  await transaction(store, { organization_id, request_id: null }, (tx) =>
    update(tx, 'webhooks.endpoint', endpoint_id, { deleted_at: tx.now }),
  );
}

async function removeAbandoned(store: Store, { id, organization_id }: Listened): Promise<void> {
  const left = await run<{ endpoint_id: string; description: string }>(
    store.database,
    sql`select id as endpoint_id, description from webhooks.endpoint
      where program_id = ${id} and deleted_at is null and starts_with(description, ${`${marker} ${hostname()},`})`,
  );
  for (const { endpoint_id, description } of left) {
    const process_id = Number(/process (\d+)$/.exec(description)?.[1]);
    if (!isAlive(process_id)) await remove(store, { organization_id, endpoint_id });
  }
}

function isAlive(process_id: number): boolean {
  try {
    return process.kill(process_id, 0);
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM';
  }
}

/** Answers 200 to whatever comes, checks it against the secret and the sequence, and prints a line. */
function receive(server: Server, database: Database, registered: Registered, json: boolean) {
  const counts = { received: 0, faulty: 0 };
  const sequence = new Sequence();
  server.on('request', async (request, response) => {
    try {
      const body = await readBody(request);
      const one = await check(request, body, database, registered, sequence);
      counts.received++;
      if (one.faults.length > 0) counts.faulty++;
      console.log(json ? JSON.stringify(one) : lineOf(one));
      response.writeHead(200).end();
    } catch (error) {
      console.error(`A request could not be checked: ${(error as Error).message}`);
      response.writeHead(500).end();
    }
  });
  return counts;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most_body_bytes) throw new Error('the body is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

interface Checked {
  at: string;
  type: string;
  event_id: string;
  delivery_id: string;
  attempt: number;
  place: number | null;
  signature: 'good' | 'wrong';
  order: 'good' | 'repeated' | 'wrong';
  faults: string[];
  body: unknown;
}

async function check(
  { headers }: IncomingMessage,
  raw: Buffer,
  database: Database,
  { organization_id, endpoint_id, secret }: Registered,
  sequence: Sequence,
): Promise<Checked> {
  const now = new Date();
  const delivery_id = String(headers['rail-delivery-id'] ?? '');
  const attempt = Number(headers['rail-attempt']);
  const [delivery] = await run<{ place: number }>(
    database,
    sql`select place from webhooks.delivery
      where organization_id = ${organization_id} and id = ${delivery_id} and endpoint_id = ${endpoint_id}`,
  );
  const wrong = signatureFaults(headers, raw, secret, now.getTime());
  const order = delivery ? sequence.judge(`${delivery_id} ${attempt}`, delivery.place) : 'wrong';
  const misplaced = delivery ? `place ${delivery.place} came late` : 'no such delivery to this endpoint';
  return {
    at: now.toISOString(),
    type: String(headers['rail-event'] ?? ''),
    event_id: String(headers['rail-event-id'] ?? ''),
    delivery_id,
    attempt,
    place: delivery?.place ?? null,
    signature: wrong.length === 0 ? 'good' : 'wrong',
    order,
    faults: [...wrong, ...(order === 'wrong' ? [misplaced] : [])],
    body: parse(raw),
  };
}

function parse(raw: Buffer): unknown {
  try {
    return JSON.parse(raw.toString('utf8'));
  } catch {
    return null;
  }
}

function lineOf({ at, type, event_id, attempt, signature, order, faults }: Checked): string {
  const orders = { good: '✓ order', repeated: '↻ repeated', wrong: '✗ ORDER' };
  const signed = signature === 'good' ? '✓ signature' : '✗ SIGNATURE';
  const parts = [at, type.padEnd(22), event_id, `attempt ${attempt}`, signed, orders[order], ...faults];
  return parts.join('  ');
}

/**
 * Tells of attempts that never got here: the service refuses the address, or cannot reach it. `lost` rejects when Postgres has gone, as when
 * the `rail start` that ran it was stopped.
 */
function watchDeliveries(
  database: Database,
  { organization_id, endpoint_id }: Registered,
): { lost: Promise<never>; stop(): void } {
  const told = new Set<string>();
  const { promise: lost, reject } = Promise.withResolvers<never>();
  let failures = 0;
  const look = async () => {
    const failed = await run<{ delivery_id: string; attempt: number; error: string }>(
      database,
      sql`select a.delivery_id, a.attempt, a.error
        from webhooks.delivery d
        join webhooks.attempt a on a.organization_id = d.organization_id and a.delivery_id = d.id
        where d.organization_id = ${organization_id} and d.endpoint_id = ${endpoint_id} and a.status_code is null and a.error is not null
        order by a.at desc
        limit 100`,
    );
    failures = 0;
    for (const { delivery_id, attempt, error } of failed.reverse()) {
      if (told.has(`${delivery_id} ${attempt}`)) continue;
      told.add(`${delivery_id} ${attempt}`);
      console.error(`✗ ${delivery_id}, attempt ${attempt}, did not get here: ${error} ${remedy}`);
    }
  };
  const timer = setInterval(() => {
    look().catch((cause) => {
      failures++;
      if (failures >= most_failures) reject(new Error(gone, { cause }));
    });
  }, watch_ms);
  return { lost, stop: () => clearInterval(timer) };
}

const gone = 'Postgres has gone: begin again when it is back. The endpoint is removed then.';
const remedy = "If the service refuses this machine's addresses, start it with RAIL_WEBHOOK_ALLOW_PRIVATE=1.";
