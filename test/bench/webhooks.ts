import { randomBytes } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'sql-template-tag';
import { request } from 'undici';
import { createOrganization } from '../../src/core/access/organization.ts';
import { createVault, type Vault } from '../../src/core/encryption/vault.ts';
import { type Database, openDatabase, run } from '../../src/core/postgres/database.ts';
import { type EventDraft, type Store, transaction } from '../../src/core/postgres/transaction.ts';
import { newId } from '../../src/core/values/id.ts';
import { writeEvents } from '../../src/products.ts';
import { event } from '../../src/program/events/event.ts';
import { type Bench, percentile, type Sample, type Side } from './harness.ts';
import { type Asked, closedLoop } from './load.ts';
import { cpuOf, postmasterOf, type Running, startNode, startPostgres, usedBy } from './processes.ts';
import { untilDelivered } from './slice.ts';

const steady_rate = 500;
const lone_rate = 100;
const isolation_rate = 250;
/** Events of one transaction where many are told at once, and how far their telling runs ahead of the deliveries. */
const batch = 50;
const most_waiting = 2_000;

/** Deliveries from the commit of their event to the durable record of what came of them. */
export const webhooks: Bench = {
  name: 'webhooks',
  doc: 'Deliveries a second over many endpoints and over one, the time from a commit to the receipt, and what hung receivers do to others.',
  async setup(stack, progress) {
    const url = await startPostgres(stack, { track_commit_timestamp: 'on' });
    const key = randomBytes(32);
    const environment = {
      DATABASE_URL: url,
      RAIL_ENCRYPTION_KEY: key.toString('base64'),
      RAIL_WEBHOOK_ALLOW_PRIVATE: '1',
      LOG_LEVEL: 'info',
    };
    const receiver = await startNode(stack, 'receiver.ts', [], {}, { path: '/' });
    const worker = await startNode(stack, '../../src/rail.js', ['worker'], environment, { line: 'worker ready' });
    const database = openDatabase(url, { size: 20, name: 'rail bench' });
    stack.defer(() => database.end());
    const { id: organization_id } = await createOrganization(database, { name: 'Bench', owner_email: 'o@example.com' });
    const store: Store = { database, writeEvents };
    const place: Place = { store, organization_id, worker, receiver, postgres: await postmasterOf(url) };
    const make = (count: number, hook: string) =>
      makeEndpoints(database, createVault([key]), organization_id, { count, hook });
    progress('webhooks: making endpoints');
    const hook = `${receiver.url}/hook`;
    const hung = await startHungReceiver(stack);
    const thousand = await make(1_000, hook);
    const ten_thousand = await make(10_000, hook);
    const single = await make(1, hook);
    const living = await make(900, hook);
    const dead = await make(100, hung);
    await database.query('vacuum (analyze) webhooks.endpoint, webhooks.endpoint_queue');
    return {
      postgres_url: url,
      figures,
      notes,
      sides: [
        {
          name: 'bare',
          doc: 'POSTs of undici with the same body, 32 connections',
          run: (s) => barePosts(receiver, 32, s),
        },
        {
          name: 'thousand',
          doc: '1,000 endpoints, events told as fast as they are delivered, one endpoint each',
          baseline: 'bare',
          run: (s) => saturate(place, thousand, s),
        },
        { name: 'bare_serial', doc: 'the same POSTs, one after another', run: (s) => barePosts(receiver, 1, s) },
        {
          name: 'single',
          doc: 'one endpoint, events told as fast as they are delivered',
          baseline: 'bare_serial',
          run: (s) => saturate(place, single, s),
        },
        { name: 'once', doc: '1,000 endpoints with one event each, told at once', run: () => burst(place, thousand) },
        {
          name: 'once_10k',
          doc: '10,000 endpoints with one event each, told at once',
          baseline: 'once',
          run: () => burst(place, ten_thousand),
        },
        {
          name: 'lone',
          doc: `${lone_rate} events a second to one endpoint, a transaction each: hardly any shares a statement`,
          run: (s) => lone(place, single, s),
        },
        {
          name: 'steady',
          doc: `${steady_rate} events a second over 1,000 endpoints, a transaction each`,
          run: (s) => steady(place, thousand, [], steady_rate, s),
        },
        {
          name: 'calm',
          doc: `${isolation_rate} events a second over 900 endpoints`,
          run: (s) => steady(place, living, [], isolation_rate, s),
        },
        {
          name: 'hung',
          doc: 'the same, while 100 more endpoints with as many events each swallow connections until the timeout',
          baseline: 'calm',
          run: (s) => besideHung(place, living, dead, s),
        },
      ] satisfies Side[],
    };
  },
};

