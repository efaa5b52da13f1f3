import t from 'tap';
import { type Json, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';

const rail = await startRail();

const explained = (shop: Shop, { id }: Json): Promise<Json> => shop.merchant.get(`/v1/sales/${id}/explanation`);

t.test('says who was considered, and why they are credited or not', async (t) => {
  const shop = await openShop(rail, { block_self_referrals: true });
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const coupon = await shop.coupon({ partner_id: bob.id });
  const coupon_external_id = coupon.external_id;
  const { id: click_id } = await shop.click(ada);
  const { id: other_click } = await shop.click(bob);
  const names = new Map([
    [ada.id, 'ada'],
    [bob.id, 'bob'],
  ]);
  const reasons = ({ candidates }: Json): Json[] =>
    candidates.map(({ by, partner_id, reason }: Json) => [by, names.get(partner_id) ?? partner_id, reason]);
  const { id: customer_id } = await shop.customer({ partner_id: ada.id });
  const cases: [fields: Json, by: string | null, expected: unknown[]][] = [
    [
      { customer_id, coupon_external_id, partner_id: ada.id },
      'partner_id',
      [
        ['partner_id', 'ada', 'credited'],
        ['coupon', 'bob', 'partner_id_sent'],
        ['customer', 'ada', 'partner_id_sent'],
      ],
    ],
    [
      { customer_id, coupon_external_id: 'unknown', click_id: other_click, partner_id: bob.id },
      'partner_id',
      [
        ['partner_id', 'bob', 'credited'],
        ['coupon', null, 'coupon_without_partner'],
        ['customer', 'ada', 'partner_id_sent'],
        ['click', 'bob', 'partner_id_sent'],
      ],
    ],
    [
      { customer_id, coupon_external_id, click_id: other_click },
      'customer',
      [
        ['coupon', 'bob', 'not_first_sale'],
        ['customer', 'ada', 'credited'],
        ['click', 'bob', 'customer_known'],
      ],
    ],
    [
      { customer_id, coupon_external_id },
      'customer',
      [
        ['coupon', 'bob', 'not_first_sale'],
        ['customer', 'ada', 'credited'],
      ],
    ],
    [
      { customer_id, click_id },
      'customer',
      [
        ['customer', 'ada', 'credited'],
        ['click', 'ada', 'customer_known'],
      ],
    ],
    [
      { click_id, coupon_external_id },
      'coupon',
      [
        ['coupon', 'bob', 'credited'],
        ['click', 'ada', 'coupon_used'],
      ],
    ],
    [{ coupon_external_id: 'unknown' }, null, [['coupon', null, 'coupon_without_partner']]],
    [{ partner_id: ada.id, customer: { email: ada.email } }, null, [['partner_id', 'ada', 'own_purchase']]],
    [{}, null, []],
  ];
  for (const [fields, by, expected] of cases) {
    const explanation = await explained(shop, await shop.sale(fields));
    t.equal(explanation.credited_by, by, JSON.stringify(fields));
    t.strictSame(reasons(explanation), expected, JSON.stringify(fields));
  }
  const referred = await explained(shop, await shop.sale({ click_id: other_click }));
  t.match(referred.candidates, [{ by: 'click', partner_id: bob.id, credited: true, referral_id: /^ref_/ }]);
  const corrected = await shop.sale({ customer_id });
  await shop.merchant.patch(`/v1/sales/${corrected.id}`, { partner_id: bob.id });
  t.match(await explained(shop, corrected), {
    ...{ credited_by: 'correction', partner_id: bob.id },
    candidates: [{ by: 'customer', partner_id: ada.id, credited: false, reason: 'corrected' }],
  });
});

t.test('says that the partner of the customer was deleted', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  const { id: customer_id } = await shop.customer({ partner_id: partner.id });
  await shop.merchant.delete(`/v1/partners/${partner.id}`);
  const { candidates } = await explained(shop, await shop.sale({ customer_id }));
  t.match(candidates, [{ by: 'customer', partner_id: partner.id, credited: false, reason: 'partner_deleted' }]);
});

t.test('says of each rule why it pays or not, what the rate applies to, and when the commission matures', async (t) => {
  const shop = await openShop(rail, { commission_on_net_revenue: true });
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const standard = await shop.rule();
  const bonus = await shop.rule({ name: 'Bonus', applies_to: 'first', priority: 10 });
  const limited = await shop.rule({
    name: 'Once',
    applies_to: 'renewals',
    max_payments: 1,
    rate_value: 5_000,
    priority: 5,
  });
  await shop.rule({ name: 'Of another partner', partner_ids: [bob.id] });
  const large = await shop.rule({ name: 'Large', min_sale_minor: 1_000_000 });
  const { id: customer_id } = await shop.customer({ partner_id: ada.id });
  const first = await shop.sale({ customer_id });
  const outcomes = async (sale: Json) =>
    Object.fromEntries(
      (await explained(shop, sale)).rules.map((rule: Json) => [rule.rule_id, rule.condition ?? rule.outcome]),
    );
  t.strictSame(await outcomes(first), {
    ...{ [bonus.id]: 'chosen', [standard.id]: 'outranked' },
    ...{ [limited.id]: 'applies_to', [large.id]: 'min_sale_minor' },
  });
  await shop.sale({ customer_id });
  const third = await shop.sale({ customer_id, tax_minor: 2_000 });
  t.match(await outcomes(third), { [bonus.id]: 'applies_to', [limited.id]: 'max_payments', [standard.id]: 'chosen' });
  await shop.merchant.post('/v1/disputes', { sale_id: third.id });
  await shop.refund(third, { amount_minor: 5_000 });
  const explanation = await explained(shop, third);
  t.match(explanation, {
    ...{ is_first_sale: false, first_sale_at: first.occurred_at, month_before: null },
    base: {
      amount_minor: 10_000,
      tax_minor: 2_000,
      net_amount_minor: 8_000,
      refunded_minor: 5_000,
      of: 'net_amount',
      base_minor: 4_000,
    },
    commissions: [
      { amount_minor: 800, status: 'on_hold', hold_reason: 'dispute', mature_at: third.commissions[0].mature_at },
    ],
  });
});

t.test('a key that may not read commissions or rules may not read an explanation', async (t) => {
  const shop = await openShop(rail);
  const sale = await shop.sale();
  const narrow = await rail.key(shop.merchant.organization_id, { scopes: ['sales:read'] });
  const { status, body } = await narrow.request('GET', `/v1/sales/${sale.id}/explanation`);
  t.equal(status, 403);
  t.equal(body.error.param, 'commissions:read');
});
