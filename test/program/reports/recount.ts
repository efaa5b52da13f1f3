import { raw } from 'sql-template-tag';
import { type Json, type Rail, sql } from '../../harness.ts';

/** A fact as a reader of the specification would count it, one row after another, from the tables. */
interface Fact {
  metric: string;
  at: number;
  currency: string | null;
  amount: number;
  partner_id: string | null;
  group_id: string | null;
  link_id: string | null;
  coupon_id: string | null;
  country: string | null;
  landing_page: string | null;
  product_id: string | null;
  customer_id: string | null;
}

const counts = ['clicks', 'referrals', 'leads', 'customers', 'sales'];
const money = ['revenue_minor', 'refunds_minor', 'commissions_minor', 'clawbacks_minor', 'paid_minor'];
const of_sales = ['sales', ...money];

/** All facts of a program. */
export async function factsOf(rail: Rail, program_id: string): Promise<Fact[]> {
  const read = async (table: string): Promise<Json[]> =>
    (
      await rail.query<{ row: Json }>(
        sql`select to_jsonb(t) as row from program.${raw(table)} t where t.program_id = ${program_id}`,
      )
    ).map(({ row }) => row);
  const clicks = await read('click');
  const referrals = await read('referral');
  const customers = await read('customer');
  const sales = await read('sale');
  const refunds = await read('refund');
  const commissions = await read('commission');
  const partners = await read('partner');
  const find = (rows: Json[], id: string | null) => rows.find((row) => row.id === id);
  const facts: Fact[] = [];
  const add = (metric: string, at: string | Date | null, fields: Partial<Fact>) => {
    if (at === null) return;
    facts.push({
      metric,
      at: new Date(at).getTime(),
      currency: null,
      amount: 1,
      partner_id: null,
      link_id: null,
      coupon_id: null,
      country: null,
      landing_page: null,
      product_id: null,
      customer_id: null,
      ...fields,
      group_id: find(partners, fields.partner_id ?? null)?.group_id ?? null,
    });
  };
  const visitOf = (referral_id: string | null) => {
    const referral = find(referrals, referral_id);
    return { country: referral?.country ?? null, landing_page: pageOf(referral?.landing_url) };
  };
  for (const { created_at, partner_id, link_id, country, landing_url } of clicks)
    add('clicks', created_at, { partner_id, link_id, country, landing_page: pageOf(landing_url) });
  for (const { id, created_at, partner_id, link_id, deleted_at } of referrals)
    if (!deleted_at) add('referrals', created_at, { partner_id, link_id, ...visitOf(id) });
  for (const { partner_id, link_id, coupon_id, referral_id, lead_at, converted_at, deleted_at } of customers) {
    if (deleted_at) continue;
    add('leads', lead_at, { partner_id, link_id, coupon_id, ...visitOf(referral_id) });
    add('customers', converted_at, { partner_id, link_id, coupon_id, ...visitOf(referral_id) });
  }
  const attributionOf = (sale: Json | undefined): Partial<Fact> => ({
    link_id: sale?.link_id ?? null,
    coupon_id: sale?.coupon_id ?? null,
    product_id: sale?.product_id ?? null,
    ...visitOf(sale?.referral_id ?? null),
  });
  for (const sale of sales) {
    if (sale.deleted_at || !sale.partner_id) continue;
    const { currency, partner_id, customer_id } = sale;
    const fields = { ...attributionOf(sale), currency, partner_id, customer_id };
    add('sales', sale.occurred_at, fields);
    add('revenue_minor', sale.occurred_at, { ...fields, amount: sale.amount_minor });
    for (const refund of refunds)
      if (refund.sale_id === sale.id && !refund.deleted_at)
        add('refunds_minor', refund.refunded_at ?? refund.created_at, { ...fields, amount: refund.amount_minor });
  }
  for (const { kind, status, deleted_at, sale_id, created_at, paid_at, amount_minor, ...commission } of commissions) {
    if (deleted_at || ['voided', 'rejected'].includes(status)) continue;
    const sale = find(sales, sale_id);
    const { currency, partner_id, customer_id } = commission;
    const fields = { ...attributionOf(sale), currency, partner_id, customer_id };
    if (kind === 'clawback') add('clawbacks_minor', created_at, { ...fields, amount: -amount_minor });
    else add('commissions_minor', sale?.occurred_at ?? created_at, { ...fields, amount: amount_minor });
    if (status === 'paid') add('paid_minor', paid_at, { ...fields, amount: amount_minor });
  }
  return facts;
}

