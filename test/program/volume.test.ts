/** Checks that creating an object touches as many blocks behind 5,000 others as at first. */
import t from 'tap';
import { type Tx, transaction } from '../../src/core/postgres/transaction.ts';
import { foldTallies } from '../../src/program/programs/tally.ts';
import { assessClick } from '../../src/program/risk/click.ts';
import { assessCustomer, assessSale } from '../../src/program/risk/risk.ts';
import { type Json, sql, startRail } from '../harness.ts';
import { fresh, openShop, type Shop } from '../shop.ts';
import { many, openVolume } from '../volume.ts';

// The rows are written past the requests, so that statements and totals do not know them.
const rail = await startRail({ worker: false, audit: false });
const tables = ['click', 'referral', 'customer', 'sale', 'refund', 'commission', 'partner', 'link', 'sale_claim'];
const volume = await openVolume(
  rail,
  tables.map((table) => `program.${table}`),
);

/** A program with one of each object, and a month of sales that decides a rate. */
async function openStore() {
  const shop = await openShop(rail);
  await shop.rule({ max_payments: 3 });
  await shop.rule({ priority: 1 });
  const tiered = await openShop(rail, {}, shop.merchant);
  await tiered.rule({ tier_metric: 'revenue_minor', tiers: [{ from: 1, rate_value: 1_000 }] });
  const seller = await tiered.partner();
  const partner = await shop.partner();
  const link = await shop.link(partner);
  const customer = await shop.referred(partner);
  const sale = await shop.sale({ customer_id: customer.id });
  const [commission] = await shop.commissionsOf(sale);
  const visitor_token = fresh('visitor');
  const user_agent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
  const click = await shop.click(partner, { visitor_token, ip: '203.0.113.7', user_agent });
  await shop.refund(sale, { amount_minor: 1, external_refund_id: fresh('refund') });
  const [refund] = await shop.list('refunds');
  const charge = await chargeOfNobody(shop);
  return { shop, tiered, seller, partner, link, customer, sale, commission, visitor_token, click, refund, charge };
}

/** A charge in the inbox of a billing processor that nobody is credited with. */
async function chargeOfNobody({ program_id, merchant: { organization_id } }: Shop): Promise<Json> {
  const [charge] = await rail.query<Json>(sql`
    insert into program.processor_event (
      organization_id, id, program_id, processor, external_event_id, type, livemode, occurred_at, rank, queue, run_id, status, reason, body, worked_at,
      created_at, updated_at
    )
    values (
      ${organization_id}, core.new_id('pev'), ${program_id}, 'stripe', 'evt_first', 'invoice.paid', true, now(), 0, 'cus_nobody', 'run_nothing', 'ignored',
      'unattributed', '{"customer_email":"nobody@customer.example.com"}', now(), now(), now()
    )
    returning id`);
  return charge as Json;
}

/** Puts so many of each object under the same parents. */
async function fill(
  { shop, tiered, seller, ...rows }: Awaited<ReturnType<typeof openStore>>,
  count = many,
): Promise<void> {
  const copies = { organization_id: shop.merchant.organization_id, count };
  const of_many = {
    sale_id: `(select x.id from program.sale x where x.organization_id = s.organization_id and x.program_id = s.program_id and x.external_charge_id = 'many ' || n and x.deleted_at is null)`,
  };
  const sold = await tiered.sale({ external_customer_id: fresh('cus'), partner_id: seller.id });
  for (const sale of [rows.sale, sold])
    await volume.copy(copies, 'program.sale', sale, { external_charge_id: `'many ' || n`, is_first_sale: 'false' });
  await rail.query(sql`analyze program.sale`);
  await volume.copy(copies, 'program.commission', rows.commission as Json, of_many);
  await volume.copy(copies, 'program.refund', rows.refund as Json, {
    external_refund_id: `'many ' || n`,
    amount_minor: '1',
  });
  await volume.copy(copies, 'program.processor_event', rows.charge, {
    ...{
      external_event_id: `'many ' || n`,
      occurred_at: `s.occurred_at - interval '2 days' - n * interval '1 minute'`,
    },
  });
  // And one of each of those sales: where all are of one, Postgres takes a sale for one with thousands.
  const spread = { ...of_many, external_refund_id: `'spread ' || n`, amount_minor: '1' };
  await volume.copy(copies, 'program.refund', rows.refund as Json, spread);
  await volume.copy(copies, 'program.click', rows.click, {});
  await volume.copy(copies, 'program.customer', rows.customer, { email: `'many' || n || '@customer.example.com'` });
  await volume.copy(copies, 'program.partner', rows.partner, {
    ...{ email: `'many' || n || '@partner.example.com'`, handle: `'many' || n` },
  });
  await volume.copy(copies, 'program.link', rows.link, { value: `'many' || n`, short_slug: `s.short_slug || n` });
  // As workers do each minute.
  await transaction(rail.store, { organization_id: null, request_id: null }, (tx) => foldTallies(tx, 1_000_000));
  await rail.query(sql`analyze`);
}

