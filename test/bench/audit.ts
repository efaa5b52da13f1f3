import type pg from 'pg';
import { violations } from '../../src/commands/audit.ts';
import type { Bench, Sample } from './harness.ts';
import { openBigProgram } from './merchant.ts';
import { fillOutreach, payOut } from './outreach_rows.ts';
import { fill, type Owner } from './rows.ts';

const default_rows = 20_000;
const events_each = 10;
const endpoints = 3;

/** `rail audit` over a database that is clean; beside a count of the same rows. */
export const audit: Bench = {
  name: 'audit',
  doc: `rail audit over ${default_rows.toLocaleString('en')} rows of each resource (--size), of payouts and of outreach, and ${events_each} times as many events to ${endpoints} endpoints.`,
  defaults: { rounds: 3, seconds: 1 },
  async setup(stack, progress, size = default_rows) {
    const events = size * events_each;
    const { url, client, merchant, organization_id, program_id } = await openBigProgram(stack);
    const owner = { organization_id, program_id };
    await fill(client, owner, size, (line) => progress(`audit: ${line}`));
    progress('audit: payouts and outreach');
    await payOut(client, owner.organization_id);
    const brand = { name: 'Big', website_url: 'https://shop.example.com', program_id };
    const { id: brand_id } = await merchant.post('/recruitment/v1/brands', brand);
    await fillOutreach(client, { ...owner, brand_id }, size);
    progress(`audit: ${events} events to ${endpoints} endpoints`);
    await deliver(client, owner, events);
    await client.query('vacuum (analyze)');
    return {
      postgres_url: url,
      figures: {
        per_million: { unit: 's', better: 'lower', at_most: 60, doc: 'time for each million of rows' },
        rows: { unit: '', better: 'higher', doc: 'rows of all tables' },
      },
      notes: ['Each round reads everything once, however long that takes. No API or worker writes meanwhile.'],
      sides: [
        { name: 'count', doc: 'count(*) of every table', run: () => timed(client, () => countAll(client)) },
        { name: 'audit', doc: 'every invariant', baseline: 'count', run: () => timed(client, () => readAll(client)) },
      ],
    };
  },
};

async function timed(client: pg.Client, work: () => Promise<unknown>): Promise<Sample> {
  const count = await countAll(client);
  const began = performance.now();
  await work();
  return { per_million: ((performance.now() - began) / 1_000 / count) * 1_000_000, rows: count };
}

async function countAll(client: pg.Client): Promise<number> {
  const tables = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('program', 'webhooks', 'recruitment')
      and not exists (select from pg_inherits where inhrelid = format('%I.%I', schemaname, tablename)::regclass)`,
  );
  const counts = tables.rows.map(({ name }) => `(select count(*) from ${name})`);
  const { rows: answer } = await client.query<{ total: string }>(`select ${counts.join(' + ')} as total`);
  return Number(answer[0]?.total);
}

/** @throws Error when the rows are not as the service would have written them */
async function readAll(client: pg.Client): Promise<void> {
  for await (const [violation] of violations(client)) {
    if (violation) throw new Error(`The audit of the bench is not clean: ${JSON.stringify(violation)}`);
  }
}

/** Events of the last hours, each delivered to every endpoint by one attempt. */
async function deliver(client: pg.Client, { organization_id, program_id }: Owner, events: number): Promise<void> {
  const values = { organization_id: `'${organization_id}'`, program_id: `'${program_id}'` };
  const { organization_id: organization, program_id: program } = values;
  await client.query(`
    create temp table bench_event as
    select n, at, core.id_time_part(at) || 'e00h' || lpad(n::text, 12, '0') as tail
    from (select n, now() - interval '1 second' * (${events} - n) / 10 as at from generate_series(1, ${events}) as n) as spread`);
  await client.query(`
    insert into webhooks.event (organization_id, id, position, program_id, type, body, created_at)
    select ${organization}, 'evt_' || e.tail, nextval('webhooks.event_position'), ${program}, 'referral.created',
      json_build_object('id', 'evt_' || e.tail, 'type', 'referral.created', 'data', json_build_object('referral_id', 'ref_' || e.tail)), e.at
    from bench_event e order by e.n`);
  for (let nth = 0; nth < endpoints; nth++) {
    const id = `whe_bench${nth}`;
    await client.query(`
      insert into webhooks.endpoint (organization_id, id, program_id, url, event_types, status, secret, listens_from, created_at, updated_at)
      values (${organization}, '${id}', ${program}, 'https://hooks.example.com/bench', '{referral.created}', 'enabled', '', 0,
        now() - interval '1 day', now() - interval '1 day')`);
    await client.query(`
      insert into webhooks.endpoint_queue (organization_id, endpoint_id, done_position) values (${organization}, '${id}', ${events})`);
    await client.query(`
      insert into webhooks.delivery (
        organization_id, id, program_id, endpoint_id, event_id, event_type, queue_position, status, attempt, created_at, updated_at
      )
      select ${organization}, 'whd_' || e.tail || '${nth}', ${program}, '${id}', 'evt_' || e.tail, 'referral.created', e.n,
        'delivered', 1, e.at, e.at
      from bench_event e`);
    await client.query(`
      insert into webhooks.attempt (organization_id, delivery_id, attempt, at, duration_ms, status_code, response_body)
      select ${organization}, 'whd_' || e.tail || '${nth}', 1, e.at, 20, 200, 'ok' from bench_event e`);
  }
}
