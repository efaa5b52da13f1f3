import { type Answer, type Caller, eventually, type Json, type Rail, sql } from './harness.ts';

/** A program with its merchant. Every call makes something new, unless told otherwise. */
export interface Shop {
  merchant: Caller;
  program: Json;
  program_id: string;
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
  /** A webhook endpoint at a URL. */
  endpoint(url: string, fields?: Json): Promise<Json>;
  list(plural: string, query?: string): Promise<Json[]>;
  /** The commissions of a sale that count, oldest first. */
  commissionsOf(sale: Json): Promise<Json[]>;
  /** The events of the program since the last call, in the order in which endpoints are told of them. */
  events(): Promise<{ type: string; data: Json; partner_id: string | null; postback: Json | null }[]>;
  /** As if a payout of this commission alone had settled. One of 0 or less has a bonus beside it, since no payout is of 0. */
  pay(commission: Json): Promise<void>;
  /** As if a payout of this commission had been sent and had not settled; or as if it had failed and was deleted. */
  lock(commission: Json, wanted?: boolean): Promise<void>;
}

let made = 0;
export const fresh = (of: string): string => `${of}-${++made}`;

/** @param by an organization that is there already */
export async function openShop(rail: Rail, settings: Json = {}, by?: Caller): Promise<Shop> {
  const merchant = by ?? (await rail.organization());
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
    program_id,
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
    endpoint: (url, fields) => merchant.post('/v1/webhook_endpoints', { program_id, url, ...fields }),
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
      await putInPayout(rail, id, 'paid');
    },
    async lock({ id }, wanted = true) {
      if (wanted) await putInPayout(rail, id, 'processing');
      else await takeOutOfPayout(rail, id);
    },
  };
  return shop;
}

async function putInPayout(rail: Rail, commission_id: string, status: 'processing' | 'paid'): Promise<void> {
  const paid_at = sql`case when ${status} = 'paid' then now() end`;
  const [settled] = await rail.query(sql`
    with held as (
      update program.payout set status = ${status}, paid_at = ${paid_at}
      where id = (select payout_id from program.commission where id = ${commission_id})
      returning id
    ),
    attempt as (
      update program.payout_attempt set status = 'paid', settled = true, ended_at = now() where payout_id in (select id from held)
    )
    update program.commission set status = 'paid', paid_at = now() where payout_id in (select id from held) returning id`);
  if (settled) return;
  const id = fresh('x');
  await rail.query(sql`
    with earned as (select * from program.commission where id = ${commission_id}),
    bonus as (
      insert into program.commission (
        organization_id, id, program_id, partner_id, kind, amount_minor, currency, status, mature_at, paid_at, payout_id, created_at, updated_at
      )
      select organization_id, ${`com_${id}`}, program_id, partner_id, 'bonus', 1 - amount_minor, currency, case ${status} when 'paid' then 'paid' else 'due' end,
        now(), ${paid_at}, ${`pyt_${id}`}, now(), now()
      from earned where amount_minor <= 0
      returning amount_minor
    ),
    batch as (
      insert into program.payout_batch (organization_id, id, program_id, stage, cutoff, due_at, approval_required, created_at, updated_at)
      select organization_id, ${`batch_${id}`}, program_id, 'ready', now(), now(), false, now(), now() from earned
    ),
    payout as (
      insert into program.payout (
        organization_id, id, program_id, batch_id, partner_id, amount_minor, currency, status, method, period_start, period_end, due_at, due_emitted_at,
        submitted_at, paid_at, attempt, commission_count, created_at, updated_at
      )
      select organization_id, ${`pyt_${id}`}, program_id, ${`batch_${id}`}, partner_id, amount_minor + coalesce((select b.amount_minor from bonus b), 0),
        currency, ${status}, 'bank_transfer', created_at, now(), now(), now(), now(), ${paid_at}, 1,
        1 + (select count(*) from bonus), now(), now()
      from earned
      returning *
    ),
    attempt as (
      insert into program.payout_attempt (
        organization_id, payout_id, number, id, program_id, rail, mode, amount_minor, currency, request, status, settled, began_at, ended_at
      )
      select organization_id, id, 1, id || '-1', program_id, method, 'live', amount_minor, currency, '', case status when 'paid' then 'paid' else 'processing' end, status = 'paid', now(), paid_at
      from payout
    )
    update program.commission set status = case ${status} when 'paid' then 'paid' else 'due' end, payout_id = ${`pyt_${id}`}, paid_at = ${paid_at},
      voided_at = null, void_reason = null
    where id = ${commission_id} and program.because('edited_by_hand')`);
}

const takeOutOfPayout = (rail: Rail, commission_id: string) =>
  rail.query(sql`
    with held as (
      update program.payout set status = 'failed', failed_at = now(), deleted_at = now()
      where id = (select payout_id from program.commission where id = ${commission_id})
      returning id
    ),
    attempt as (
      update program.payout_attempt set status = 'failed', ended_at = now() where payout_id in (select id from held)
    )
    update program.commission set payout_id = null, deleted_at = case when id like 'com_x-%' then now() end
    where payout_id in (select id from held) and program.because('edited_by_hand')`);

/** A shop with an endpoint that receives `affiliate.created`. */
export interface ListeningShop {
  merchant: Caller;
  program_id: string;
  endpoint: Json;
  /** Makes one event. */
  happen(): Promise<Answer>;
  /** So many deliveries, each attempted at least once, in their order. */
  attempted(count: number): Promise<Json[]>;
}

export async function openListeningShop(rail: Rail, url: string): Promise<ListeningShop> {
  const { merchant, program_id, ...shop } = await openShop(rail);
  const endpoint = await shop.endpoint(url, { event_types: ['affiliate.created'] });
  return {
    merchant,
    program_id,
    endpoint,
    happen: () =>
      merchant.request('POST', '/v1/partners', {
        program_id,
        email: `${fresh('partner')}@partner.example.com`,
        first_name: 'Zoë',
      }),
    async attempted(count) {
      let log: Json[] = [];
      const read = async () => {
        log = (await merchant.get(`/v1/webhook_endpoints/${endpoint.id}/deliveries?limit=100`)).data.reverse();
        return log.length >= count && log.every(({ attempt }) => attempt > 0);
      };
      await eventually(read, `${count} attempts`);
      return log;
    },
  };
}

/** Returns the outcome of the first attempt at one event. */
export async function deliverTo(rail: Rail, url: string): Promise<Json> {
  const shop = await openListeningShop(rail, url);
  await shop.happen();
  const [delivery] = (await shop.attempted(1)) as [Json];
  return { status: delivery.status, ...delivery.attempts[0] };
}

/** `type` alone, for the order of events. */
export const types = (events: { type: string }[]): string[] => events.map(({ type }) => type);