const pageOf = (url: string | null | undefined): string | null => {
  if (!url) return null;
  const { host, pathname } = new URL(url);
  return host + pathname;
};

/** The facts that each report is about. */
export const rows_of: Record<string, { key: keyof Fact | null; metrics: string[] }> = {
  overview: { key: null, metrics: [...counts, ...money] },
  partners: { key: 'partner_id', metrics: [...counts, ...money] },
  groups: { key: 'group_id', metrics: [...counts, ...money] },
  links: { key: 'link_id', metrics: [...counts, ...money] },
  coupons: { key: 'coupon_id', metrics: ['referrals', 'leads', 'customers', 'sales', ...money] },
  countries: { key: 'country', metrics: [...counts, ...money] },
  landing_pages: { key: 'landing_page', metrics: [...counts, ...money] },
  products: { key: 'product_id', metrics: of_sales },
  customers: { key: 'customer_id', metrics: of_sales },
};

/** The metrics of some facts, as a report shows them. */
export function totalsOf(facts: Fact[], report: string, currency: string): Json {
  const { metrics } = rows_of[report] as { metrics: string[] };
  const sum = (metric: string, of: (fact: Fact) => boolean) =>
    facts.filter((fact) => fact.metric === metric && of(fact)).reduce((total, { amount }) => total + amount, 0);
  const moneyIn = (code: string) => {
    const amounts = Object.fromEntries(money.map((metric) => [metric, sum(metric, (fact) => fact.currency === code)]));
    return { ...amounts, net_revenue_minor: (amounts.revenue_minor as number) - (amounts.refunds_minor as number) };
  };
  const own: Json = {
    ...Object.fromEntries(counts.map((metric) => [metric, sum(metric, () => true)])),
    ...moneyIn(currency),
  };
  own.conversion_bps = own.clicks === 0 ? 0 : halfAway((own.customers * 10_000) / own.clicks);
  own.epc_minor = own.clicks === 0 ? 0 : halfAway(own.commissions_minor / own.clicks);
  const others = [...new Set(facts.filter((fact) => metrics.includes(fact.metric)).map((fact) => fact.currency))]
    .filter((code): code is string => code !== null && code !== currency)
    .sort()
    .map((code) => ({ currency: code, ...moneyIn(code) }));
  const shown = [
    'net_revenue_minor',
    ...metrics,
    ...(metrics.includes('clicks') ? ['conversion_bps', 'epc_minor'] : []),
  ];
  return {
    ...Object.fromEntries(shown.map((name) => [name, own[name]])),
    other_currencies: others.filter(
      (other) =>
        Object.values(other).some((value) => typeof value === 'number' && value !== 0) ||
        facts.some(({ metric, currency: code }) => metric === 'sales' && code === other.currency),
    ),
  };
}

const halfAway = (value: number): number => Math.sign(value) * Math.round(Math.abs(value));

/** The rows of a report, by key. */
export function rowsOf(facts: Fact[], report: string, currency: string): Map<string | null, Json> {
  const { key, metrics } = rows_of[report] as { key: keyof Fact; metrics: string[] };
  const counted = facts.filter(({ metric }) => metrics.includes(metric));
  const by_key = Map.groupBy(counted, (fact) => fact[key] as string | null);
  const rows = [...by_key].map(([value, of]) => [value, totalsOf(of, report, currency)] as const);
  return new Map(
    rows.filter(
      ([, { other_currencies, ...own }]) =>
        other_currencies.length > 0 || Object.values(own).some((amount) => amount !== 0),
    ),
  );
}

/** The calendar day of a time in a zone. */
export const dayOf = (zone: string) => {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone: zone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  });
  return (at: number): string => format.format(at);
};

/** The first instant of a day in a zone: looked for minute by minute, around the same day in UTC. */
export function startOfDay(day: string, zone: string): number {
  const of = dayOf(zone);
  const midnight = Date.parse(`${day}T00:00:00Z`);
  for (let at = midnight - 16 * 3_600_000; ; at += 15 * 60_000) if (of(at) >= day) return at;
}

/** Returns the name of a day's interval. */
export function labelOf(day: string, interval: string): string {
  if (interval === 'day') return day;
  if (interval === 'month') return day.slice(0, 7);
  const thursday = new Date(`${day}T00:00:00Z`);
  thursday.setUTCDate(thursday.getUTCDate() + 3 - ((thursday.getUTCDay() + 6) % 7));
  const year = thursday.getUTCFullYear();
  const week = Math.floor((thursday.getTime() - Date.UTC(year, 0, 1)) / (7 * 86_400_000)) + 1;
  return `${year}-W${String(week).padStart(2, '0')}`;
}