const figures: Awaited<ReturnType<Bench['setup']>>['figures'] = {
  rate: { unit: '/s', better: 'higher', doc: 'requests answered, or deliveries whose attempt is durable, in a second' },
  client_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of the process that sends (the worker)' },
  postgres_cpu: {
    unit: 'µs',
    better: 'lower',
    doc: 'CPU time a delivery, of Postgres, the telling of its event included',
  },
  delivery_cpu: { unit: 'µs', better: 'lower', at_most: 2_400, doc: 'both together' },
  worker_memory: { unit: 'MiB', better: 'lower', doc: 'resident memory of the worker at the end' },
  receipt_p50: {
    unit: 'ms',
    better: 'lower',
    doc: 'from the commit of an event (pg_xact_commit_timestamp: just before its log is flushed) to the whole webhook at the receiver',
  },
  receipt_p99: { unit: 'ms', better: 'lower', doc: 'the same' },
};

const notes = [
  'The teller of events, the receivers, the worker and Postgres share the cores of one machine.',
  `Events are told through the service's own transaction(): ${batch} a transaction, but one each where their rate is given.`,
];

interface Place {
  store: Store;
  organization_id: string;
  worker: Running;
  receiver: Running;
  postgres: number | undefined;
}

/** An endpoint's program: whatever is told in it goes to that endpoint alone. */
type Programs = string[];

async function barePosts(receiver: Running, connections: number, seconds: number): Promise<Sample> {
  const body = JSON.stringify({ id: newId('evt'), data: saleOf('prg_0').data, padding: 'x'.repeat(100) });
  const asked: Asked = { method: 'POST', path: '/bare', headers: { 'content-type': 'application/json' }, body };
  const before = process.cpuUsage();
  const load = await closedLoop(receiver.url, { connections, seconds, next: () => asked });
  const { user, system } = process.cpuUsage(before);
  return { rate: load.latencies_ms.length / load.seconds, client_cpu: (user + system) / load.latencies_ms.length };
}

/** Tells events in turn, never far ahead of their deliveries. */
async function saturate(place: Place, programs: Programs, seconds: number): Promise<Sample> {
  return measured(place, async () => {
    let told = 0;
    const before = await received(place);
    for (const end = performance.now() + seconds * 1_000; performance.now() < end; ) {
      if (told - ((await received(place)) - before) > most_waiting) {
        await sleep(10);
        continue;
      }
      await Promise.all([0, 1, 2, 3].map(() => tell(place, nextOf(programs, batch))));
      told += 4 * batch;
    }
    return told;
  });
}

async function burst(place: Place, programs: Programs): Promise<Sample> {
  return measured(place, async () => {
    for (let from = 0; from < programs.length; from += 1_000) await tell(place, programs.slice(from, from + 1_000));
    return programs.length;
  });
}

async function measured(place: Place, load: () => Promise<number>): Promise<Sample> {
  const pids = { client_cpu: place.worker.pid, postgres_cpu: place.postgres };
  const before = await cpuOf(pids);
  const started = performance.now();
  const told = await load();
  await untilDelivered(place.store.database);
  const seconds = (performance.now() - started) / 1_000;
  const after = await cpuOf(pids);
  const cpu = Object.entries(after).map(([name, us]) => [name, (us - (before[name] as number)) / told]);
  return { rate: told / seconds, ...Object.fromEntries(cpu), ...(await memoryOf(place.worker)) };
}

/** Measures a single delivery. */
async function lone(place: Place, programs: Programs, seconds: number): Promise<Sample> {
  let receipt: Sample = {};
  const { client_cpu = 0, postgres_cpu = 0 } = await measured(place, async () => {
    receipt = await steady(place, programs, [], lone_rate, seconds);
    return seconds * lone_rate;
  });
  return { ...receipt, client_cpu, postgres_cpu, delivery_cpu: client_cpu + postgres_cpu };
}

async function memoryOf({ pid }: Running): Promise<Sample> {
  const used = await usedBy(pid);
  return used ? { worker_memory: used.memory_bytes / 2 ** 20 } : {};
}

