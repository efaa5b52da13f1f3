import t from 'tap';
import { eventually, type Json, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';

const rail = await startRail();

/** Returns the commission of a new sale of 10,000, 0 for none. */
const earns = async (shop: Shop, fields: Json): Promise<number> => {
  const { commissions } = await shop.sale(fields);
  return commissions[0]?.amount_minor ?? 0;
};

t.test('first sales and renewals are paid by rules of their own', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ applies_to: 'first', rate_value: 5_000 });
  await shop.rule({ applies_to: 'renewals', rate_value: 1_000 });
  const { id: partner_id } = await shop.partner();
  const { id: customer_id } = await shop.customer({ partner_id });
  t.same([await earns(shop, { customer_id }), await earns(shop, { customer_id })], [5_000, 1_000]);
  t.equal(await earns(shop, { partner_id }), 5_000, 'a sale without a customer is a first one');
});

t.test('a rule pays for its months only, from the customer’s first sale on', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ duration_months: 2 });
  const { id: customer_id } = await shop.customer({ partner_id: (await shop.partner()).id });
  for (const [occurred_at, expected] of [
    ['2026-01-15T10:00:00Z', 2_000],
    ['2026-03-15T09:59:59Z', 2_000],
    ['2026-03-15T10:00:00Z', 0],
  ] as const) {
    t.equal(await earns(shop, { customer_id, occurred_at }), expected, occurred_at);
  }
});

t.test('a rule pays so many payments of a customer, and what was refunded does not count', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ max_payments: 2 });
  const { id: partner_id } = await shop.partner();
  const { id: customer_id } = await shop.customer({ partner_id });
  const first = await shop.sale({ customer_id });
  t.same([await earns(shop, { customer_id }), await earns(shop, { customer_id })], [2_000, 0]);
  const other = await shop.customer({ partner_id });
  t.equal(await earns(shop, { customer_id: other.id }), 2_000, 'each customer has their own');
  await shop.refund(first);
  t.equal(await earns(shop, { customer_id }), 2_000);
});

t.test('a payment that was paid out and came back does not count either, whoever earns now', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ max_payments: 1 });
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const paidSale = async () => {
    const { id: customer_id } = await shop.customer({ partner_id: ada.id });
    const sale = await shop.sale({ customer_id });
    await shop.pay(sale.commissions[0]);
    return { customer_id, sale };
  };
  const given = await paidSale();
  await shop.merchant.patch(`/v1/sales/${given.sale.id}`, { partner_id: bob.id });
  t.match(await shop.list('commissions', `partner_id=${bob.id}`), [{ amount_minor: 2_000, sale_id: given.sale.id }]);
  const refunded = await paidSale();
  await shop.refund(refunded.sale);
  t.equal(await earns(shop, { customer_id: refunded.customer_id }), 2_000, 'after a refund');
  const deleted = await paidSale();
  await shop.merchant.delete(`/v1/sales/${deleted.sale.id}`);
  const { external_charge_id } = deleted.sale;
  t.equal(await earns(shop, { customer_id: deleted.customer_id, external_charge_id }), 2_000, 'after a delete');
});

t.test('of sales of one moment those recorded before count for a tier', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ rate_value: 1_000, tiers: [{ from: 2, rate_value: 5_000 }], tier_metric: 'sales_count' });
  const { id: partner_id } = await shop.partner();
  const midnight = { partner_id, occurred_at: '2026-11-01T00:00:00Z' };
  const earned: number[] = [];
  for (let nth = 0; nth < 4; nth++)
    earned.push(await earns(shop, { ...midnight, external_charge_id: `ch_of_midnight_${nth}` }));
  t.same(earned, [1_000, 1_000, 5_000, 5_000]);
});

t.test('of sales at once each counts those before it for its tier', async (t) => {
  const shop = await openShop(rail);
  const tiers = Array.from({ length: 20 }, (_, from) => ({ from: from + 1, rate_value: 1_001 + from }));
  await shop.rule({ rate_value: 1_000, tiers, tier_metric: 'sales_count' });
  const expected = Array.from({ length: 20 }, (_, nth) => 1_000 + nth);
  const { id: partner_id } = await shop.partner();
  const earned = await Promise.all(expected.map(() => earns(shop, { partner_id })));
  t.same(earned.toSorted(), expected);
  // Sales of one time have the order of the ids of their charges: those that come later in it are corrected.
  const { id } = await shop.partner();
  await Promise.all(expected.map(() => shop.sale({ partner_id: id, occurred_at: '2026-03-01T00:00:00Z' })));
  const amounts = async () =>
    (await shop.list('commissions', `partner_id=${id}`)).map(({ amount_minor }) => amount_minor).toSorted();
  await eventually(async () => `${await amounts()}` === `${expected}`, 'each sale to be in its tier');
});