// Another merchant's objects make the indexes as deep as they are behind the others.
await fill(await openStore(), 1_000);
const store = await openStore();
const { shop, tiered, seller, partner, customer, sale, visitor_token, click } = store;
const { organization_id } = shop.merchant;
const other = await shop.partner();
const another = await shop.sale({ customer_id: customer.id });
const visitor = await shop.customer({ click_id: click.id });
await rail.query(sql`analyze`);

const creates: Record<string, () => Promise<unknown>> = {
  'a sale of a partner whose tier depends on the month': () =>
    tiered.sale({ external_customer_id: fresh('cus'), partner_id: seller.id }),
  'a sale of a customer': () => shop.sale({ customer_id: customer.id }),
  'a sale of another customer of the partner': async () =>
    shop.sale({ external_customer_id: fresh('cus'), partner_id: partner.id }),
  'a correction of a sale': () =>
    shop.merchant.patch(`/v1/sales/${another.id}`, { amount_minor: 20_000 + ++corrected }),
  'a sale that is deleted': async () =>
    shop.merchant.delete(`/v1/sales/${(await shop.sale({ customer_id: customer.id })).id}`),
  'a sale that goes to another partner': async () =>
    shop.merchant.patch(`/v1/sales/${(await shop.sale({ customer_id: customer.id })).id}`, { partner_id: other.id }),
  'a dispute of a sale': async () =>
    shop.merchant.post('/v1/disputes', {
      ...{ sale_id: (await shop.sale({ customer_id: customer.id })).id, external_dispute_id: fresh('dispute') },
    }),
  'a commission that is approved': async () => {
    const [earned] = (await shop.sale({ customer_id: customer.id })).commissions;
    return shop.merchant.post(`/v1/commissions/${earned?.id}/approve`);
  },
  'a bonus': () =>
    shop.merchant.post('/v1/commissions', {
      ...{ program_id: shop.program_id, partner_id: partner.id, amount_minor: 100, currency: 'USD' },
    }),
  'a customer who moves': () => shop.merchant.patch(`/v1/customers/${customer.id}`, { name: `Name ${++corrected}` }),
  'a partner who changes': () =>
    shop.merchant.patch(`/v1/partners/${partner.id}`, { first_name: `Name ${++corrected}` }),
  'a refund of a sale': () => shop.refund(sale, { amount_minor: 1, external_refund_id: fresh('refund') }),
  'a click of a visitor': () => shop.click(partner, { visitor_token, ip: '203.0.113.7' }),
  'a customer of a partner': () => shop.customer({ partner_id: partner.id }),
  'a partner of a program': () => shop.partner(),
  'a link of a partner': () => shop.link(partner),
  'a claim of a charge that is not found': () =>
    shop.merchant.post('/v1/sale_claims', {
      ...{ program_id: shop.program_id, partner_id: partner.id, email: 'somebody@customer.example.com' },
      occurred_at: new Date().toISOString(),
    }),
};
let corrected = 0;
const checks: Record<string, (tx: Tx) => Promise<void>> = {
  'a click': (tx) => assessClick(tx, click.id),
  'a customer': (tx) => assessCustomer(tx, visitor.id),
  'a sale': (tx) => assessSale(tx, sale.id),
};
const at_first: Record<string, number> = {};
for (const [name, check] of Object.entries(checks)) at_first[name] = await volume.checked(organization_id, check);

await volume.compare(creates, () => fill(store));

/** Rows that a check looks at: mostly one a block. */
const newest = 500;
for (const [name, check] of Object.entries(checks))
  t.test(
    `the check of ${name} for fraud looks at some of the newest behind ${many} others, and at no more`,
    async (t) => {
      const now = await volume.checked(organization_id, check);
      t.comment(`${name}: ${at_first[name]}, ${now}`);
      t.ok((at_first[name] as number) > 10, 'something is measured');
      t.ok(now <= (at_first[name] as number) + newest, `${at_first[name]} at first, ${now} then`);
    },
  );
