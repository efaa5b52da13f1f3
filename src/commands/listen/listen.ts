import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { jsonText } from '../../core/formats/json_text.ts';
import type { Database } from '../../core/postgres/database.ts';
import { requireSomeKey } from '../../encryption_key.ts';
import { program } from '../../program/index.ts';
import { recruitment } from '../../recruitment/index.ts';
import type { EventPolicy } from '../../webhooks/events/policy.ts';
import { type Opened, UsageError, warnWithoutWorker, withStore } from '../command.ts';
import { catchStop } from '../process.ts';
import { stopped } from '../stop.ts';
import { type Forwarded, forward, forwardedLine, isAcknowledged } from './forward.ts';
import { chooseOrganization, chooseProgram } from './listened.ts';
import { type Registered, register, remove, removeAbandoned } from './listener_endpoint.ts';
import { watchDeliveries } from './missed_attempts.ts';
import { type Checked, check, lineOf, Sequence } from './received_webhook.ts';

const most_body_bytes = 4 * 1024 * 1024;

interface ListenOptions {
  program?: string;
  /** Listen to the recruitment service. */
  recruitment?: boolean;
  organization?: string;
  /** Receive the events of tests alone. */
  test?: boolean;
  port: number;
  events: string[];
  forwardTo?: URL;
  printSecret?: boolean;
  json?: boolean;
}

/** `rail listen`: receives the webhooks of a program, or of the recruitment service, until it is stopped, and checks what comes. */
export async function listen(options: ListenOptions): Promise<void> {
  requireOneService(options);
  refuseUnknown(options.events, (options.recruitment ? recruitment : program).events);
  const stopping = catchStop();
  await withStore((opened) => listenUntil(stopping, opened, options));
}

async function listenUntil(stopping: AbortSignal, opened: Opened, options: ListenOptions): Promise<void> {
  requireSomeKey(opened.config);
  const { store } = opened;
  const of = options.recruitment
    ? await chooseOrganization(opened, options.organization)
    : await chooseProgram(opened, options.program);
  await removeAbandoned(store, of);
  const server = await openServer(options.port);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const type = options.test ? 'test' : 'live';
  const registered = await register(opened, of, { url, type, event_types: options.events });
  const counts = receive({ ...options, server, database: store.database, registered });
  const watch = watchDeliveries(store.database, registered);
  console.error(
    `Listening to ${of.id} (${of.name}) on ${url} as ${registered.endpoint_id}. Ctrl-C ends it and removes the endpoint.${options.json ? '' : ' --json shows payloads.'}`,
  );
  await warnWithoutWorker(store, 'no webhook is sent');
  if (options.forwardTo) console.error(`Forwarding to ${options.forwardTo}.`);
  if (options.printSecret) console.error(`Its signing secret, until it ends: ${registered.secret}`);
  await stopped(stopping);
  watch.stop();
  server.close();
  server.closeAllConnections();
  await remove(store, registered).catch(() => console.error(left));
  console.error(summaryOf(counts, options));
  if (counts.faulty > 0) process.exitCode = 1;
}

const left = 'Postgres does not answer: the next listener removes the endpoint.';

function requireOneService({ recruitment, program, organization, test }: ListenOptions): void {
  if (recruitment && program) throw new UsageError('Give --program or --recruitment, not both.');
  if (!recruitment && (organization || test))
    throw new UsageError('--organization and --test are options of --recruitment.');
}

function summaryOf({ received, faulty, forwarded, unacknowledged }: Counts, { forwardTo }: ListenOptions): string {
  const passed_on = forwardTo ? ` ${forwarded} forwarded, ${unacknowledged} of them not acknowledged.` : '';
  return `${received} received, ${faulty} invalid.${passed_on}`;
}

function refuseUnknown(types: string[], { catalogue }: EventPolicy): void {
  const known = Object.keys(catalogue);
  const unknown = types.filter((type) => !known.includes(type));
  if (unknown.length > 0) throw new UsageError(`Unknown event ${unknown.join(', ')}. Known: ${known.join(' ')}`);
}

async function openServer(port: number): Promise<Server> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening').catch((error) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new Error(`Port ${port} is taken: give --port another one, or leave it out.`);
  });
  return server;
}

interface Counts {
  received: number;
  faulty: number;
  forwarded: number;
  unacknowledged: number;
}

type Listening = Pick<ListenOptions, 'forwardTo' | 'json'> & {
  server: Server;
  database: Database;
  registered: Registered;
};

/**
 * Checks what comes against the secret and the sequence, one after the other as it came, and prints a line for each. Answers 200 to whatever
 * comes; where it forwards, what the local server answered, and 400 to what is not of this endpoint's secret, which goes nowhere.
 */
function receive({ server, ...listening }: Listening): Counts {
  const counts: Counts = { received: 0, faulty: 0, forwarded: 0, unacknowledged: 0 };
  const sequence = new Sequence();
  let last: Promise<void> = Promise.resolve();
  server.on('request', async (request, response) => {
    try {
      const body = await readBody(request);
      const turn = last.then(() => take(request, body, response, listening, sequence, counts));
      last = turn.catch(() => {});
      await turn;
    } catch (error) {
      console.error(`A request could not be checked: ${(error as Error).message}`);
      response.writeHead(500).end();
    }
  });
  return counts;
}

async function take(
  request: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
  { database, registered, forwardTo, json }: Omit<Listening, 'server'>,
  sequence: Sequence,
  counts: Counts,
): Promise<void> {
  const one = await check(request, body, database, registered, sequence);
  counts.received++;
  if (one.faults.length > 0) counts.faulty++;
  const forwarded =
    forwardTo && one.signature === 'good'
      ? await forward(forwardTo, request.headers, body, closed(response))
      : undefined;
  if (forwarded) counts.forwarded++;
  if (forwarded && !isAcknowledged(forwarded)) counts.unacknowledged++;
  console.log(
    json ? jsonText({ ...one, ...(forwardTo ? { forwarded: shown(forwarded) } : {}) }) : fullLine(one, forwarded),
  );
  if (forwarded) response.writeHead(forwarded.status, forwarded.answer.headers).end(forwarded.answer.body);
  else response.writeHead(forwardTo ? 400 : 200).end();
}

/** Aborted when the other side does not wait for an answer any more. */
function closed(response: ServerResponse): AbortSignal {
  const over = new AbortController();
  if (response.destroyed) over.abort();
  response.once('close', () => over.abort());
  return over.signal;
}

const shown = (forwarded: Forwarded | undefined) =>
  forwarded ? { status: forwarded.status, duration_ms: forwarded.duration_ms, error: forwarded.error } : null;

const fullLine = (one: Checked, forwarded: Forwarded | undefined): string =>
  [lineOf(one), ...(forwarded ? [forwardedLine(forwarded)] : [])].join('  ');

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
