/** Reports say the same of rows, of sums of them, and of both. */

import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { foldReports } from '../../../src/program/reports/sums/fold.ts';
import { type Json, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';

/** No worker: the sums are folded where the test says so. */
const rail = await startRail({ worker: false });
const service = { organization_id: null, request_id: null };
const fold = (): Promise<number> => transaction(rail.store, service, (tx) => foldReports(tx, 1_000_000));

const customers = 300;
const days = 24;
const day_ms = 86_400_000;
const today = Math.floor(Date.now() / day_ms) * day_ms;

/** Customers of three partners, each with one sale or two of amounts of several sizes, and refunds five days after some sales. */
async function sell({ program_id, merchant }: Shop, partners: Json[]): Promise<void> {
  const { organization_id } = merchant;
  const ids = partners.map(({ id }) => id);
  await rail.query(sql`
    insert into program.customer (organization_id, id, program_id, partner_id, status, tracked_by, created_at, updated_at)
    select ${organization_id}, 'cus_shown' || lpad(n::text, 21, '0'), ${program_id}, (${ids}::text[])[1 + n % 3], 'active', 'link', now(), now()
    from generate_series(1, ${customers}) as n`);
  await rail.query(sql`
    insert into program.sale (
      organization_id, id, program_id, partner_id, customer_id, external_charge_id, amount_minor, net_amount_minor, currency, refunded_minor, status,
      is_first_sale, occurred_at, created_at, updated_at
    )
    select ${organization_id}, 'sale_shown' || lpad(n::text, 20, '0'), ${program_id}, (${ids}::text[])[1 + n % 3],
      'cus_shown' || lpad((1 + n * 7919 % ${customers})::text, 21, '0'), 'shown_' || n, a.amount, a.amount, a.currency,
      a.refunded, case when a.refunded > 0 then 'partially_refunded' else 'paid' end, false, a.at, a.at, a.at
    from generate_series(1, ${customers * 2}) as n
    cross join lateral (
      select
        case n % ${days} when 3 then 5000000000 when 4 then 70000 + n % 11 else 100 + n % 13 end as amount,
        case when n % 17 = 0 then 'EUR' else 'USD' end as currency, case when n % 37 = 0 then 40 else 0 end as refunded,
        ${new Date(today).toISOString()}::timestamptz - (1 + n % ${days}) * interval '1 day' + n % 24 * interval '1 hour' as at
    ) as a`);
  await rail.query(sql`
    insert into program.refund (organization_id, id, program_id, sale_id, amount_minor, refunded_at, created_at, updated_at)
    select s.organization_id, replace(s.id, 'sale_', 'rfd_'), s.program_id, s.id, s.refunded_minor, s.occurred_at + interval '5 days', s.occurred_at, s.occurred_at
    from program.sale s
    where s.program_id = ${program_id} and s.refunded_minor > 0`);
}

const reports = ['partners', 'groups', 'customers', 'countries'];
/** All rows of few keys are read, by whatever metric they are sorted. */
const sorts = ['-revenue_minor'];
/** By what few customers have, by what none has, and from the lowest up: most have nothing of it, and with refunds alone it is below 0. */
const sorts_of_customers = ['-revenue_minor', '-clawbacks_minor', 'net_revenue_minor', 'sales'];

/** Returns the reports of two windows in two zones: the first rows by several metrics, and their totals. */
async function said({ program_id, merchant }: Shop): Promise<Json> {
  const replies: Json = {};
  for (const report of reports)
    for (const sort of report === 'customers' ? sorts_of_customers : sorts)
      for (const [from, zone] of [
        [today - 20 * day_ms, 'UTC'],
        [today - 17 * day_ms - 5.5 * 3_600_000, 'Asia/Kolkata'],
      ] as const) {
        const window = `from=${new Date(from).toISOString()}&to=${new Date(today).toISOString()}&timezone=${zone}`;
        const reply = await merchant.get(
          `/v1/reports/${report}?program_id=${program_id}&${window}&limit=20&sort=${sort}`,
        );
        replies[`${report} ${sort} ${zone}`] = reply;
      }
  const all = `from=${new Date(today - 20 * day_ms).toISOString()}&to=${new Date(today).toISOString()}&limit=10000`;
  const filtered = `/v1/reports/customers?program_id=${program_id}&${all}&link_id=none`;
  replies['customers by no link'] = await merchant.get(filtered);
  return replies;
}

t.test('says the same of rows, of sums, and of what has changed since', async (t) => {
  const shop = await openShop(rail);
  const partners = [await shop.partner(), await shop.partner(), await shop.partner()];
  await sell(shop, partners);
  await rail.query(sql`update program.program set reports_ready = false where id = ${shop.program_id}`);
  const of_rows = await said(shop);
  await rail.query(sql`update program.program set reports_ready = true where id = ${shop.program_id}`);
  t.equal(of_rows['customers -revenue_minor UTC'].rows.length, 20);
  t.ok(of_rows['customers by no link'].rows.length > 150);
  const window = `from=${new Date(today - 20 * day_ms).toISOString()}&to=${new Date(today).toISOString()}`;
  const path = `/v1/reports/customers?program_id=${shop.program_id}&${window}`;
  t.equal((await shop.merchant.get(path)).rows.length, 100, 'the default of `limit`');
  t.same(await said(shop), of_rows, 'not folded');
  await fold();
  t.same(await said(shop), of_rows, 'folded');
  t.same(await rail.audit(), []);

  const [sale] = (await shop.list('sales')) as [Json];
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 123_456_789 });
  await shop.merchant.request('DELETE', '/v1/sales/sale_shown00000000000000000019');
  await shop.sale({ partner_id: partners[0]?.id, occurred_at: new Date(today - 3 * day_ms).toISOString() });
  // So many keys lose everything that others are shown instead of them.
  await rail.query(sql`
      update program.sale s set deleted_at = now()
      where s.program_id = ${shop.program_id} and s.customer_id < 'cus_shown000000000000000000080'`);
  const of_notes = await said(shop);
  t.notSame(of_notes, of_rows);
  await fold();
  t.same(await said(shop), of_notes, 'changed since');
  t.same(await rail.audit(), []);
  await rail.query(sql`update program.program set reports_ready = false where id = ${shop.program_id}`);
  t.same(await said(shop), of_notes, 'of rows again');
});

