/** Kills APIs, workers and Postgres at random moments while sales, clicks, refunds, payouts and webhooks go on, and checks what is left. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from 'sql-template-tag';
import t from 'tap';
import { violations } from '../../../src/commands/audit.ts';
import { createKey } from '../../../src/core/access/api_key.ts';
import { createOrganization } from '../../../src/core/access/organization.ts';
import { register, runTick } from '../../../src/core/jobs/schedule.ts';
import { type Database, openDatabase, run } from '../../../src/core/postgres/database.ts';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { schedules, writeEvents } from '../../../src/products.ts';
import { callerOf, type Json, patient_database, services, sql } from '../../harness.ts';
import { type Process, startProcess } from '../../processes.ts';
import { setRail } from '../../program/payouts/fixture.ts';
import { Crew } from '../crew.ts';
import { type MortalPostgres, startMortalPostgres } from '../mortal_postgres.ts';
import { type PayoutRail, startPayoutRail } from '../payout_rail.ts';
import { startReceivers } from '../receivers.ts';
import { faultsOfAnswers, faultsOfEndpoint, faultsOfEvents, faultsOfMoney, faultsOfPayouts } from './faults.ts';
import { Load, type Shop } from './load.ts';

export interface Plan {
  kills: number;
  /** Whole numbers below a bound. */
  below: (bound: number) => number;
  progress?: (line: string) => void;
}

export interface Outcome {
  kills: Record<Victim, number>;
  /** The number of answered requests, emitted events and received webhooks. */
  requests: number;
  webhooks: number;
  payouts: number;
  faults: string[];
}

type Victim = 'api' | 'worker' | 'postgres';
/** One kill in six is one of Postgres. */
const victims: Victim[] = ['api', 'worker', 'api', 'worker', 'worker', 'postgres'];

const bps = 2_000;
const partners = 8;
const clients = 3;
/** Endpoints of each merchant. */
const endpoints_of = [1, 6];
/** Before each kill so many requests are answered. */
const answers_a_kill = 15;
const most_wait_ms = 400;
/** The time until payouts that a dead worker had claimed are free: after three minutes. */
const patience_ms = 300_000;

interface House {
  postgres: MortalPostgres;
  database: Database;
  query: <Row extends object = Json>(statement: Sql) => Promise<Row[]>;
  provider: PayoutRail;
  apis: Crew;
  workers: Crew;
  tick(name: string, at: Date): Promise<unknown>;
}

export async function killAmidMoney({ kills, below, progress }: Plan): Promise<Outcome> {
  const house = await openHouse();
  const receivers = await startReceivers(
    t,
    endpoints_of.reduce((sum, count) => sum + count),
  );
  const urls = [...receivers.urls];
  const shops: (Shop & { endpoints: string[] })[] = [];
  for (const count of endpoints_of) shops.push(await openShop(house, urls.splice(0, count)));
  const load = new Load(house.apis, below);
  for (const shop of shops) load.start(shop, clients);
  const clock = startClock(house, below);
  const killed = { api: 0, worker: 0, postgres: 0 };
  for (let nth = 1; nth <= kills; nth++) {
    await load.more(answers_a_kill);
    await sleep(below(most_wait_ms));
    const victim = victims[below(victims.length)] as Victim;
    await kill[victim](house, below);
    killed[victim]++;
    progress?.(`${nth} of ${kills} kills, ${load.answered} requests answered, ${receivers.count()} webhooks received`);
  }
  await load.stop();
  await clock.stop();
  progress?.('the load has ended');
  await settle(house, shops, progress);
  progress?.('all that follows from it is done');
  const moved = await house.provider.moved();
  const endpoints = shops.flatMap((shop) => shop.endpoints);
  const { query } = house;
  const faults = [
    ...shops.map((shop) => faultsOfAnswers(query, shop)),
    ...shops.map((shop) => faultsOfMoney(query, shop, bps)),
    ...shops.map((shop) => faultsOfEvents(query, shop)),
    faultsOfPayouts(query, shops, moved),
    ...endpoints.map((id, nth) => faultsOfEndpoint(query, id, receivers.received[nth] ?? [])),
    auditOf(house),
  ];
  const found = (await Promise.all(faults)).flat();
  await close(house);
  return { kills: killed, requests: load.answered, webhooks: receivers.count(), payouts: moved.length, faults: found };
}

const kill: Record<Victim, (house: House, below: Plan['below']) => Promise<void>> = {
  api: ({ apis }, below) => killOne(apis, below),
  worker: ({ workers }, below) => killOne(workers, below),
  async postgres({ postgres, apis, workers }) {
    // A process that loses Postgres while it starts ends, for its supervisor to start it again.
    await Promise.all([apis.allRun(), workers.allRun()]);
    await postgres.kill();
    await postgres.reopen();
    postgres.gate.cut();
  },
};

const killOne = async (crew: Crew, below: Plan['below']): Promise<void> =>
  crew.kill(await crew.oneThatRuns(() => below(1_000) / 1_000));

