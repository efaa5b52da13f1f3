import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { request } from 'undici';
import { openDatabase } from '../../src/core/postgres/database.ts';
import type { Bench, Figure, Sample } from './harness.ts';
import { type Asked, latencies, openLoop } from './load.ts';
import { type Merchant, makeMerchant } from './merchant.ts';
import { commissions_each, fillPayees, payeeId, undoBatches } from './payout_rows.ts';
import {
  fillPayouts,
  most_sends,
  rail_ms,
  sendByRail,
  setCredentials,
  startRails,
  streamFile,
} from './payout_sends.ts';
import { cpuOf, postmasterOf, type Running, startNode, startPostgres, usedBetween, usedBy } from './processes.ts';
import type { Owner } from './rows.ts';

const default_partners = 100_000;
const sales_a_second = 20;
const sends_at_once = 16;
const poll_ms = 100;

/** A batch of payouts beside what its selection costs as plain SQL, and what it does to sales that are recorded meanwhile. */
export const payouts: Bench = {
  name: 'payouts',
  doc: `A batch over ${default_partners.toLocaleString('en')} partners (--size) with ${commissions_each} due commissions each, while sales are recorded; sends by a rail, and a payment file of as many transfers as partners.`,
  defaults: { rounds: 1, seconds: 20 },
  async setup(stack, progress, partners = default_partners) {
    const url = await startPostgres(stack);
    const key = randomBytes(32).toString('base64');
    const rails = await startRails(stack);
    const environment = {
      ...{
        DATABASE_URL: url,
        RAIL_ENCRYPTION_KEY: key,
        RAIL_PAYPAL_URL: rails.paypal.url,
        RAIL_STRIPE_URL: rails.stripe.url,
      },
      ...{ WORKER_CONCURRENCY: String(sends_at_once), DATABASE_POOL_SIZE: '24' },
    };
    const api = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const worker = await startNode(stack, '../../src/rail.js', ['worker'], environment, { line: 'worker ready' });
    const database = openDatabase(url, { size: 2, name: 'rail bench' });
    stack.defer(() => database.end());
    const merchant = await makeMerchant(database, api);
    const shop = { name: 'Big', website_url: 'https://shop.example.com', currency: 'USD', payout_methods: ['paypal'] };
    const { id: program_id } = await merchant.post('/v1/programs', { ...shop, min_payout_minor: 5_000 });
    await merchant.post('/v1/rules', { program_id, name: 'Standard', rate_type: 'percent', rate_value: 2_000 });
    const owner = { organization_id: merchant.organization_id, program_id };
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    stack.defer(() => client.end());
    progress(`payouts: ${partners} partners with ${commissions_each * partners} commissions`);
    await fillPayees(client, owner, partners);
    const sends = Math.min(partners, most_sends);
    const by_paypal = await fillPayouts(client, { merchant, method: 'paypal', payouts: sends, key });
    const by_stripe = await fillPayouts(client, { merchant, method: 'stripe', payouts: sends, key });
    const by_file = await fillPayouts(client, { merchant, method: 'bank_transfer', payouts: partners, key });
    await client.query('vacuum (analyze)');
    const place = { api, worker, merchant, owner, client, partners, postgres: await postmasterOf(url) };
    const sent = {
      api,
      worker,
      merchant,
      client,
      postgres: place.postgres,
      by_paypal,
      by_stripe,
      by_file,
      sends,
      transfers: partners,
    };
    await setCredentials(sent, rails);
    return {
      postgres_url: url,
      figures,
      notes: [
        'The API, the worker, Postgres and the bench share the machine. --seconds is how long the sales of the idle side last.',
        `Sales come at ${sales_a_second} a second, of the partners who are paid, whether or not those before were answered.`,
        'Every tenth partner has no payout method. Between two batches everything is as before the first.',
      ],
      sides: [
        {
          name: 'plain',
          doc: 'the selection as one SQL statement, then the sales',
          run: (seconds) => plain(place, seconds),
        },
        {
          name: 'batch',
          doc: 'POST /v1/payout_batches until its payouts are created, and the sales meanwhile',
          baseline: 'plain',
          run: () => batch(place),
        },
        {
          name: 'send',
          doc: `${sends.toLocaleString('en')} payouts by PayPal, which takes ${rail_ms} ms and answers "pending", ${sends_at_once} at a time`,
          run: () => sendByRail(sent, by_paypal),
        },
        {
          name: 'send.paid',
          doc: 'the same by Stripe, which answers "paid": payouts, commissions and statements are settled, and partners emailed',
          run: () => sendByRail(sent, by_stripe),
        },
        {
          name: 'file',
          doc: `pain.001 of ${partners.toLocaleString('en')} transfers: frozen by the worker, then exported`,
          run: () => streamFile(sent),
        },
      ],
    };
  },
};