/** Tells `rate` events a second, due evenly, whether or not those before are delivered; and as many an endpoint to the dead ones. */
async function steady(
  place: Place,
  programs: Programs,
  dead: Programs,
  rate: number,
  seconds: number,
): Promise<Sample> {
  const { database } = place.store;
  const [begun] = await run<{ position: number }>(
    database,
    sql`select coalesce(max(position), 0) as position from webhooks.event`,
  );
  await (await request(`${place.receiver.url}/reset`)).body.dump();
  const told: Promise<void>[] = [];
  const started = performance.now();
  for (let nth = 0; nth < seconds * rate; nth++) {
    const wait = started + (nth * 1_000) / rate - performance.now();
    if (wait > 0) await sleep(wait);
    told.push(tell(place, nextOf(programs, 1)));
    if (dead.length > 0 && nth % 9 === 0) told.push(tell(place, nextOf(dead, 1)));
  }
  await Promise.all(told);
  return receipts(place, begun?.position ?? 0, programs);
}

/** The hung ones are switched off afterwards, which cancels what waits for them. */
async function besideHung(place: Place, living: Programs, dead: Programs, seconds: number): Promise<Sample> {
  const { database } = place.store;
  const turnAll = (status: string) =>
    run(database, sql`update webhooks.endpoint set status = ${status} where program_id = any (${dead})`);
  await turnAll('enabled');
  const sample = await steady(place, living, dead, isolation_rate, seconds);
  await turnAll('disabled');
  await untilDelivered(database);
  return sample;
}

/** Waits until all of them arrived; the dead ones' are not waited for. */
async function receipts({ store, receiver }: Place, after: number, programs: Programs): Promise<Sample> {
  const told = await run<{ id: string; committed_ms: number }>(
    store.database,
    sql`select id, extract(epoch from pg_xact_commit_timestamp(xmin))::float8 * 1000 as committed_ms
      from webhooks.event where position > ${after} and program_id = any (${programs})`,
  );
  for (const end = Date.now() + 120_000; Date.now() < end; await sleep(50)) {
    const received = (await (await request(`${receiver.url}/received`)).body.json()) as Record<string, number[]>;
    const lags = told.map(({ id, committed_ms }) => (received[id]?.[0] ?? Number.NaN) - committed_ms);
    if (lags.some(Number.isNaN)) continue;
    return { receipt_p50: percentile(lags, 50), receipt_p99: percentile(lags, 99) };
  }
  throw new Error('An event did not reach the receiver within two minutes.');
}

const tell = ({ store, organization_id }: Place, programs: Programs): Promise<void> =>
  transaction(store, { organization_id, request_id: null }, async (tx) => {
    for (const program_id of programs) tx.emit(saleOf(program_id));
  });

const saleOf = (program_id: string): EventDraft =>
  event(
    'sale.created',
    { program_id },
    {
      sale_id: 'sale_01k9x0000000000000000000',
      customer_id: 'cus_01k9x0000000000000000000',
      partner_id: 'part_01k9x0000000000000000000',
      amount_minor: 9_900,
      currency: 'USD',
      is_first_sale: true,
      external_charge_id: 'ch_0001',
      occurred_at: '2026-11-21T12:00:00.000Z',
    },
  );

let turn = 0;

function nextOf(programs: Programs, count: number): Programs {
  return Array.from({ length: count }, () => programs[turn++ % programs.length] as string);
}

/** Counts the webhooks that the receiver has seen since it started. */
async function received({ receiver }: Place): Promise<number> {
  return Number(await (await request(`${receiver.url}/count`)).body.text());
}

/** Endpoints, each of a program of its own. */
async function makeEndpoints(
  database: Database,
  vault: Vault,
  organization_id: string,
  { count, hook }: { count: number; hook: string },
): Promise<Programs> {
  const made = Array.from({ length: count }, () => {
    const id = newId('whe');
    const secret = vault.encrypt(`whsec_${randomBytes(24).toString('base64')}`, id);
    return { id, program_id: newId('prg'), secret: `\\x${secret.toString('hex')}` };
  });
  await run(
    database,
    sql`
      with made as (
        insert into webhooks.endpoint (organization_id, id, program_id, url, secret)
        select ${organization_id}, m.id, m.program_id, ${hook}, m.secret::bytea
        from json_to_recordset(${JSON.stringify(made)}::json) as m (id text, program_id text, secret text)
        returning organization_id, id
      )
      insert into webhooks.endpoint_queue (organization_id, endpoint_id) select organization_id, id from made`,
  );
  return made.map(({ program_id }) => program_id);
}

/** Accepts connections, reads what comes, and never answers. */
async function startHungReceiver(stack: AsyncDisposableStack): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    socket.resume();
  });
  const listening = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', () => listening.resolve());
  await listening.promise;
  stack.defer(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/hung`;
}
