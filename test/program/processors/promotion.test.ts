import t from 'tap';
import { type Json, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { ChargebeeSite } from './chargebee_site.ts';
import { PaddleAccount } from './paddle_account.ts';
import { StripeAccount } from './stripe_account.ts';
import * as objects from './stripe_objects.ts';
import { openStripeShop } from './stripe_shop.ts';

const stripe = await startServer(t, new StripeAccount());
const paddle = await startServer(t, new PaddleAccount());
const chargebee = await startServer(t, new ChargebeeSite());
const rail = await startRail({ provider_urls: { stripe: stripe.url, paddle: paddle.url, chargebee: chargebee.url } });

const create = ({ merchant, program_id }: Shop, fields: Json) =>
  merchant.request('POST', '/v1/coupons', { program_id, ...fields });
const codes = (code: string) => stripe.all('promotion_code').filter((one) => one.code === code);

t.test('creates the coupon at Stripe, and matches sales by its promotion code', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const terms = { percent_off_bps: 1250, duration: 'repeating', duration_months: 3, max_redemptions: 50 };
  const expires_at = '2030-01-02T03:04:05Z';
  const fields = { code: 'ADA12', partner_id: shop.partner_of.id, create_at_processor: { ...terms, expires_at } };
  const { status, body: coupon } = await create(shop, fields);
  t.equal(status, 201, JSON.stringify(coupon));
  const [promotion] = codes('ADA12') as [Json];
  t.match(coupon, { code: 'ADA12', external_id: promotion.id, partner_id: shop.partner_of.id, active: true });
  t.match(promotion, { max_redemptions: '50', expires_at: String(Date.parse(expires_at) / 1000) });
  t.match(
    stripe.all('coupon').find(({ id }) => id === promotion.promotion.coupon),
    { percent_off: '12.5', duration: 'repeating', duration_in_months: '3', 'metadata[rail_program]': shop.program_id },
  );
  stripe.put(objects.discount('di_of_made', promotion.id));
  const invoice = objects.invoice('in_by_coupon', 'cus_by_coupon', { discounts: ['di_of_made'] });
  await shop.tell(stripe.emit('invoice.paid', invoice));
  t.match(await shop.list('sales'), [{ coupon_id: coupon.id, partner_id: shop.partner_of.id }]);
});

t.test('creates amounts in the units of the processor', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  for (const [code, currency, amount_off_minor, amount_off] of [
    ['USD5', 'USD', 500, '500'],
    ['ISK500', 'ISK', 500, '50000'],
  ] as const) {
    const { status } = await create(shop, { code, create_at_processor: { amount_off_minor, currency } });
    t.equal(status, 201);
    const id = codes(code)[0]?.promotion.coupon;
    t.match(
      stripe.all('coupon').find((one) => one.id === id),
      { amount_off, currency: currency.toLowerCase(), duration: 'once' },
    );
  }
});

t.test('a request that is repeated creates nothing twice, whatever was lost', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const terms = { percent_off_bps: 2000 };
  for (const [code, path] of [
    ['LOST1', '/v1/coupons'],
    ['LOST2', '/v1/promotion_codes'],
  ] as const) {
    stripe.fail({ method: 'POST', path, fault: { kind: 'drop', when: 'after' } });
    const lost = await create(shop, { code, create_at_processor: terms });
    t.match(lost, { status: 503, body: { error: { message: /nothing is created twice/ } } });
    t.same(await shop.list('coupons'), []);
    const again = await create(shop, { code, create_at_processor: terms });
    t.match(again, { status: 201, body: { external_id: codes(code)[0]?.id } });
    t.equal(codes(code).length, 1);
    await shop.merchant.delete(`/v1/coupons/${again.body.id}`);
  }
  // The transaction fails after the coupon was created at Stripe.
  await rail.query(
    sql`create function program.refuse_coupon() returns trigger language plpgsql as $$ begin raise 'crash'; end $$`,
  );
  await rail.query(
    sql`create trigger refuse before insert on program.coupon for each row when (new.code = 'LOST3') execute function program.refuse_coupon()`,
  );
  t.equal((await create(shop, { code: 'LOST3', create_at_processor: terms })).status, 500);
  await rail.query(sql`drop trigger refuse on program.coupon`);
  t.match(await create(shop, { code: 'LOST3', create_at_processor: terms }), {
    status: 201,
    body: { external_id: codes('LOST3')[0]?.id },
  });
  t.equal(codes('LOST3').length, 1);
  const taken = await create(shop, { code: 'lost3', create_at_processor: terms });
  t.match(taken, { status: 409, body: { error: { param: 'code' } } });
});