const figures: Record<string, Figure> = {
  seconds: { unit: 's', better: 'lower', at_most: 60, doc: 'how long it took' },
  per_s: { unit: '/s', better: 'higher', doc: 'commissions a second' },
  p50: { unit: 'ms', better: 'lower', doc: 'POST /v1/sales' },
  p99: { unit: 'ms', better: 'lower', doc: 'the same; the ratio is to be at most 2' },
  worker_mib: { unit: 'MiB', better: 'lower', at_most: 256, doc: 'the most memory that the worker had' },
  sends_per_s: {
    unit: '/s',
    better: 'higher',
    doc: 'payouts a second, from the request to the last answer of the rail',
  },
  export_mib: {
    unit: 'MiB',
    better: 'lower',
    at_most: 100,
    doc: 'the most memory that the API had while the file was exported, less what it had before',
  },
  api_mib: { unit: 'MiB', better: 'lower', doc: 'the most memory that the API had' },
  file_mib: { unit: 'MiB', better: 'lower', doc: 'the size of the file' },
  worker_cpu: { unit: 's', better: 'lower', doc: 'CPU time of the worker' },
  postgres_cpu: { unit: 's', better: 'lower', doc: 'CPU time of Postgres' },
};

interface Place {
  api: Running;
  worker: Running;
  merchant: Merchant;
  owner: Owner;
  client: pg.Client;
  partners: number;
  postgres: number | undefined;
}

async function plain(place: Place, seconds: number): Promise<Sample> {
  const before = await cpuOf({ postgres_cpu: place.postgres });
  const began = performance.now();
  await place.client.query(
    `select c.partner_id, c.currency, sum(c.amount_minor), array_agg(c.id), min(c.created_at)
    from program.commission c
    where c.organization_id = $1 and c.program_id = $2 and c.status = 'due' and c.payout_id is null and c.deleted_at is null
      and (c.kind = 'clawback' or c.mature_at < now())
    group by c.partner_id, c.currency
    having sum(c.amount_minor) <> 0`,
    [place.owner.organization_id, place.owner.program_id],
  );
  const taken = (performance.now() - began) / 1_000;
  const after = await cpuOf({ postgres_cpu: place.postgres });
  const sales = await openLoop(place.api.url, { connections: 8, seconds, rate: sales_a_second, next: nextSale(place) });
  return { seconds: taken, ...perSecond(place, taken), ...usedBetween(before, after), ...latencies(sales) };
}

const perSecond = ({ partners }: Place, seconds: number): Sample => ({
  per_s: (partners * commissions_each) / seconds,
});

async function batch(place: Place): Promise<Sample> {
  const pids = { worker_cpu: place.worker.pid, postgres_cpu: place.postgres };
  const before = await cpuOf(pids);
  const began = performance.now();
  const made = create(place).then((id) => generated(place, id));
  const latencies_ms: number[] = [];
  let worker_mib = 0;
  const done = made.then(() => true);
  while (!(await Promise.race([done, sleep(0, false)]))) {
    const load = openLoop(place.api.url, { connections: 8, seconds: 1, rate: sales_a_second, next: nextSale(place) });
    latencies_ms.push(...(await load).latencies_ms);
    worker_mib = Math.max(worker_mib, ((await usedBy(place.worker.pid))?.memory_bytes ?? 0) / 2 ** 20);
  }
  const seconds = ((await made) - began) / 1_000;
  const after = await cpuOf(pids);
  await undoBatches(place.client, place.owner);
  return {
    seconds,
    worker_mib,
    ...perSecond(place, seconds),
    ...usedBetween(before, after),
    ...latencies({ latencies_ms, seconds }),
  };
}

let sold = 0;

/** A sale of one of the partners who are paid, of a new customer. */
export const nextSale =
  ({ owner, merchant, partners }: Pick<Place, 'owner' | 'merchant' | 'partners'>) =>
  (): Asked => {
    sold++;
    const body = {
      program_id: owner.program_id,
      partner_id: payeeId(1 + ((sold * 7_919) % partners)),
      customer: { email: `customer-${sold}@example.com` },
      amount_minor: 9_900,
      currency: 'USD',
      external_charge_id: `bench_${sold}`,
    };
    return { method: 'POST', path: '/v1/sales', headers: merchant.headers, body: JSON.stringify(body) };
  };

/** Asks for a batch of all that is due. @returns its id */
export async function create({ api, merchant, owner }: Pick<Place, 'api' | 'merchant' | 'owner'>): Promise<string> {
  const { statusCode, body } = await request(`${api.url}/v1/payout_batches`, {
    method: 'POST',
    headers: merchant.headers,
    body: JSON.stringify({ program_id: owner.program_id }),
  });
  const answer = (await body.json()) as { id: string };
  if (statusCode !== 202) throw new Error(`The batch was not created: ${JSON.stringify(answer)}`);
  return answer.id;
}

/** @returns when its payouts were created  @throws Error when they are not those of all partners */
export async function generated(
  { client, partners }: Pick<Place, 'client' | 'partners'>,
  batch_id: string,
): Promise<number> {
  for (;;) {
    const { rows } = await client.query<{ stage: string; payouts: string }>(
      'select stage, payouts from program.payout_batch where id = $1',
      [batch_id],
    );
    if (rows[0]?.stage === 'ready') {
      if (Number(rows[0].payouts) < Math.floor(partners * 0.9))
        throw new Error(`The batch has ${rows[0].payouts} payouts.`);
      return performance.now();
    }
    await sleep(poll_ms);
  }
}
