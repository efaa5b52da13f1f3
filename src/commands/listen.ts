import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import sql from 'sql-template-tag';
import type { Config } from '../config.ts';
import { type Database, run } from '../core/database.ts';
import { requireSomeKey } from '../encryption_key.ts';
import { events as product } from '../program/index.ts';
import { type Opened, UsageError, withStore } from './command.ts';
import { readDemo } from './demo.ts';
import { type Listened, type Registered, register, remove, removeAbandoned } from './listener_endpoint.ts';
import { watchDeliveries } from './missed_attempts.ts';
import { catchStop, stopped } from './process.ts';
import { check, lineOf, Sequence } from './received_webhook.ts';

const most_body_bytes = 4 * 1024 * 1024;

interface ListenOptions {
  program?: string;
  port: number;
  events: string[];
  json?: boolean;
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
