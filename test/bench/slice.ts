import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import sql, { type Sql } from 'sql-template-tag';
import { request } from 'undici';
import { type Database, openDatabase, run } from '../../src/core/postgres/database.ts';
import { type Bench, percentile, type Sample, type Side } from './harness.ts';
import { type Asked, latencies, openLoop } from './load.ts';
import { type Merchant, makeMerchant } from './merchant.ts';
import { postmasterOf, type Running, startNode, startPostgres } from './processes.ts';
import { connections, saturate } from './saturate.ts';

const pool_size = 20;
const rate = 50;
const partners = 200;
const customers = 10_000;

/** A sale in, a commission and signed webhooks out; beside the least that a Fastify route with an insert costs. */
export const slice: Bench = {
  name: 'slice',
  doc: 'POST /v1/sales and a GET of one object beside bare Fastify routes with one statement, and the time from a commit to its webhooks.',
  async setup(stack, progress) {
    const url = await startPostgres(stack, { track_commit_timestamp: 'on' });
    const environment = {
      DATABASE_URL: url,
      DATABASE_POOL_SIZE: String(pool_size),
      RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      RAIL_WEBHOOK_ALLOW_PRIVATE: '1',
      LOG_LEVEL: 'info',
    };
    progress('slice: starting the bare route, the API, the worker and the receiver');
    const receiver = await startNode(stack, 'receiver.ts', [], {}, { path: '/' });
    const bare = await startNode(stack, 'bare.ts', [], environment, { path: '/readyz' });
    const api = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const worker = await startNode(stack, '../../src/rail.js', ['worker'], environment, { line: 'worker ready' });
    const database = openDatabase(url, { size: 4, name: 'rail bench' });
    stack.defer(() => database.end());
    progress(`slice: making ${customers} customers a program`);
    const merchant = await makeMerchant(database, api);
    const heard = await makeProgram(database, merchant, `${receiver.url}/hook`);
    const unheard = await makeProgram(database, merchant, undefined);
    await untilDelivered(database);
    const postgres = await postmasterOf(url);
    const settle = async () => {
      await untilDelivered(database);
      return 0;
    };
    /** @param heard_by what delivers the webhooks of the load */
    const load = (server: Running, next: () => Asked, heard_by?: Running) => (seconds: number) =>
      saturate({ server, worker: heard_by, postgres, next, settle }, seconds);

    const bareSale = () => ({ ...heard(), path: '/bare' });
    const bareRead = (): Asked => ({ method: 'GET', path: '/bare/1' });
    const read = (): Asked => {
      const { headers, body = '' } = unheard();
      return { method: 'GET', path: `/v1/customers/${JSON.parse(body).customer_id}`, ...(headers ? { headers } : {}) };
    };
    return {
      postgres_url: url,
      figures,
      notes,
      sides: [
        {
          name: 'bare',
          doc: `a Fastify route with one insert … returning, ${connections} connections, each sends when it is answered`,
          run: load(bare, bareSale),
        },
        {
          name: 'sales',
          doc: 'POST /v1/sales, same load: a commission, two events, and one endpoint that receives both',
          baseline: 'bare',
          run: load(api, heard, worker),
        },
        {
          name: 'sales_unheard',
          doc: 'POST /v1/sales, same load, in a program without an endpoint',
          baseline: 'bare',
          run: load(api, unheard, worker),
        },
        {
          name: 'bare_read',
          doc: 'a Fastify route with one select, same load',
          run: load(bare, bareRead),
        },
        {
          name: 'read',
          doc: 'GET /v1/customers/{id}, same load',
          baseline: 'bare_read',
          run: load(api, read),
        },
        {
          name: 'bare_steady',
          doc: `the bare route at ${rate} requests a second, whether or not they are answered`,
          run: async (seconds) => receiptOfAnswer(await steady(bare, bareSale, seconds)),
        },
        {
          name: 'sales_steady',
          doc: `POST /v1/sales at ${rate} requests a second, with the endpoint`,
          baseline: 'bare_steady',
          run: (seconds) => steadyWithReceipts(database, api, receiver, heard, seconds),
        },
      ] satisfies Side[],
    };
  },
};

const figures: Awaited<ReturnType<Bench['setup']>>['figures'] = {
  requests: { unit: '/s', better: 'higher', doc: 'requests answered with success in a second' },
  p50: {
    unit: 'ms',
    better: 'lower',
    doc: 'a request: from its sending (steady: from when it was due) to the end of its response',
  },
  p99: { unit: 'ms', better: 'lower', doc: 'the same' },
  server_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of the process that answers it' },
  postgres_cpu: {
    unit: 'µs',
    better: 'lower',
    doc: 'CPU time a request, of Postgres, until the last webhook of the load was answered',
  },
  worker_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of the worker, until then' },
  receipt_p50: {
    unit: 'ms',
    better: 'lower',
    doc: 'from the commit of an event (pg_xact_commit_timestamp: just before its log is flushed) to the whole webhook at the receiver; bare: to the answer, from the sending',
  },
  receipt_p99: { unit: 'ms', better: 'lower', doc: 'the same' },
};

const notes = [
  'The client, the receiver, the process that answers, the worker and Postgres share the cores of one machine.',
  'Each sale is of a customer who has bought before, with a percent rule. Between two loads all webhooks are delivered.',
  'Postgres keeps commit timestamps here, for both sides; the service logs each request, the bare route does not.',
];

