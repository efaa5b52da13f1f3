import { type Caller, type Json, type Rail, sql } from '../harness.ts';

/** A program with its merchant, for tests of what follows from what. Every call makes something new, unless told otherwise. */
export interface Shop {
  merchant: Caller;
  program: Json;
  rule(fields?: Json): Promise<Json>;
  partner(fields?: Json): Promise<Json>;
  link(partner: Json, fields?: Json): Promise<Json>;
  click(partner: Json, fields?: Json): Promise<Json>;
  /** A customer whom a new click through the partner brought. */
  referred(partner: Json, fields?: Json): Promise<Json>;
  customer(fields?: Json): Promise<Json>;
  coupon(fields?: Json): Promise<Json>;
  sale(fields?: Json): Promise<Json>;
  refund(sale: Json, fields?: Json): Promise<Json>;
  list(plural: string, query?: string): Promise<Json[]>;
  /** The commissions of a sale that count, oldest first. */
  commissionsOf(sale: Json): Promise<Json[]>;
  /** The events of the program since the last call, in the order in which endpoints are told of them. */
  events(): Promise<{ type: string; data: Json; partner_id: string | null; postback: Json | null }[]>;
  /** As if a payout had settled: payouts pay by the same columns. */
  pay(commission: Json): Promise<void>;
  /** Puts a commission in a payout that has not settled, or takes it out again. */
  lock(commission: Json, payout_id?: string | null): Promise<void>;
}

let made = 0;
export const fresh = (of: string): string => `${of}-${++made}`;

export async function openShop(rail: Rail, settings: Json = {}): Promise<Shop> {
  const merchant = await rail.organization();
  const program = await merchant.post('/v1/programs', {
    name: 'Acme',
    website_url: 'https://acme.example.com',
    currency: 'USD',
    ...settings,
  });
  const program_id = program.id;
  let position = 0;
  const shop: Shop = {
    merchant,
    program,
    rule: (fields) =>
      merchant.post('/v1/rules', { program_id, name: 'Standard', rate_type: 'percent', rate_value: 2000, ...fields }),
    partner: (fields) =>
      merchant.post('/v1/partners', { program_id, email: `${fresh('partner')}@partner.example.com`, ...fields }),
    link: (partner, fields) =>
      merchant.post('/v1/links', {
        program_id,
        partner_id: partner.id,
        destination_url: 'https://acme.example.com/',
        value: fresh('link'),
        ...fields,
      }),
    click: (partner, fields) =>
      merchant.post('/v1/clicks', {
        program_id,
        value: partner.handle,
        landing_url: 'https://acme.example.com/',
        visitor_token: fresh('visitor'),
        ...fields,
      }),
    async referred(partner, fields) {
      return shop.customer({ click_id: (await shop.click(partner)).id, ...fields });
    },
    customer: (fields) =>
      merchant.post('/v1/customers', { program_id, email: `${fresh('customer')}@customer.example.com`, ...fields }),
    coupon: (fields) =>
      merchant.post('/v1/coupons', { program_id, code: fresh('code'), external_id: fresh('promo'), ...fields }),
    sale: (fields) =>
      merchant.post('/v1/sales', {
        program_id,
        amount_minor: 10_000,
        currency: program.currency,
        external_charge_id: fresh('charge'),
        ...fields,
      }),
    refund: (sale, fields = {}) => merchant.post(`/v1/sales/${sale.id}/refund`, fields),
    async list(plural, query = '') {
      return (await merchant.get(`/v1/${plural}?program_id=${program_id}&limit=100&${query}`)).data;
    },
    async commissionsOf({ id }) {
      const all = await shop.list('commissions', `sale_id=${id}`);
      return all.filter(({ status }) => !['voided', 'rejected'].includes(status)).reverse();
    },
    async events() {
      const rows = await rail.query<Json>(sql`
        select position, type, partner_id, body, postback_body from webhooks.event
        where program_id = ${program_id} and position > ${position} order by position`);
      position = Math.max(position, ...rows.map((row) => row.position));
      return rows.map(({ type, partner_id, body, postback_body }) => ({
        type,
        partner_id,
        data: JSON.parse(body).data,
        postback: postback_body === null ? null : JSON.parse(postback_body).data,
      }));
    },
    async pay({ id }) {
      await rail.query(
        sql`update program.commission set status = 'paid', payout_id = coalesce(payout_id, ${`pyt_${id}`}), paid_at = now() where id = ${id}`,
      );
    },
    async lock({ id }, payout_id = `pyt_${id}`) {
      await rail.query(sql`update program.commission set status = 'due', payout_id = ${payout_id} where id = ${id}`);
    },
  };
  return shop;
}

/** `type` alone, for the order of events. */
export const types = (events: { type: string }[]): string[] => events.map(({ type }) => type);
