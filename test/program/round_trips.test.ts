/** Checks how often the transaction of a request waits for Postgres. */
import type pg from 'pg';
import t from 'tap';
import { startRail } from '../harness.ts';
import { fresh, openShop } from '../shop.ts';

const rail = await startRail({ worker: false });
const shop = await openShop(rail);
await shop.rule({});
const tiered = await openShop(rail, {}, shop.merchant);
await tiered.rule({ tier_metric: 'revenue_minor', tiers: [{ from: 1, rate_value: 1_000 }] });
const seller = await tiered.partner();
const partner = await shop.partner();
const { external_id: coupon_external_id } = await shop.merchant.post('/v1/coupons', {
  ...{ program_id: shop.program_id, partner_id: partner.id, code: fresh('CODE'), external_id: fresh('promo') },
});
const customer = await shop.customer({ partner_id: partner.id });
await shop.sale({ customer_id: customer.id });
const [first, second, third, fourth] = await Promise.all(Array.from({ length: 4 }, () => shop.click(partner)));
const occurred_at = new Date().toISOString();
const ofNew = (more: object) => shop.sale({ external_customer_id: fresh('cus'), ...more });

const requests: Record<string, [number, () => Promise<unknown>]> = {
  'a sale of a customer': [4, () => shop.sale({ customer_id: customer.id })],
  'a sale that nobody is credited with': [3, () => shop.sale({})],
  'a sale that makes its customer': [4, () => ofNew({ partner_id: partner.id })],
  'a sale of a time that makes its customer': [4, () => ofNew({ partner_id: partner.id, occurred_at })],
  'a sale by a coupon that makes its customer': [4, () => ofNew({ coupon_external_id })],
  'a sale by a click that makes its customer': [5, () => ofNew({ click_id: first?.id })],
  'a sale by a click and a coupon that makes its customer': [
    5,
    () => ofNew({ click_id: second?.id, coupon_external_id }),
  ],
  'a sale whose rate the month decides': [
    5,
    () => tiered.sale({ external_customer_id: fresh('cus'), partner_id: seller.id }),
  ],
  'a sale by a click alone': [5, () => shop.sale({ click_id: third?.id })],
  'a further sale by the click': [5, () => shop.sale({ click_id: third?.id })],
  'a sign-up': [4, () => shop.customer({ partner_id: partner.id, external_customer_id: fresh('cus') })],
  'a sign-up by a click': [5, () => shop.customer({ click_id: fourth?.id })],
  'a click': [3, () => shop.click(partner)],
  'an object that is read': [2, () => shop.merchant.get(`/v1/customers/${customer.id}`)],
};

/** The most statements of one transaction each of which was sent once the one before was answered. */
let waited = 0;
const watched = new WeakSet<pg.PoolClient>();
rail.store.database.on('acquire', (client) => {
  if (watched.has(client)) return;
  watched.add(client);
  let answered = 0;
  const query = client.query.bind(client) as (...given: unknown[]) => unknown;
  client.query = ((...given: unknown[]) => {
    const hear = given.at(-1);
    if (typeof hear !== 'function') return query(...given);
    const { text } = given[0] as { text: string };
    const nth = text.startsWith('begin') ? 1 : answered + 1;
    if (nth === 1) answered = 0;
    return query(...given.slice(0, -1), (...results: unknown[]) => {
      answered = text.startsWith('commit') ? 0 : Math.max(answered, nth);
      waited = Math.max(waited, nth);
      hear(...results);
    });
  }) as typeof client.query;
});

for (const [name, [most, request]] of Object.entries(requests))
  t.test(`${name}: ${most} round trips at most`, async (t) => {
    waited = 0;
    await request();
    t.ok(waited > 0 && waited <= most, `${waited}`);
  });
