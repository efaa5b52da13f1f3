import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { register, runTick } from '../../src/core/jobs/schedule.ts';
import { openDatabase } from '../../src/core/postgres/database.ts';
import { type Store, transaction } from '../../src/core/postgres/transaction.ts';
import { schedules, writeEvents } from '../../src/products.ts';
import type { Bench, Figure, Sample } from './harness.ts';
import { fillMaturing } from './maturity_rows.ts';
import { makeMerchant } from './merchant.ts';
import { fillPayees } from './payout_rows.ts';
import { cpuOf, postmasterOf, type Running, startNode, startPostgres } from './processes.ts';
import type { Owner } from './rows.ts';

const default_commissions = 1_000_000;
const partners = 1_000;
/** The size of the bodies of an event of a matured commission, with and without what is for the merchant alone. */
const body_bytes = { body: 480, postback_body: 440 };
const poll_ms = 50;

/** The end of holding periods, with an event each, beside what it costs to change and log so many rows at all. */
export const maturity: Bench = {
  name: 'maturity',
  doc: `${default_commissions.toLocaleString('en')} commissions of one program (--size) mature at once, with an event each, beside one SQL statement that updates and logs as many rows.`,
  defaults: { rounds: 1, seconds: 1 },
  async setup(stack, progress, commissions = default_commissions) {
    const url = await startPostgres(stack);
    const environment = { DATABASE_URL: url, RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
    const api = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const worker = await startNode(stack, '../../src/rail.js', ['worker'], environment, { line: 'worker ready' });
    const database = openDatabase(url, { size: 2, name: 'rail bench' });
    stack.defer(() => database.end());
    const { organization_id, post } = await makeMerchant(database, api);
    const shop = { name: 'Big', website_url: 'https://shop.example.com', currency: 'USD' };
    const { id: program_id } = await post('/v1/programs', shop);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    stack.defer(() => client.end());
    const owner = { organization_id, program_id };
    progress(`maturity: ${partners} partners`);
    await fillPayees(client, owner, partners);
    const store = { database, writeEvents };
    await register(store, schedules);
    const place = { store, client, owner, worker, postgres: await postmasterOf(url), commissions };
    return {
      postgres_url: url,
      figures,
      notes: [
        'The worker, Postgres and the bench share the machine. No endpoint receives the events. A run is over when all are done: --seconds says nothing.',
      ],
      sides: [
        { name: 'bare', doc: 'one SQL statement: update … returning, and insert', run: () => bare(place) },
        {
          name: 'maturing',
          doc: 'program/mature_commissions, by one worker',
          baseline: 'bare',
          run: () => maturing(place),
        },
      ],
    };
  },
};

const figures: Record<string, Figure> = {
  per_s: { unit: '/s', better: 'higher', doc: 'commissions a second, until the last one is due' },
  million: { unit: 's', better: 'lower', at_most: 120, doc: 'how long 1,000,000 take at this rate' },
  worker_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a commission, of the worker' },
  postgres_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a commission, of Postgres' },
};

interface Place {
  store: Store;
  client: pg.Client;
  owner: Owner;
  worker: Running;
  postgres: number | undefined;
  commissions: number;
}

async function bare({ client, postgres, commissions }: Place): Promise<Sample> {
  await client.query('drop table if exists public.bare_commission, public.bare_event');
  await client.query(`
    create table public.bare_commission (id text collate "C" primary key, status text not null, mature_at timestamptz not null, updated_at timestamptz);
    create table public.bare_event (id text collate "C" primary key, body text not null, postback_body text not null);
    insert into public.bare_commission select 'com_' || n, 'pending', now() - make_interval(secs => n), now() from generate_series(1, ${commissions}) as n;
    create index on public.bare_commission (mature_at) where status = 'pending'`);
  await client.query('vacuum (analyze) public.bare_commission');
  return timed({ postgres_cpu: postgres }, commissions, () =>
    client.query(`
      with matured as (
        update public.bare_commission set status = 'due', updated_at = now() where status = 'pending' and mature_at <= now() returning id
      )
      insert into public.bare_event select 'evt_' || id, repeat('b', ${body_bytes.body}), repeat('p', ${body_bytes.postback_body}) from matured`),
  );
}

async function maturing({ store, client, owner, worker, postgres, commissions }: Place): Promise<Sample> {
  await client.query('truncate webhooks.event cascade');
  await fillMaturing(client, owner, { commissions, partners });
  const sample = await timed({ worker_cpu: worker.pid, postgres_cpu: postgres }, commissions, async () => {
    await mature(store);
    await untilMature(client, owner);
  });
  const { rows } = await client.query<{ due: string; told: string }>(
    `select (select count(*) from program.commission where status = 'due') as due,
      (select count(*) from webhooks.event where type = 'commission.updated') as told`,
  );
  if (rows[0]?.due !== `${commissions}` || rows[0].told !== `${commissions}`)
    throw new Error(`Of ${commissions} commissions are ${JSON.stringify(rows[0])}.`);
  return sample;
}

/** Matures what is due by now, as the schedule does. */
export const mature = (store: Store): Promise<unknown> =>
  transaction(store, { organization_id: null, request_id: null }, (tx) =>
    runTick(tx, 'program/mature_commissions', new Date().toISOString()),
  );

/** Waits until the last one of an organization, by its time, has matured. */
export async function untilMature(client: pg.Client, { organization_id }: Owner): Promise<void> {
  const last = `select from program.commission
    where organization_id = $1 and status in ('pending', 'approved') and deleted_at is null and mature_at <= now()
    order by mature_at desc, id desc limit 1`;
  while ((await client.query(last, [organization_id])).rowCount !== 0) await sleep(poll_ms);
}

async function timed(
  pids: Record<string, number | undefined>,
  commissions: number,
  work: () => Promise<unknown>,
): Promise<Sample> {
  const before = await cpuOf(pids);
  const began = performance.now();
  await work();
  const seconds = (performance.now() - began) / 1_000;
  const cpu = Object.entries(await cpuOf(pids)).map(([name, us]) => [
    name,
    (us - (before[name] as number)) / commissions,
  ]);
  return { per_s: commissions / seconds, million: (seconds * 1_000_000) / commissions, ...Object.fromEntries(cpu) };
}
