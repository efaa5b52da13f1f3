import type pg from 'pg';
import { type Dimension, dimensions, nounsOf } from '../../src/program/reports/dimension.ts';
import { fact_measures } from '../../src/program/reports/metric.ts';
import type { Bulk, Load } from './bulk.ts';
import type { Progress } from './harness.ts';
import type { Owner } from './rows.ts';

export interface Sizes {
  clicks: number;
  sales: number;
  partners: number;
  days: number;
}

/** Skews a spread: a few partners, links, countries and pages have most of the clicks, by the square of an even spread. */
const skewed = (count: number, salt: string): string =>
  `(1 + floor(${count} * power((hashint8extended(s.n, ${salt}) & 1048575) / 1048576.0, 2)))::int`;
const even = (count: number, salt: string): string =>
  `(1 + (hashint8extended(s.n, ${salt}) & 1073741823) % ${count})::int`;
const countries = ['US', 'DE', 'GB', 'FR', 'IN', 'BR', 'CA', 'AU', 'ES', 'IT', 'NL', 'SE', 'PL', 'JP', 'MX', 'ZA'];

/** As the service makes them, and much faster for millions. */
const clickId = (at: string, n: string): string => {
  const digits = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0].map(
    (digit) =>
      `substr('0123456789abcdefghjkmnpqrstvwxyz', ((extract(epoch from ${at}) * 1000)::bigint >> ${5 * digit} & 31)::int + 1, 1)`,
  );
  return `'clk_' || ${digits.join(' || ')} || lpad(${n}::text, 16, '0')`;
};

/** Clicks that one statement makes. */
const most_clicks = 500_000;

/**
 * Fills a program with partners, two links each, clicks, referrals, customers, sales, refunds and commissions, evenly over the days before now,
 * a table in one statement (clicks in several), without triggers: who calls it has the sums counted.
 */
export async function fillReports(bulk: Bulk, owner: Owner, sizes: Sizes, progress: Progress): Promise<void> {
  const rows = rowsOf(owner, sizes, new Date());
  const load =
    (what: keyof typeof rows.tables): Load =>
    (client) => {
      progress(`reports: ${what}`);
      return client.query(rows.tables[what]);
    };
  const { client } = bulk;
  await client.query(
    `call core.ensure_weekly_partitions('program.click', 'clk', now() - interval '${sizes.days + 7} days', now())`,
  );
  for (const what of ['groups', 'partners', 'links', 'coupons'] as const) await load(what)(client);
  const chunks = Array.from({ length: Math.ceil(sizes.clicks / most_clicks) }, (_, nth) => nth * most_clicks);
  const clicks = chunks.map(
    (after): Load =>
      (own) => {
        progress(`reports: clicks from ${after + 1}`);
        return own.query(rows.clicks(after + 1, Math.min(after + most_clicks, sizes.clicks)));
      },
  );
  const others: Load = async (own) => {
    for (const what of ['referrals', 'customers', 'sales', 'refunds', 'commissions'] as const) await load(what)(own);
  };
  const tables = ['click', 'referral', 'customer', 'sale', 'refund', 'commission'].map((table) => `program.${table}`);
  await bulk.withoutIndexes(tables, async () => {
    await bulk.run([others, ...clicks]);
    progress('reports: indexes');
  });
  progress('reports: vacuum');
  await bulk.run(tables.map((table) => (own) => own.query(`vacuum (analyze) ${table}`)));
  await client.query('analyze program.partner_group, program.partner, program.link, program.coupon');
}

