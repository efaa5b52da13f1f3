import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { register } from '../../src/core/jobs/schedule.ts';
import { openDatabase } from '../../src/core/postgres/database.ts';
import type { Store } from '../../src/core/postgres/transaction.ts';
import { schedules, writeEvents } from '../../src/products.ts';
import { Bulk } from './bulk.ts';
import type { Bench, Figure, Sample } from './harness.ts';
import { latencies, openLoop } from './load.ts';
import { mature, untilMature } from './maturity.ts';
import { fillMaturing } from './maturity_rows.ts';
import { type Merchant, makeMerchant } from './merchant.ts';
import { fillPayees, undoBatches } from './payout_rows.ts';
import { create, generated, nextSale } from './payouts.ts';
import { type Running, startNode, startPostgres } from './processes.ts';
import { fillReports, sumReports } from './report_rows.ts';
import type { Owner } from './rows.ts';

const default_rows = 10_000_000;
const sales_a_second = 50;
const connections = 16;

/** Sales at a low rate, alone and while an organization's heavy work goes on. */
export const beside: Bench = {
  name: 'beside',
  doc: `POST /v1/sales at ${sales_a_second} a second, alone and while reports of ${default_rows.toLocaleString('en')} clicks (--size) are read, a tenth as many commissions mature, and a batch pays as many more to a hundredth as many partners.`,
  defaults: { rounds: 1, seconds: 30 },
  async setup(stack, progress, size = default_rows) {
    const url = await startPostgres(stack);
    const environment = { DATABASE_URL: url, RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
    const api = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    await startNode(stack, '../../src/rail.js', ['worker'], environment, { line: 'worker ready' });
    const database = openDatabase(url, { size: 2, name: 'rail bench' });
    stack.defer(() => database.end());
    const merchant = await makeMerchant(database, api);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    stack.defer(() => client.end());
    const sizes = { clicks: size, commissions: Math.ceil(size / 10), partners: Math.ceil(size / 100) };
    const place = { api, merchant, client, store: { database, writeEvents }, sizes, ...(await makePrograms(merchant)) };
    await register(place.store, schedules);
    const bulk = await Bulk.open(url);
    const days = { sales: sizes.commissions, partners: Math.ceil(size / 1_000), days: 400 };
    await bulk.withoutWaiting(async () => {
      await fillReports(bulk, place.reported, { ...sizes, ...days }, progress);
      await sumReports(bulk, place.reported, progress);
    });
    await bulk.close();
    progress('beside: the commissions of the batch');
    await fillPayees(client, place.paid, sizes.partners);
    await client.query('vacuum (analyze)');
    return {
      postgres_url: url,
      figures,
      notes: [
        'The API, one worker, Postgres and the bench share the machine. Sales come whether or not those before were answered.',
        'The sales are of the partners who are paid. The same API answers the reports, one after the other. The load lasts until batch and maturity run are over, and at least --seconds.',
      ],
      sides: [
        { name: 'alone', doc: 'the sales alone', run: (seconds) => alone(place, seconds) },
        {
          name: 'beside',
          doc: 'the sales beside all of it',
          baseline: 'alone',
          run: (seconds) => besideAll(place, seconds),
        },
      ],
    };
  },
};

const figures: Record<string, Figure> = {
  p50: { unit: 'ms', better: 'lower', doc: 'POST /v1/sales, from when it was due to the end of its response' },
  p99: { unit: 'ms', better: 'lower', doc: 'the same; the ratio is to be at most 3' },
  batch_s: { unit: 's', better: 'lower', doc: 'how long the batch took' },
  maturing_s: { unit: 's', better: 'lower', doc: 'how long the commissions took to mature' },
  reports: { unit: '/s', better: 'higher', doc: 'reports that were read' },
};

interface Place {
  api: Running;
  merchant: Merchant;
  client: pg.Client;
  store: Store;
  sizes: { clicks: number; commissions: number; partners: number };
  reported: Owner;
  paid: Owner;
  maturing: Owner;
}

async function makePrograms({
  organization_id,
  post,
}: Merchant): Promise<Pick<Place, 'reported' | 'paid' | 'maturing'>> {
  const make = async (name: string, fields = {}): Promise<Owner> => {
    const { id: program_id } = await post('/v1/programs', {
      name,
      website_url: 'https://shop.example.com',
      currency: 'USD',
      ...fields,
    });
    return { organization_id, program_id };
  };
  const paid = await make('Paid', { payout_methods: ['paypal'], min_payout_minor: 5_000 });
  await post('/v1/rules', { program_id: paid.program_id, name: 'Standard', rate_type: 'percent', rate_value: 2_000 });
  return { paid, reported: await make('Reported'), maturing: await make('Maturing') };
}

const sell = ({ api, merchant, paid, sizes }: Place, seconds: number) => {
  const next = nextSale({ merchant, owner: paid, partners: sizes.partners });
  return openLoop(api.url, { connections, seconds, rate: sales_a_second, next });
};

const alone = async (place: Place, seconds: number): Promise<Sample> => latencies(await sell(place, seconds));

async function besideAll(place: Place, seconds: number): Promise<Sample> {
  const { client, store, maturing, paid, sizes, merchant, api } = place;
  await fillMaturing(client, maturing, sizes);
  const began = performance.now();
  const passed = () => (performance.now() - began) / 1_000;
  let reports = 0;
  let is_over = false;
  const reading = (async () => {
    for (; !is_over; reports++) await readReport(place, reports);
  })();
  const batch = create({ api, merchant, owner: paid }).then(async (id) => {
    await generated({ client, partners: sizes.partners }, id);
    return passed();
  });
  const matured = mature(store)
    .then(() => untilMature(client, maturing))
    .then(passed);
  let is_done = false;
  const ending = Promise.all([batch, matured]).finally(() => {
    is_done = true;
  });
  const latencies_ms: number[] = [];
  while (!is_done || passed() < seconds) latencies_ms.push(...(await sell(place, 1)).latencies_ms);
  const lasted = passed();
  is_over = true;
  await reading;
  const [batch_s, maturing_s] = await ending;
  await undoBatches(client, paid);
  return { ...latencies({ latencies_ms, seconds: lasted }), batch_s, maturing_s, reports: reports / lasted };
}

const day_ms = 86_400_000;

async function readReport({ merchant, reported }: Place, nth: number): Promise<void> {
  const name = ['partners', 'overview', 'customers'][nth % 3];
  const today = Math.floor(Date.now() / day_ms) * day_ms;
  const [from, to] = [today - 180 * day_ms, today].map((at) => new Date(at).toISOString());
  await merchant.get(`/v1/reports/${name}?program_id=${reported.program_id}&from=${from}&to=${to}&interval=week`);
}
