/** Row-level security and the barrier of a view do not keep Postgres from its indexes: what a query asks for reaches them. */
import pg from 'pg';
import t from 'tap';
import { type Json, sql, startRail } from '../harness.ts';
import { openShop } from '../shop.ts';
import { connectAs, newLogin } from './tenant.ts';

// The rows are written past the triggers, so that reports and tallies do not know them.
const rail = await startRail({ worker: false, audit: false });
const [one, other] = [await openShop(rail), await openShop(rail)];
const partner = await one.partner();
const psql = await connectAs(await newLogin(rail, one.merchant));

const first_day = '2026-03-02';
const days = 14;
/** So many that a day of them is read by an index. */
const rows = 8_000;

const loader = new pg.Client({ connectionString: rail.url });
await loader.connect();
t.teardown(() => loader.end());
await loader.query('set session_replication_role = replica');

/** Rows of two organizations in turn, spread over the days. `r`: n, at, tail of an id, organization_id, program_id. */
const load = (statement: string) =>
  loader.query(
    statement.replace(
      'of r',
      `
    from (
      select n, at, core.id_time_part(at) || lpad(n::text, 16, '0') as tail,
        case n % 2 when 0 then '${one.merchant.organization_id}' else '${other.merchant.organization_id}' end as organization_id,
        case n % 2 when 0 then '${one.program_id}' else '${other.program_id}' end as program_id
      from (
        select n, timestamptz '${first_day}T00:00Z' + n * interval '${days} days' / ${rows} as at from generate_series(0, ${rows - 1}) as n
      ) as place
    ) as r`,
    ),
  );

for (const [table, prefix] of [
  ['program.click', 'clk'],
  ['webhooks.event', 'evt'],
  ['webhooks.delivery', 'whd'],
  ['webhooks.attempt', 'whd'],
])
  await loader.query(
    `call core.ensure_weekly_partitions('${table}', '${prefix}', '${first_day}T00:00Z', timestamptz '${first_day}T00:00Z' + interval '${days - 1} days')`,
  );
await load(`
  insert into program.click (organization_id, id, program_id, partner_id, param, value, landing_url, visitor_token, user_agent, created_at)
  select organization_id, 'clk_' || tail, program_id, '${partner.id}', 'ref', 'ada', 'https://acme.example.com/' || repeat('x', 100), tail, repeat('x', 100), at
  of r`);
await load(`
  insert into program.sale
    (organization_id, id, program_id, external_charge_id, amount_minor, net_amount_minor, currency, is_first_sale, occurred_at, metadata, created_at, updated_at)
  select organization_id, 'sale_' || tail, program_id, tail, 1000, 1000, 'USD', true, at, jsonb_build_object('note', repeat('x', 200)), at, at
  of r`);
await load(`
  insert into program.refund (organization_id, id, program_id, sale_id, amount_minor, refunded_at, created_at, updated_at)
  select organization_id, 'rfd_' || tail, program_id, 'sale_' || tail, 1000, case when n % 3 > 0 then at end, at, at
  of r`);
await load(`
  insert into program.commission_entry
    (organization_id, commission_id, program_id, partner_id, kind, cause, amount_minor, currency, effective_at, posted_at)
  select organization_id, 'com_' || tail, program_id, 'part_' || n % 1000, 'earned', repeat('x', 200), 100, 'USD', at, at
  of r`);
await load(`
  insert into webhooks.event (organization_id, id, position, program_id, type, body, created_at)
  select organization_id, 'evt_' || tail, n + 1000000, program_id, 'sale.created', '{"data":{"note":"' || repeat('x', 200) || '"}}', at
  of r`);
await load(`
  insert into webhooks.delivery (organization_id, id, program_id, endpoint_id, event_id, event_type, status, attempt, created_at, updated_at, request_body)
  select organization_id, 'whd_' || tail, program_id, 'whe_' || n % 7, 'evt_' || tail, 'sale.created',
    (array['delivered', 'pending', 'failed', 'cancelled'])[1 + n % 4], n % 3, at, at, repeat('x', 200)
  of r`);
await load(`
  insert into webhooks.endpoint (organization_id, id, program_id, url, secret)
  select distinct organization_id, 'whe_' || n % 7, program_id, 'https://acme.example.com/', ''::bytea
  of r`);