const steady = async (server: Running, next: () => Asked, seconds: number): Promise<Sample> =>
  latencies(await openLoop(server.url, { connections, seconds, rate, next }));

/** Its answer is what the receipts of webhooks are measured beside. */
const receiptOfAnswer = ({ p50 = 0, p99 = 0, ...others }: Sample): Sample => ({
  ...{ ...others, p50, p99 },
  ...{ receipt_p50: p50, receipt_p99: p99 },
});

async function steadyWithReceipts(
  database: Database,
  api: Running,
  receiver: Running,
  next: () => Asked,
  seconds: number,
): Promise<Sample> {
  const [begun] = await run<{ position: number }>(
    database,
    sql`select coalesce(max(position), 0) as position from webhooks.event`,
  );
  await (await request(`${receiver.url}/reset`)).body.dump();
  const load = await openLoop(api.url, { connections, seconds, rate, next });
  await untilDelivered(database);
  const received = (await (await request(`${receiver.url}/received`)).body.json()) as Record<string, number[]>;
  const events = await run<{ id: string; committed_ms: number }>(
    database,
    sql`select id, extract(epoch from pg_xact_commit_timestamp(xmin))::float8 * 1000 as committed_ms
      from webhooks.event where position > ${begun?.position}`,
  );
  const lags = events.map(({ id, committed_ms }) => (received[id]?.[0] ?? Number.NaN) - committed_ms);
  if (lags.length === 0 || lags.some(Number.isNaN)) throw new Error('An event of a sale did not reach the receiver.');
  return { ...latencies(load), receipt_p50: percentile(lags, 50), receipt_p99: percentile(lags, 99) };
}

export const untilDelivered = (database: Database): Promise<void> =>
  untilNone(
    database,
    'The webhooks of a load were not delivered',
    sql`exists (select from webhooks.pending_event)
      or exists (select from webhooks.queued_delivery)
      or exists (select from webhooks.endpoint_queue where lease_until is not null)`,
  );

/** @param waiting whether something is left of a load @param what it means where that is so for too long */
export async function untilNone(database: Database, what: string, waiting: Sql): Promise<void> {
  for (const end = Date.now() + 120_000; Date.now() < end; await sleep(50)) {
    const [row] = await run<{ waiting: boolean }>(database, sql`select ${waiting} as waiting`);
    if (!row?.waiting) return;
  }
  throw new Error(`${what} within two minutes.`);
}

/**
 * A program with a rule, partners, and customers who have bought once; with an endpoint at `webhook_url`, if one is given.
 * @returns what gives the next sale: the customers in turn, each time another charge
 */
export async function makeProgram(
  database: Database,
  { organization_id, headers, post }: Merchant,
  webhook_url: string | undefined,
): Promise<() => Asked> {
  const program = await post('/v1/programs', {
    name: webhook_url ? 'Heard' : 'Unheard',
    website_url: 'https://acme.example.com',
    currency: 'USD',
  });
  const rule = await post('/v1/rules', {
    program_id: program.id,
    name: 'Standard',
    rate_type: 'percent',
    rate_value: 2_000,
  });
  const partner_ids: string[] = [];
  for (let nth = 0; nth < partners; nth++) {
    const partner = await post('/v1/partners', { program_id: program.id, email: `partner${nth}@example.com` });
    partner_ids.push(partner.id);
  }
  if (webhook_url) await post('/v1/webhook_endpoints', { program_id: program.id, url: webhook_url });
  const rows = await run<{ id: string }>(
    database,
    sql`
      with made as (
        insert into program.customer (organization_id, id, program_id, partner_id, status, tracked_by, converted_at, created_at, updated_at)
        select ${organization_id}, core.new_id('cus'), ${program.id}, (${partner_ids}::text[])[1 + nth % ${partners}::int], 'active', 'api', a.long_ago, a.long_ago, a.long_ago
        from generate_series(1, ${customers}::int) as nth, (select now() - interval '90 days' as long_ago) as a
        returning id, partner_id, created_at
      ),
      bought as (
        insert into program.sale (
          organization_id, id, program_id, partner_id, customer_id, external_charge_id, amount_minor, net_amount_minor, currency, is_first_sale,
          occurred_at, created_at, updated_at
        )
        select ${organization_id}, core.new_id('sale'), ${program.id}, m.partner_id, m.id, 'first ' || m.id, 9900, 9900, 'USD', true, m.created_at, m.created_at, m.created_at
        from made m
        returning id, customer_id, partner_id
      ),
      earned as (
        insert into program.commission (
          organization_id, id, program_id, partner_id, customer_id, sale_id, rule_id, kind, amount_minor, base_amount_minor, currency, rate_type,
          rate_value, status, mature_at, created_at, updated_at
        )
        select ${organization_id}, core.new_id('com'), ${program.id}, b.partner_id, b.customer_id, b.id, ${rule.id}, 'sale', 1980, 9900, 'USD', 'percent',
          2000, 'pending', now() + interval '30 days', now(), now()
        from bought b
      )
      select id from made`,
  );
  await database.query('vacuum (analyze) program.partner, program.customer, program.sale, program.commission');
  let nth = 0;
  return () => {
    nth++;
    return {
      method: 'POST',
      path: '/v1/sales',
      headers,
      body: JSON.stringify({
        program_id: program.id,
        customer_id: rows[nth % rows.length]?.id,
        amount_minor: 9_900,
        currency: 'USD',
        external_charge_id: `ch_${nth}`,
      }),
    };
  };
}