/** The statements that make the rows. */
function rowsOf(owner: Owner, sizes: Sizes, until: Date) {
  const customers = Math.max(1, Math.floor(sizes.sales / 4));
  const coupons = Math.ceil(sizes.partners / 10);
  const o = `'${owner.organization_id}'`;
  const p = `'${owner.program_id}'`;
  const id = (prefix: string, n: string): string => `('${prefix}_bench' || lpad((${n})::text, 21, '0'))`;
  const at = (count: number): string =>
    `timestamptz '${until.toISOString()}' - interval '${sizes.days} days' * ((${count} - s.n + 1)::float8 / ${count})`;
  const page = `'https://shop.example.com/page-' || ${skewed(300, '4')}`;
  const partner = skewed(sizes.partners, '1');
  const country = `(array['${countries.join("','")}'])[${skewed(countries.length, '3')}]`;
  const tables = {
    groups: `
      insert into program.partner_group (organization_id, id, program_id, name, slug)
      select ${o}, ${id('grp', 's.n')}, ${p}, 'Group ' || s.n, 'bench-' || s.n from generate_series(1, 20) as s (n)`,
    partners: `
      insert into program.partner (organization_id, id, program_id, group_id, email, mailbox, handle, status, currency)
      select ${o}, ${id('part', 's.n')}, ${p}, ${id('grp', '1 + s.n % 20')}, 'p' || s.n || '@example.com', 'p' || s.n || '@example.com',
        'bench-' || s.n, 'active', 'USD' from generate_series(1, ${sizes.partners}) as s (n)`,
    links: `
      insert into program.link (organization_id, id, program_id, partner_id, param, value, destination_url, url)
      select ${o}, ${id('lnk', 's.n')}, ${p}, ${id('part', '(s.n + 1) / 2')}, 'ref', 'bench-' || s.n, 'https://shop.example.com/',
        'https://shop.example.com/?ref=bench-' || s.n from generate_series(1, ${2 * sizes.partners}) as s (n)`,
    coupons: `
      insert into program.coupon (organization_id, id, program_id, partner_id, code)
      select ${o}, ${id('cpn', 's.n')}, ${p}, ${id('part', 's.n')}, 'BENCH' || s.n from generate_series(1, ${coupons}) as s (n)`,
    referrals: `
      insert into program.referral
        (organization_id, id, program_id, partner_id, link_id, visitor_token, landing_url, country, tracked_by, status, expires_at, created_at, updated_at)
      select ${o}, ${id('ref', 's.n')}, ${p}, ${id('part', partner)}, ${id('lnk', `${partner} * 2 - s.n % 2`)}, 'visitor-r' || s.n, ${page},
        ${country}, 'link', 'converted', now(), ${at(customers)}, now() from generate_series(1, ${customers}) as s (n)`,
    customers: `
      insert into program.customer
        (organization_id, id, program_id, partner_id, referral_id, link_id, status, tracked_by, lead_at, converted_at, created_at, updated_at)
      select ${o}, ${id('cus', 's.n')}, ${p}, ${id('part', partner)}, ${id('ref', 's.n')}, ${id('lnk', `${partner} * 2 - s.n % 2`)}, 'active', 'link',
        ${at(customers)}, ${at(customers)}, ${at(customers)}, now() from generate_series(1, ${customers}) as s (n)`,
    sales: `
      insert into program.sale
        (organization_id, id, program_id, partner_id, customer_id, link_id, referral_id, coupon_id, external_charge_id, product_id, amount_minor,
         net_amount_minor, refunded_minor, currency, status, is_first_sale, occurred_at, created_at, updated_at)
      select ${o}, ${id('sale', 's.n')}, ${p}, c.partner_id, c.id, c.link_id, c.referral_id,
        case when s.n % 5 = 0 then ${id('cpn', even(coupons, '6'))} end, 'charge-' || s.n, 'product-' || ${skewed(40, '7')}, 9900, 9900,
        case when s.n % 25 = 0 then 9900 else 0 end, case when s.n % 50 = 0 then 'EUR' else 'USD' end,
        case when s.n % 25 = 0 then 'refunded' else 'paid' end, false, ${at(sizes.sales)}, ${at(sizes.sales)}, now()
      from generate_series(1, ${sizes.sales}) as s (n)
      join program.customer c on c.organization_id = ${o} and c.id = ${id('cus', even(customers, '5'))}`,
    refunds: `
      insert into program.refund (organization_id, id, program_id, sale_id, amount_minor, refunded_at, created_at, updated_at)
      select ${o}, replace(s.id, 'sale_', 'rfd_'), ${p}, s.id, s.refunded_minor, s.occurred_at + interval '3 days', s.occurred_at, s.occurred_at
      from program.sale s where s.organization_id = ${o} and s.refunded_minor > 0`,
    commissions: `
      insert into program.commission
        (organization_id, id, program_id, partner_id, customer_id, sale_id, payout_id, kind, amount_minor, base_amount_minor, currency, status,
         mature_at, paid_at, voided_at, void_reason, created_at, updated_at)
      select ${o}, replace(s.id, 'sale_', 'com_'), ${p}, s.partner_id, s.customer_id, s.id, case when k.status = 'paid' then 'pyt_bench' end, 'sale', 1980, 9900,
        s.currency, k.status, s.occurred_at, case when k.status = 'paid' then s.occurred_at + interval '45 days' end,
        case when k.status = 'voided' then s.occurred_at end, case when k.status = 'voided' then 'sale_refunded' end, s.created_at, s.created_at
      from program.sale s
      cross join lateral (select case when s.status = 'refunded' then 'voided' when s.occurred_at < now() - interval '45 days' then 'paid' else 'due' end as status) k
      where s.organization_id = ${o}`,
  };
  const clicks = (first: number, last: number): string => `
    insert into program.click
      (organization_id, id, program_id, partner_id, link_id, param, value, landing_url, visitor_token, ip_hash, user_agent, country, device, attributed_at, created_at)
    select ${o}, ${clickId('c.at', 'c.n')}, ${p}, ${id('part', 'c.partner')},
      ${id('lnk', 'c.partner * 2 - c.n % 2')}, 'ref', 'bench', c.page || '?ref=bench', 'visitor-' || c.n, md5(c.n::text),
      'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', c.country, 'desktop', c.at, c.at
    from (select s.n, ${at(sizes.clicks)} as at, ${partner} as partner, ${country} as country, ${page} as page
      from generate_series(${first}, ${last}) as s (n) offset 0) as c`;
  return { tables, clicks };
}