t.test('folds many keys with one read of each, whatever the statistics say', async (t) => {
  const shop = await openShop(rail);
  const partners = [await shop.partner(), await shop.partner(), await shop.partner()];
  await rail.query(sql`
    insert into program.report_key (organization_id, program_id, dimension, key)
    select ${shop.merchant.organization_id}, ${shop.program_id}, d, '' from unnest(array['customer_id', 'partner_id', 'link_id']) as d`);
  await rail.query(sql`analyze program.report_key`);
  await sell(shop, partners);
  const reads = async (): Promise<number> => {
    const [counted] = await rail.query<{ reads: number }>(sql`
      select sum(i.idx_tup_read)::integer as reads from pg_stat_user_indexes i where i.relid = 'program.report_key'::regclass`);
    return counted?.reads ?? 0;
  };
  const before = await reads();
  await transaction(rail.store, service, async (tx) => {
    await foldReports(tx, 1_000_000);
    await tx.one(sql`select pg_stat_force_next_flush()`);
  });
  const read = (await reads()) - before;
  t.ok(read > 0);
  t.ok(read < 20 * customers, 'a few for each customer');
  t.same(await rail.audit(), []);
});

t.test('ends a report that takes too long before the request is given up, and says what to do', async (t) => {
  const shop = await openShop(rail);
  await rail.query(sql`
    create or replace function program.unfolded_facts(organization text) returns setof program.report_note language plpgsql as $$
    begin
      if current_setting('statement_timeout') <> '9s' then
        raise 'No limit is set.';
      end if;
      raise exception using errcode = 'query_canceled', message = 'canceling statement due to statement timeout';
    end
    $$`);
  for (const report of ['overview', 'partners', 'countries']) {
    const { status, body } = await shop.merchant.request(
      'GET',
      `/v1/reports/${report}?program_id=${shop.program_id}&from=${new Date(today - 20 * day_ms).toISOString()}&to=${new Date(today).toISOString()}`,
    );
    t.match({ status, ...body.error }, { status: 400, code: 'invalid_parameter', param: 'from', message: /9 seconds/ });
  }
});