await load(`
  insert into recruitment.message
    (organization_id, id, brand_id, campaign_id, inbox_id, direction, purpose, state, rfc_message_id, body_text, step_index, reply_kind, sent_at,
     bounced_at, unsubscribed_at, received_at, created_at, updated_at)
  select organization_id, 'fms_' || tail, 'fbr_' || n % 3, case when n % 5 > 0 then 'fca_' || n % 5 end, 'fin_1',
    case when of_them.is_reply then 'inbound' else 'outbound' end, of_them.purpose, case when of_them.is_reply then 'received' else 'sent' end, tail,
    repeat('x', 200), n % 3, case when of_them.purpose = 'reply' then (array['positive', 'question', 'not_now'])[1 + n % 3] end,
    case when not of_them.is_reply then at end, case when n % 10 = 0 and not of_them.is_reply then at + interval '3 days' end,
    case when n % 20 = 4 and not of_them.is_reply then at + interval '5 days' end, case when of_them.is_reply then at end, at, at
  of r
  cross join lateral (
    select n % 8 = 6 as is_reply,
      case n % 32 when 6 then 'unsubscribe' when 14 then 'auto_reply' when 22 then 'reply' when 30 then 'reply' when 8 then 'test' else 'sequence' end as purpose
  ) as of_them`);
await load(`
  insert into webhooks.attempt (organization_id, delivery_id, attempt, at, duration_ms, status_code, response_body)
  select organization_id, 'whd_' || tail, 1, at, 5, 200, repeat('x', 200)
  of r`);
for (const table of [
  'program.click',
  'program.sale',
  'program.refund',
  'program.commission_entry',
  'webhooks.event',
  'webhooks.delivery',
  'webhooks.attempt',
  'webhooks.endpoint',
  'recruitment.message',
])
  await loader.query(`vacuum analyze ${table}`);

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: Plan[];
}

/** Counts the rows of tables that a plan read. */
const looked = (plan: Plan): number => {
  const below = (plan.Plans ?? []).reduce((sum, inner) => sum + looked(inner), 0);
  if (plan['Relation Name'] === undefined) return below;
  const each =
    plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0) + (plan['Rows Removed by Index Recheck'] ?? 0);
  return below + each * plan['Actual Loops'];
};

const tail = `${(await rail.query<{ tail: string }>(sql`select substr(id, 5) as tail from program.click where organization_id = ${one.merchant.organization_id} order by id offset 3600 limit 1`))[0]?.tail}`;
const [day, next_day] = ['2026-03-08', '2026-03-09'];
const of_day = `>= '${day}T00:00Z' and {} < '${next_day}T00:00Z'`;
const on = (column: string): string => `${column} ${of_day.replace('{}', column)}`;

const queries: Record<string, string> = {
  'a click by id': `select * from data.click where id = 'clk_${tail}'`,
  'clicks of ids': `select * from data.click where id in ('clk_${tail}', 'clk_${tail}x')`,
  'clicks of a range of ids': `select * from data.click where id >= 'clk_${tail}' and id < 'clk_${tail.slice(0, 5)}z'`,
  'clicks of a day': `select min(landing_url), count(*) from data.click where ${on('created_at')}`,
  'a sale by id': `select * from data.sale where id = 'sale_${tail}'`,
  'sales of a day': `select sum(amount_minor) from data.sale where ${on('created_at')}`,
  'sales that occurred on a day': `select sum(amount_minor) from data.sale where ${on('occurred_at')}`,
  'a charge by its id at the processor': `select * from data.reconciliation where program_id = '${one.program_id}' and external_id = '${tail}'`,
  'refunds of a day': `select sum(amount_minor) from data.refund where program_id = '${one.program_id}' and ${on('refunded_at')}`,
  'entries of a commission': `select * from data.commission_entry where commission_id = 'com_${tail}'`,
  'entries of a day': `select * from data.commission_entry where ${on('posted_at')}`,
  'the ledger of a partner': `select * from data.partner_ledger where partner_id = 'part_8'`,
  'the clicks of a day, rolled up': `select sum(clicks) from data.click_daily where day = '${day}'`,
  'the sales of a day, rolled up': `select sum(amount_minor) from data.sale_daily where day = '${day}' and program_id = '${one.program_id}'`,
  'the sales of some days, rolled up': `select sum(amount_minor) from data.sale_daily where day >= '${day}' and day < '${next_day}'`,
  'the commissions of a day, rolled up': `select sum(earned_minor) from data.commission_daily where day = '${day}'`,
  'the funnel of a day': `select sum(clicks), sum(sales) from data.funnel_daily where day between '${day}' and '${day}'`,
  'an event by id': `select * from data.event where id = 'evt_${tail}'`,
  'events of a day': `select min(type), count(*) from data.event where ${on('created_at')}`,
  'deliveries of a day': `select min(status), count(*) from data.webhook_delivery where ${on('created_at')}`,
  'how endpoints answered on a day': `select sum(deliveries) from data.webhook_health where day = '${day}'`,
  'how an endpoint answered on some days': `select * from data.webhook_health where endpoint_id = 'whe_2' and day >= '${day}' and day <= '${next_day}'`,
  'the emails and replies of a day': `select sum(sent), sum(replies) from data.outreach_daily where day = '${day}'`,
  'attempts of a delivery': `select * from data.webhook_attempt where delivery_id = 'whd_${tail}'`,
  'sales with their refunds': `select s.id, r.amount_minor from data.sale s left join data.refund r on r.sale_id = s.id where s.id = 'sale_${tail}'`,
};