t.test('revenue beyond the integers that JSON carries is the last of them to a tier, and to the stats', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ rate_value: 0, tiers: [{ from: 1, rate_value: 1 }], tier_metric: 'revenue_minor' });
  const { id: partner_id } = await shop.partner();
  const most = Number.MAX_SAFE_INTEGER;
  for (let nth = 0; nth < 2; nth++) await shop.sale({ partner_id, amount_minor: most });
  t.equal(await earns(shop, { partner_id, amount_minor: 10_000 }), 1);
  const { stats } = await shop.merchant.get(`/v1/programs/${shop.program.id}?include[]=stats`);
  t.equal(stats.sales_minor, most);
});

t.test('tiers go by the partner’s calendar month', async (t) => {
  const shop = await openShop(rail);
  const tiers = [
    { from: 1, rate_value: 2_000 },
    { from: 3, rate_value: 3_000 },
  ];
  const rule = await shop.rule({ rate_value: 1_000, tiers, tier_metric: 'sales_count' });
  const { id: partner_id } = await shop.partner();
  const march = (day: number) => ({ partner_id, occurred_at: `2026-03-${day}T12:00:00Z` });
  const earned: number[] = [];
  for (const day of [10, 11, 12, 13]) earned.push(await earns(shop, march(day)));
  t.same(earned, [1_000, 2_000, 2_000, 3_000]);
  t.equal(await earns(shop, { partner_id, occurred_at: '2026-04-01T00:00:00Z' }), 1_000, 'a new month begins anew');
  t.equal(
    await earns(shop, { ...march(14), partner_id: (await shop.partner()).id }),
    1_000,
    'and so does another partner',
  );
  t.equal((await shop.list('commissions')).at(-1)?.rate_value, 1_000, 'the rate of the tier is copied');

  await shop.merchant.patch(`/v1/rules/${rule.id}`, {
    tier_metric: 'revenue_minor',
    tiers: [{ from: 50_000, rate_value: 4_000 }],
  });
  t.equal(await earns(shop, march(15)), 1_000, '40,000 so far');
  t.equal(await earns(shop, { ...march(16), currency: 'EUR' }), 1_000, 'money in another currency is not added');
  t.equal(await earns(shop, march(17)), 4_000);
});

t.test('the rule that names the partner wins, then the link’s, then the group’s, then the rest', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner();
  const link = await shop.link(ada);
  const { id: customer_id } = await shop.customer({ click_id: (await shop.click(ada, { value: link.value })).id });
  const layers: [Json, number][] = [
    [{ rate_value: 100, priority: 0 }, 100],
    [{ rate_value: 150, priority: 9 }, 150],
    [{ rate_value: 200, group_ids: [ada.group_id] }, 200],
    [{ rate_value: 300, link_ids: [link.id], priority: -5 }, 300],
    [{ rate_value: 400, partner_ids: [ada.id], priority: -9 }, 400],
  ];
  for (const [fields, expected] of layers) {
    await shop.rule(fields);
    t.equal(await earns(shop, { customer_id }), expected, JSON.stringify(fields));
  }
  await shop.merchant.patch(`/v1/links/${link.id}`, { rate_override: { rate_type: 'fixed', rate_value: 77 } });
  t.match(await shop.sale({ customer_id }), { commissions: [{ amount_minor: 77, rule_id: null, rate_type: 'fixed' }] });
});

t.test('conditions: product, least amount, cap, and time', async (t) => {
  const shop = await openShop(rail);
  const { id: partner_id } = await shop.partner();
  await shop.rule({ product_ids: ['pro'], max_commission_minor: 1_500 });
  t.equal(await earns(shop, { partner_id, product_id: 'pro' }), 1_500);
  t.equal(await earns(shop, { partner_id, product_id: 'basic' }), 0);
  t.equal(await earns(shop, { partner_id }), 0);
  await shop.rule({ min_sale_minor: 10_001, rate_value: 100 });
  t.equal(await earns(shop, { partner_id }), 0);
  t.equal(await earns(shop, { partner_id, amount_minor: 10_001 }), 100);
  await shop.rule({ starts_at: '2026-01-01T00:00:00Z', ends_at: '2026-02-01T00:00:00Z', rate_value: 700 });
  t.equal(await earns(shop, { partner_id, occurred_at: '2026-01-01T00:00:00Z' }), 700);
  t.equal(await earns(shop, { partner_id, occurred_at: '2026-02-01T00:00:00Z' }), 0);
});