async function openHouse(): Promise<House> {
  const postgres = await startMortalPostgres({ track_commit_timestamp: 'on', max_connections: '300' });
  const database = openDatabase(postgres.url, { ...patient_database, size: 6, name: 'rail test' });
  const provider = await startPayoutRail();
  const start = (role: 'api' | 'worker') => (): Promise<Process> =>
    startProcess(role, postgres.url, { RAIL_PAYPAL_URL: provider.url });
  const store = { database, writeEvents };
  await register(store, schedules);
  return {
    ...{ postgres, database, provider },
    apis: await Crew.start(2, start('api')),
    workers: await Crew.start(2, start('worker')),
    query: (statement) => run(database, statement),
    tick: (name, at) =>
      transaction(store, { organization_id: null, request_id: null }, (tx) => runTick(tx, name, at.toISOString())),
  };
}

async function close({ apis, workers, database }: House): Promise<void> {
  await Promise.all([apis.end(), workers.end()]);
  await database.end();
}

/** A program whose partners are paid by PayPal, with an endpoint for each URL, which receives all events of the program from its first sale on. */
async function openShop(house: House, urls: string[]): Promise<Shop & { endpoints: string[] }> {
  const { database, apis, provider } = house;
  const { id } = await createOrganization(database, { name: 'Acme', owner_email: 'owner@example.com' });
  const key = { name: 'test', mode: 'live', scopes: ['*'], rate_limit: 100_000 } as const;
  const { secret } = await createKey(database, { organization_id: id, ...key, scopes: ['*'] });
  const merchant = callerOf(apis.running[0]?.url as string, secret, id);
  const acme = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD', payout_methods: ['paypal'] };
  const { id: program_id } = await merchant.post('/v1/programs', {
    ...{ ...acme, min_payout_minor: 1, holding_period_days: 1 },
  });
  await merchant.post('/v1/rules', { program_id, name: 'Standard', rate_type: 'percent', rate_value: bps });
  const joined: Shop['partners'] = [];
  for (let nth = 0; nth < partners; nth++) {
    const email = `partner${nth}@partner.example.com`;
    const { id: partner_id, handle } = await merchant.post('/v1/partners', { program_id, email });
    const method = { method: 'paypal', details: { email } };
    await merchant.request('PUT', `/v1/partners/${partner_id}/payout_method`, method);
    joined.push({ id: partner_id, handle });
  }
  await setRail({ services, query: house.query }, { merchant, program_id }, 'paypal', provider.credentials);
  const endpoints: string[] = [];
  for (const url of urls) endpoints.push((await merchant.post('/v1/webhook_endpoints', { program_id, url })).id);
  const made = { click: [], customer: [], sale: [], refund: [], payout_batch: [] };
  return { merchant, program_id, partners: joined, endpoints, made, sales: [] };
}

const day_ms = 86_400_000;

/** Runs the rare schedules of the workers often: matures commissions that are due by now, or in two days, and looks at payouts. */
function startClock({ tick, query }: House, below: Plan['below']): { stop(): Promise<void> } {
  let is_over = false;
  const ticking = (async () => {
    while (!is_over) {
      await sleep(500 + below(1_500));
      const at = Date.now() + (below(2) === 0 ? 2 * day_ms : 0);
      // Postgres may be away.
      await tick('program/mature_commissions', new Date(at)).catch(() => {});
      await query(pollSoon).catch(() => {});
      await tick('program/poll_payouts', new Date()).catch(() => {});
    }
  })();
  return {
    async stop() {
      is_over = true;
      await ticking;
    },
  };
}

const pollSoon = sql`update program.payout_attempt set next_poll_at = now() where status <> 'paid' and next_poll_at > now()`;

/** Waits until nothing is left to do, for as long as that becomes less. */
async function settle({ apis, workers, query, tick }: House, shops: Shop[], progress: Plan['progress']): Promise<void> {
  await Promise.all([apis.allRun(), workers.allRun()]);
  const program_ids = shops.map(({ program_id }) => program_id);
  await tick('program/mature_commissions', new Date(Date.now() + 3 * day_ms));
  const left = sql`
    select task_identifier as what, last_error from graphile_worker.jobs where run_at <= now() or locked_at is not null or attempts > 0
    union all select 'event', event_id from webhooks.pending_event
    union all select 'queued', delivery_id from webhooks.queued_delivery
    union all select 'lease', endpoint_id from webhooks.endpoint_queue where lease_until is not null
    union all select 'payout', id from program.payout where program_id = any (${program_ids}) and status <> 'paid' and deleted_at is null`;
  let fewest = Number.POSITIVE_INFINITY;
  let moved_at = Date.now();
  for (let looked = 0; ; looked++) {
    if (looked % 20 === 0) {
      await query(pollSoon);
      await tick('program/poll_payouts', new Date());
    }
    const still = await query<Json>(left);
    if (still.length === 0) return;
    if (still.length < fewest) {
      fewest = still.length;
      moved_at = Date.now();
    }
    if (looked % 60 === 0) progress?.(`${still.length} are left`);
    if (Date.now() - moved_at > patience_ms)
      throw new Error(`Nothing moves. Left: ${JSON.stringify(still.slice(0, 20))}`);
    await sleep(500);
  }
}

async function auditOf({ database }: House): Promise<string[]> {
  const client = await database.connect();
  const wrong = (await Array.fromAsync(violations(client))).flat();
  client.release(true);
  return wrong.map((one) => JSON.stringify(one));
}