t.test('names the field that is refused, by us or by the processor, and creates nothing', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  stripe.put(objects.promotionCode('promo_theirs', { code: 'THEIRS' }));
  const made = () => stripe.all('promotion_code').length + stripe.all('coupon').length;
  const before = made();
  for (const [fields, param, message] of [
    [{ create_at_processor: {} }, 'create_at_processor.percent_off_bps', /either|required/],
    [
      { create_at_processor: { percent_off_bps: 100, amount_off_minor: 100, currency: 'USD' } },
      'create_at_processor.percent_off_bps',
      /either|required/,
    ],
    [{ create_at_processor: { amount_off_minor: 100 } }, 'create_at_processor.currency', /required/],
    [
      { create_at_processor: { percent_off_bps: 100, duration: 'repeating' } },
      'create_at_processor.duration_months',
      /required/,
    ],
    [
      { create_at_processor: { percent_off_bps: 100 }, external_id: 'promo_1' },
      'external_id',
      /exists at the processor/,
    ],
    [
      { create_at_processor: { percent_off_bps: 100, processor: 'paddle' } },
      'create_at_processor.processor',
      /not connected/,
    ],
    [{ create_at_processor: { percent_off_bps: 100 }, partner_id: 'part_unknown' }, 'partner_id', /./],
    [
      { create_at_processor: { percent_off_bps: 100 }, code: 'THEIRS' },
      'code',
      /Stripe has a coupon with the code THEIRS/,
    ],
    [{ create_at_processor: { percent_off_bps: 100 }, code: 'A_B' }, 'code', /Stripe refuses the coupon: .*letters/],
  ] as const) {
    const { status, body } = await create(shop, { code: 'REFUSED', ...fields });
    t.ok(status >= 400 && status < 500, JSON.stringify(body));
    t.match(body.error, { param, message }, param);
  }
  stripe.forbidden.add('POST /v1/coupons');
  const forbidden = await create(shop, { code: 'REFUSED', create_at_processor: { percent_off_bps: 100 } });
  stripe.forbidden.clear();
  t.match(forbidden, {
    status: 400,
    body: { error: { param: 'create_at_processor', message: /may not write Coupons/ } },
  });
  t.same(await shop.list('coupons'), []);
  t.ok(made() <= before + 1, 'a coupon without a code at most');
  const bare = await openShop(rail);
  const unconnected = await create(bare, { code: 'NOBODY', create_at_processor: { percent_off_bps: 100 } });
  t.match(unconnected, { status: 400, body: { error: { param: 'create_at_processor.processor' } } });
});

for (const [processor, server, idOf, refused, param] of [
  ['paddle', paddle, (code: string) => paddle.discount(code)?.id, { max_redemptions: 13 }, 'max_redemptions'],
  [
    'chargebee',
    chargebee,
    (code: string) => chargebee.coupons.get(code)?.id,
    { percent_off_bps: 1 },
    'percent_off_bps',
  ],
] as const)
  t.test(`creates coupons at ${processor}, each once`, async (t) => {
    const shop = await openShop(rail);
    const connection = { mode: 'test', credentials: server.credentials };
    await shop.merchant.request('PUT', `/v1/programs/${shop.program_id}/processors/${processor}`, connection);
    const terms = { percent_off_bps: 2500, duration: 'forever', max_redemptions: 7 };
    const path = processor === 'paddle' ? '/discounts' : '/api/v2/coupons';
    server.fail({ method: 'POST', path, fault: { kind: 'drop', when: 'after' } });
    t.equal((await create(shop, { code: 'GRACE25', create_at_processor: terms })).status, 503);
    const created = await create(shop, { code: 'GRACE25', create_at_processor: terms });
    t.match(created, { status: 201, body: { external_id: idOf('GRACE25') } }, JSON.stringify(created.body));
    const other = await openShop(rail);
    await other.merchant.request('PUT', `/v1/programs/${other.program_id}/processors/${processor}`, connection);
    t.match(await create(other, { code: 'GRACE25', create_at_processor: terms }), {
      status: 400,
      body: { error: { param: 'code' } },
    });
    t.match(await create(shop, { code: 'REFUSED', create_at_processor: { percent_off_bps: 2500, ...refused } }), {
      ...{ status: 400, body: { error: { param: `create_at_processor.${param}` } } },
    });
  });