t.test('edits are told with before and after, and hold for later payments alone', async (t) => {
  const shop = await openShop(rail);
  const rule = await shop.rule({ name: 'Standard' });
  const { id: partner_id } = await shop.partner();
  const before = await shop.sale({ partner_id });
  await shop.events();
  const told = async () => (await shop.events()).map(({ type, data }) => ({ type, data }));
  const patch = (body: Json) => shop.merchant.patch(`/v1/rules/${rule.id}`, body);
  const rate = { rate_type: 'percent', rate_value: 2_000, priority: 0, status: 'active' };

  await patch({ rate_value: 3_000, name: 'Better' });
  const data = { rule_id: rule.id, name: 'Better' };
  t.same(await told(), [
    { type: 'rule.updated', data: { ...data, before: rate, after: { ...rate, rate_value: 3_000 } } },
  ]);
  t.match(await shop.commissionsOf(before), [{ amount_minor: 2_000, rate_value: 2_000 }]);
  t.equal(await earns(shop, { partner_id }), 3_000);
  await shop.events();

  await patch({ status: 'inactive' });
  t.same(await told(), [{ type: 'rule.status_changed', data: { ...data, status: 'inactive' } }]);
  t.equal(await earns(shop, { partner_id }), 0);
  await patch({ status: 'active' });
  await shop.events();
  await shop.merchant.delete(`/v1/rules/${rule.id}`);
  t.same(await told(), [{ type: 'rule.deleted', data }]);
  t.match(await shop.sale({ partner_id }), { warnings: [{ code: 'no_commission_from_rules' }] });
});

t.test('a rule that contradicts itself, or names what is not the program’s, is refused', async (t) => {
  const [shop, other] = [await openShop(rail), await openShop(rail)];
  const stranger = await other.partner();
  for (const [fields, param] of [
    [{ tiers: [{ from: 1, rate_value: 1 }] }, 'tier_metric'],
    [
      {
        tier_metric: 'sales_count',
        tiers: [
          { from: 1, rate_value: 1 },
          { from: 1, rate_value: 2 },
        ],
      },
      'tiers',
    ],
    [{ starts_at: '2026-02-01T00:00:00Z', ends_at: '2026-01-01T00:00:00Z' }, 'ends_at'],
    [{ rate_value: 12.5 }, 'rate_value'],
    [{ rate_value: -1 }, 'rate_value'],
  ] as const) {
    const body = { program_id: shop.program.id, name: 'Wrong', rate_type: 'percent', rate_value: 1, ...fields };
    t.match(await shop.merchant.request('POST', '/v1/rules', body), { status: 400, body: { error: { param } } });
  }
  const names = {
    program_id: shop.program.id,
    name: 'Wrong',
    rate_type: 'percent',
    rate_value: 1,
    partner_ids: [stranger.id],
  };
  t.match(await shop.merchant.request('POST', '/v1/rules', names), {
    status: 404,
    body: { error: { param: 'partner_ids' } },
  });
});

t.test('a percent rate is at most 1,000,000 basis points, in rules, tiers and links', async (t) => {
  const shop = await openShop(rail);
  const { merchant, program_id } = shop;
  const refused = (param: string) => ({ status: 400, body: { error: { code: 'invalid_parameter', param } } });
  const create = (fields: Json) =>
    merchant.request('POST', '/v1/rules', {
      program_id,
      name: 'Bounds',
      rate_type: 'percent',
      rate_value: 1,
      ...fields,
    });
  t.match(await create({ rate_value: 1_000_001 }), refused('rate_value'));
  t.match(await create({ tier_metric: 'sales_count', tiers: [{ from: 1, rate_value: 1_000_001 }] }), refused('tiers'));
  const { body: rule } = await create({ rate_value: 1_000_000 });
  const change = (fields: Json) => merchant.request('PATCH', `/v1/rules/${rule.id}`, fields);
  t.match(await change({ rate_value: 1_000_001 }), refused('rate_value'));
  t.match(await change({ rate_type: 'fixed', rate_value: 1_000_001 }), { status: 200 });
  t.match(await change({ rate_type: 'percent' }), refused('rate_value'));
  const link = await shop.link(await shop.partner());
  const override = (rate_type: string) =>
    merchant.request('PATCH', `/v1/links/${link.id}`, { rate_override: { rate_type, rate_value: 1_000_001 } });
  t.match(await override('percent'), refused('rate_override.rate_value'));
  t.match(await override('fixed'), { status: 200 });
});

t.test('a sale occurred between 2000 and a day from now', async (t) => {
  const shop = await openShop(rail);
  const sell = (at: number) =>
    shop.merchant.request('POST', '/v1/sales', {
      program_id: shop.program_id,
      amount_minor: 1,
      currency: 'USD',
      external_charge_id: fresh('bounds'),
      occurred_at: new Date(at).toISOString(),
    });
  const hour = 3_600_000;
  for (const at of [Date.UTC(2000, 0, 1) - 1, Date.now() + 25 * hour]) {
    t.match(await sell(at), { status: 400, body: { error: { code: 'invalid_parameter', param: 'occurred_at' } } });
  }
  for (const at of [Date.UTC(2000, 0, 1), Date.now() + 23 * hour]) t.match(await sell(at), { status: 201 });
});