const sums = [...fact_measures.counted, ...fact_measures.added];
/** Those of the most keys first, so that no connection is left with them in the end. */
const most_keys: Dimension[] = ['link_id', 'partner_id', 'customer_id'];

/**
 * Sums up the facts of a program as the job that folds notes does, in one pass a dimension: so many notes would take hours.
 * `program.audit_reports()` says whether it is the same.
 */
export async function sumReports(bulk: Bulk, owner: Owner, progress: Progress): Promise<void> {
  const { client } = bulk;
  const [o, p] = [`'${owner.organization_id}'`, `'${owner.program_id}'`];
  await client.query(
    `insert into program.report_slice (organization_id, program_id, dimension, minutes)
    select ${o}, ${p}, s.dimension, s.minutes from program.report_spans() s order by 3, 4 on conflict do nothing`,
  );
  progress('reports: reading the facts');
  await client.query(
    `create unlogged table bench_fact as
    select f.noun, floor(extract(epoch from f.at) / 60)::integer as minute,
      ${[...dimensions, 'currency', ...sums].map((name) => `f.${name}`).join(', ')}
    from program.report_fact f
    where f.organization_id = ${o} and f.program_id = ${p}`,
  );
  await client.query('analyze bench_fact');
  const others = dimensions.filter((dimension) => !most_keys.includes(dimension));
  await bulk.withoutIndexes(['program.report_total'], () =>
    bulk.run(
      [...most_keys, ...others, '' as const].map((dimension) => (own) => {
        progress(`reports: summing up ${dimension || 'all'}`);
        return sumBy(own, { o, p, dimension });
      }),
    ),
  );
  await client.query('drop table bench_fact');
  await client.query('vacuum (analyze) program.report_total, program.report_key, program.report_slice');
  await client.query(
    `update program.fold f set seen = pg_current_snapshot() where f.organization_id = ${o} and f.sums = 'reports'`,
  );
}

interface Summed {
  o: string;
  p: string;
  dimension: Dimension | '';
}

/** The shortest spans from the facts, the others from these. */
async function sumBy(client: pg.Client, { o, p, dimension }: Summed): Promise<void> {
  const key = dimension === '' ? "''" : `coalesce(f.${dimension}, '')`;
  const where = `f.noun = any('{${nounsOf([dimension]).join(',')}}')`;
  await client.query(
    `insert into program.report_key (organization_id, program_id, dimension, key)
    select ${o}, ${p}, '${dimension}', x.key from (select distinct ${key} as key from bench_fact f where ${where}) x on conflict do nothing`,
  );
  await client.query(
    `create temp table bench_sum as
    select f.minute / s.minutes * s.minutes as starts_in, k.id as key_id, f.currency, ${sums.map((name) => `sum(f.${name}) as ${name}`).join(', ')}
    from bench_fact f
    join program.report_key k on k.organization_id = ${o} and k.program_id = ${p} and k.dimension = '${dimension}' and k.key = ${key}
    join program.report_spans() s on s.dimension = '${dimension}' and s.is_finest
    where ${where}
    group by 1, 2, 3`,
  );
  await client.query(
    `insert into program.report_total (slice_id, starts_in, key_id, organization_id, currency, ${sums.join(', ')})
    select s.id, n.starts_in / s.minutes * s.minutes, n.key_id, ${o}, n.currency, ${sums.map((name) => `nullif(sum(n.${name}), 0)`).join(', ')}
    from bench_sum n
    join program.report_slice s on s.organization_id = ${o} and s.program_id = ${p} and s.dimension = '${dimension}'
    group by 1, 2, 3, 5
    order by 1, 2, 3, 5`,
  );
  await client.query('drop table bench_sum');
}