for (const [name, query] of Object.entries(queries))
  t.test(`reads ${name} by an index`, async (t) => {
    const [row] = await psql.query(`explain (analyze, timing off, format json) ${query}`);
    const [{ Plan: plan }] = (row as Json)['QUERY PLAN'];
    // A day is a fourteenth, and an index by time leads to whole ranges of pages.
    t.ok(looked(plan) < rows / 4, `looks at ${looked(plan)} of ${rows} rows`);
    t.not(looked(plan), 0, 'and finds some');
  });

/** Returns the differences between a rollup and the same counted from its rows. */
const differences = (rollup: string, counted: string): Promise<Json[]> =>
  psql.query(`(select 'too much', x.* from (${rollup}) x except all select 'too much', x.* from (${counted}) x)
    union all (select 'missing', x.* from (${counted}) x except all select 'missing', x.* from (${rollup}) x) limit 3`);

t.test('counts deliveries as their rows say', async (t) => {
  const counted = `
    select endpoint_id, (created_at at time zone 'UTC')::date as day, count(*) as deliveries, count(*) filter (where status = 'delivered') as delivered,
      count(*) filter (where status = 'pending') as pending, count(*) filter (where status = 'failed') as failed,
      count(*) filter (where status = 'cancelled') as cancelled, count(*) filter (where attempt > 1) as retried, sum(attempt)::bigint as attempts,
      round(count(*) filter (where status = 'delivered') * 10000.0
        / nullif(count(*) filter (where status in ('delivered', 'failed')), 0))::bigint as delivered_bps,
      max(updated_at) filter (where status = 'delivered') as last_delivered_at
    from data.webhook_delivery group by 1, 2`;
  t.same(await differences('select * from data.webhook_health', counted), []);
});

t.test('counts emails and replies as their rows say', async (t) => {
  const counted = `
    select (f.at at time zone 'UTC')::date as day, m.brand_id, m.campaign_id, count(*) filter (where f.what = 'sent') as sent,
      count(*) filter (where f.what = 'sent' and m.step_index = 0) as first_emails, count(*) filter (where f.what = 'bounced') as bounced,
      count(*) filter (where f.what = 'reply') as replies,
      count(*) filter (where f.what = 'reply' and m.reply_kind in ('positive', 'question')) as interested_replies,
      count(*) filter (where f.what = 'unsubscribe') as unsubscribe_replies, count(*) filter (where f.what = 'unsubscribed') as unsubscribed
    from data.message m
    cross join lateral (
      values
        (case when m.direction = 'outbound' and m.purpose <> 'test' then 'sent' end, m.sent_at),
        (case when m.direction = 'outbound' and m.purpose <> 'test' then 'bounced' end, m.bounced_at),
        (case when m.direction = 'outbound' and m.purpose <> 'test' then 'unsubscribed' end, m.unsubscribed_at),
        (case when m.purpose in ('reply', 'unsubscribe') then m.purpose end, m.received_at)
    ) as f (what, at)
    where f.what is not null and f.at is not null
    group by 1, 2, 3`;
  t.same(await differences('select * from data.outreach_daily', counted), []);
});
