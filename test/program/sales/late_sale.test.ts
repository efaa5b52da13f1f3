/** Late sales where they meet refunds, disputes, holds, payouts and corrections by hand: tests that the audit of the harness checks at the end. */
import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';

const rail = await startRail();
const merchant = await rail.organization();
const day_ms = 86_400_000;
const began = Date.now() - 140 * day_ms;
const onDay = (day: number): string => new Date(began + day * day_ms).toISOString();
const amountsOf = async (shop: Shop, sale: Json): Promise<number[]> =>
  (await shop.commissionsOf(sale)).map(({ amount_minor }) => amount_minor);

/** A program whose customers' first sales earn 5.00, and further ones 20 %, unless other rules are given. */
async function open(
  rules: Json[] = [{}, { name: 'Bonus', applies_to: 'first', rate_type: 'fixed', rate_value: 500, priority: 10 }],
) {
  const shop = await openShop(rail, {}, merchant);
  for (const rule of rules) await shop.rule(rule);
  const partner = await shop.partner();
  const customer = await shop.customer({ partner_id: partner.id });
  const buys = (day: number, fields?: Json): Promise<Json> =>
    shop.sale({ customer_id: customer.id, occurred_at: onDay(day), ...fields });
  const explain = ({ id }: Json): Promise<Json> => merchant.get(`/v1/sales/${id}/explanation`);
  return { shop, partner, customer, buys, explain };
}

t.test('a disputed sale is on hold by whatever rule pays it', async (t) => {
  const { shop, buys } = await open();
  const later = await buys(20);
  const dispute = await merchant.post('/v1/disputes', { sale_id: later.id });
  await buys(5);
  t.match(await shop.commissionsOf(later), [{ amount_minor: 2_000, status: 'on_hold', hold_reason: 'dispute' }]);
  await merchant.post(`/v1/disputes/${dispute.id}/close`, { outcome: 'won' });
  t.match(await shop.commissionsOf(later), [{ amount_minor: 2_000, hold_reason: null }]);
});

t.test('a disputed sale that an earlier one makes known is on hold', async (t) => {
  const { shop, partner, buys } = await open();
  const named = { customer_id: undefined, external_customer_id: fresh('cus') };
  const later = await buys(20, named);
  const dispute = await merchant.post('/v1/disputes', { sale_id: later.id });
  await buys(5, { ...named, partner_id: partner.id });
  t.match(await shop.commissionsOf(later), [{ amount_minor: 2_000, status: 'on_hold', hold_reason: 'dispute' }]);
  await merchant.post(`/v1/disputes/${dispute.id}/close`, { outcome: 'lost' });
  t.same(await shop.commissionsOf(later), []);
});

t.test('what a person approved or put on hold stays, and the late sale is a further one', async (t) => {
  for (const [action, status] of [
    ['approve', 'approved'],
    ['hold', 'on_hold'],
  ] as const) {
    const { shop, buys } = await open();
    const later = await buys(130);
    await merchant.post(`/v1/commissions/${later.commissions[0].id}/${action}`, {});
    t.match(await buys(125), { is_first_sale: false, commissions: [{ amount_minor: 2_000 }] }, action);
    t.match(await shop.commissionsOf(later), [{ amount_minor: 500, status }], action);
  }
});

t.test('a later sale is corrected with the late one: no payout comes between', async (t) => {
  const { shop, buys } = await open();
  const later = await buys(20);
  const late = await buys(10);
  t.strictSame([await amountsOf(shop, late), await amountsOf(shop, later)], [[500], [2_000]]);
});

t.test('a refund that is reversed gives back what the place of the sale earns by now', async (t) => {
  const { shop, buys } = await open();
  const later = await buys(20);
  await shop.refund(later);
  await buys(5);
  const [refund] = await shop.list('refunds', `sale_id=${later.id}`);
  await merchant.post(`/v1/refunds/${refund?.id}/reverse`, {});
  t.strictSame(await amountsOf(shop, later), [2_000]);
});

t.test('a sale that moved while it was refunded earns its new partner when the refund is reversed', async (t) => {
  const { shop, buys } = await open([{}]);
  const other = await shop.partner();
  const coupon = await shop.coupon({ partner_id: other.id });
  const later = await buys(20);
  await shop.refund(later);
  await buys(5, { coupon_external_id: coupon.external_id });
  const [refund] = await shop.list('refunds', `sale_id=${later.id}`);
  await merchant.post(`/v1/refunds/${refund?.id}/reverse`, {});
  t.match(await shop.commissionsOf(later), [{ partner_id: other.id, amount_minor: 2_000 }]);
});

t.test('a sale that was refunded earns its partner anew when it comes back from another one', async (t) => {
  const steps = {
    refund: (shop: Shop, sale: Json) => shop.refund(sale),
    async reverse(shop: Shop, sale: Json) {
      const refunds = await shop.list('refunds', `sale_id=${sale.id}`);
      const standing = refunds.find(({ reversed_at }) => reversed_at === null);
      await merchant.post(`/v1/refunds/${standing?.id}/reverse`, {});
    },
    move: async (shop: Shop, { id }: Json) =>
      merchant.patch(`/v1/sales/${id}`, { partner_id: (await shop.partner()).id }),
    back: (_: Shop, { id, partner_id }: Json) => merchant.patch(`/v1/sales/${id}`, { partner_id }),
  };
  for (const story of [
    ['refund', 'reverse', 'move', 'back'],
    ['refund', 'reverse', 'refund', 'move', 'back', 'reverse'],
    ['refund', 'move', 'reverse', 'back'],
  ] as const) {
    const { shop, buys, partner } = await open([{}]);
    const sale = await buys(20);
    for (const step of story) await steps[step](shop, sale);
    t.match(await shop.commissionsOf(sale), [{ partner_id: partner.id, amount_minor: 2_000 }], `${story}`);
    t.match(await merchant.get(`/v1/sales/${sale.id}/explanation`), { rules: [{ outcome: 'chosen' }] }, `${story}`);
  }
});

t.test('a partner earns nothing by their own purchase, also after a late sale', async (t) => {
  const { shop } = await open();
  const [other, ada] = [await shop.partner(), await shop.partner()];
  const customer = await shop.customer({ partner_id: other.id, email: ada.email });
  const sale = await shop.sale({ customer_id: customer.id, occurred_at: onDay(20) });
  await merchant.patch(`/v1/sales/${sale.id}`, { partner_id: ada.id });
  await shop.sale({ customer_id: customer.id, occurred_at: onDay(5) });
  t.strictSame(await amountsOf(shop, sale), []);
});

t.test('a customer who was moved by hand stays where they are', async (t) => {
  const { shop, buys, customer } = await open();
  const [by_hand, of_coupon] = [await shop.partner(), await shop.partner()];
  const coupon = await shop.coupon({ partner_id: of_coupon.id });
  const later = await buys(20);
  await merchant.patch(`/v1/customers/${customer.id}`, { partner_id: by_hand.id });
  const late = await buys(5, { coupon_external_id: coupon.external_id });
  t.equal(late.partner_id, of_coupon.id);
  t.match(await merchant.get(`/v1/customers/${customer.id}`), { partner_id: by_hand.id, tracked_by: 'manual' });
  t.equal((await merchant.get(`/v1/sales/${later.id}`)).partner_id, later.partner_id);
});

t.test('a sale that named the customer before an earlier one made them known is credited', async (t) => {
  const { shop } = await open();
  const partner = await shop.partner();
  const of = { external_customer_id: fresh('named') };
  const later = await shop.sale({ ...of, occurred_at: onDay(20) });
  await shop.refund(later, { amount_minor: 1_000, refunded_at: onDay(21) });
  await shop.events();
  const late = await shop.sale({ ...of, partner_id: partner.id, occurred_at: onDay(10) });
  t.match(await merchant.get(`/v1/sales/${later.id}`), {
    ...{ partner_id: partner.id, customer_id: late.customer_id, is_first_sale: false },
  });
  t.strictSame(await amountsOf(shop, later), [1_800]);
  t.strictSame(
    (await shop.events()).filter(({ data }) => data.sale_id === later.id).map(({ type }) => type),
    ['sale.created', 'sale.refunded', 'commission.created'],
  );
});

t.test("a sale that becomes a known customer's while its refund waits makes them refunded", async (t) => {
  const { shop, buys, customer } = await open();
  await buys(1);
  const later = await shop.sale({ external_customer_id: fresh('named'), occurred_at: onDay(20) });
  const holder = await rail.store.database.connect();
  try {
    await holder.query('begin');
    await holder.query('update program.sale set customer_id = $1, is_first_sale = false where id = $2', [
      customer.id,
      later.id,
    ]);
    const refunded = shop.refund(later);
    await eventually(async () => {
      const waiting = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return (await rail.query(waiting)).length > 0;
    }, 'the refund to wait for the sale');
    await holder.query('commit');
    t.match(await refunded, { status: 'refunded' });
  } finally {
    holder.release(true);
  }
  t.match(await merchant.get(`/v1/customers/${customer.id}`), { status: 'refunded' });
});

t.test('later sales came by the link that their customer came by, if by any', async (t) => {
  const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  for (const name of ['partner_id', 'coupon_external_id']) {
    for (const has_click of [false, true]) {
      const { shop, partner } = await open([{}]);
      const link = await shop.link(partner);
      await shop.rule({ name: 'Link', rate_value: 5_000, link_ids: [link.id] });
      const coupon = await shop.coupon({ partner_id: partner.id });
      const click = await shop.click(partner, { value: link.value });
      const of = { external_customer_id: fresh('cus') };
      const named = { ...of, [name]: name === 'partner_id' ? partner.id : coupon.external_id };
      const clicked = { ...of, click_id: click.id };
      const later = await shop.sale({ ...(has_click ? named : clicked), occurred_at: inHours(2) });
      t.strictSame(await amountsOf(shop, later), [has_click ? 2_000 : 5_000]);
      await shop.events();
      const late = await shop.sale({ ...(has_click ? clicked : named), occurred_at: inHours(1) });
      const [visit, amount] = has_click ? [{ link_id: link.id }, 5_000] : [{ link_id: null, referral_id: null }, 2_000];
      for (const sale of [late, later]) {
        t.match(await merchant.get(`/v1/sales/${sale.id}`), visit);
        t.strictSame(await amountsOf(shop, sale), [amount]);
      }
      t.match(await shop.list('referrals'), [{ status: has_click ? 'converted' : 'visit' }]);
      const told = (await shop.events())
        .map(({ type }) => type)
        .filter((type) => /^referral\.(lead|converted)$/.test(type));
      t.strictSame(told, has_click ? ['referral.lead', 'referral.converted'] : []);
    }
  }
});

t.test('a sale that keeps its commission from before it was moved by hand and back keeps its link too', async (t) => {
  const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const { shop, partner } = await open([{}]);
  const link = await shop.link(partner, { rate_override: { rate_type: 'percent', rate_value: 5_000 } });
  const click = await shop.click(partner, { value: link.value });
  const of = { external_customer_id: fresh('cus') };
  const later = await shop.sale({ ...of, partner_id: partner.id, occurred_at: inHours(2) });
  const [commission] = (await shop.commissionsOf(later)) as [Json];
  await shop.lock(commission);
  for (const { id } of [await shop.partner(), partner])
    await merchant.patch(`/v1/sales/${later.id}`, { partner_id: id });
  await shop.lock(commission, false);
  const late = await shop.sale({ ...of, click_id: click.id, occurred_at: inHours(1) });
  t.match(late, { link_id: link.id, commissions: [{ amount_minor: 5_000 }] });
  t.match(await merchant.get(`/v1/sales/${later.id}`), { link_id: null, referral_id: null });
  t.equal(
    (await amountsOf(shop, later)).reduce((total, amount) => total + amount, 0),
    2_000,
  );
});

t.test('max_payments counts what was paid as of the time of the sale', async (t) => {
  const rules = [{ name: 'Once', max_payments: 1, rate_value: 5_000, priority: 10 }, { rate_value: 1_000 }];
  const { shop, buys, customer } = await open(rules);
  const first = await buys(1);
  await shop.refund(first, { refunded_at: onDay(20) });
  await merchant.patch(`/v1/customers/${customer.id}`, { status: 'active' });
  t.match(await buys(10), { commissions: [{ amount_minor: 1_000 }] }, 'refunded after it');
  t.match(await buys(30), { commissions: [{ amount_minor: 5_000 }] }, 'refunded before it');
});

t.test('a sale that a rule earned nothing by is none of its payments', async (t) => {
  const rules = [{ name: 'Fixed', rate_type: 'fixed', rate_value: 700, max_payments: 1 }];
  const { shop, buys } = await open(rules);
  const euros = await buys(1, { currency: 'EUR' });
  t.strictSame(euros.commissions, []);
  await shop.refund(euros, { refunded_at: onDay(20) });
  t.match(await buys(10), { commissions: [{ amount_minor: 700 }] });
});

t.test('a duration runs from the first sale, also where that is paid and a late one is earlier', async (t) => {
  const { shop, buys } = await open([{ duration_months: 2 }]);
  const first = await buys(20);
  await shop.pay(first.commissions[0]);
  const last = await buys(75);
  await buys(5);
  t.strictSame(await amountsOf(shop, last), [2_000]);
});

t.test("what happened before a customer was known is nobody's, also where their first sale is paid", async (t) => {
  const { shop } = await open();
  const partner = await shop.partner();
  const of = { external_customer_id: fresh('known') };
  const first = await shop.sale({ ...of, partner_id: partner.id, occurred_at: onDay(10) });
  await shop.pay(first.commissions[0]);
  t.match(await shop.sale({ ...of, occurred_at: onDay(9) }), { partner_id: null, customer_id: null });
});

t.test('the explanation follows the place of a sale', async (t) => {
  const { shop, buys, explain, partner } = await open([{}, { name: 'Renewals', applies_to: 'renewals', priority: -1 }]);
  const other = await shop.partner();
  const coupon = await shop.coupon({ partner_id: other.id });
  const later = await buys(20);
  const late = await buys(10);
  const conditionsOf = ({ rules }: Json) =>
    Object.fromEntries(rules.map(({ name, condition, outcome }: Json) => [name, condition ?? outcome]));
  t.match(await explain(later), { is_first_sale: false, first_sale_at: late.occurred_at });
  t.strictSame(conditionsOf(await explain(later)), { Standard: 'chosen', Renewals: 'outranked' });
  await buys(5, { coupon_external_id: coupon.external_id });
  const moved = await explain(later);
  t.equal(moved.partner_id, other.id);
  t.strictSame(
    moved.candidates.filter(({ credited }: Json) => credited).map(({ partner_id }: Json) => partner_id),
    [other.id],
    `and not ${partner.id}`,
  );
});

t.test('many later sales are corrected by jobs, step by step', async (t) => {
  const rules = [{ name: 'Early', max_payments: 60, rate_value: 5_000, priority: 10 }, { rate_value: 1_000 }];
  const { shop, buys, customer } = await open(rules);
  await buys(10);
  const list = Array.from({ length: 70 }, (_, nth) => ({
    ...{ program_id: shop.program_id, customer_id: customer.id, external_charge_id: fresh('many') },
    ...{ amount_minor: 10_000, currency: 'USD', occurred_at: onDay(11 + nth) },
  }));
  await merchant.post('/v1/sales/bulk', list);
  const recorded = async (nth: number): Promise<Json> =>
    (await shop.list('sales', `external_charge_id=${list[nth]?.external_charge_id}`))[0] as Json;
  const last_early = await recorded(58);
  t.strictSame(await amountsOf(shop, last_early), [5_000]);
  await buys(5);
  await eventually(async () => (await amountsOf(shop, last_early))[0] === 1_000, 'the 61st payment to be no early one');
  t.strictSame(await amountsOf(shop, await recorded(57)), [5_000]);
});

t.test('a correction that leaves nothing of a sale, or something again, changes the number of payments', async (t) => {
  const { buys, shop } = await open([{ name: 'Once', max_payments: 1, rate_value: 5_000, priority: 10 }, {}]);
  const first = await buys(1);
  await shop.refund(first, { amount_minor: 4_000, refunded_at: onDay(5) });
  const later = await buys(10);
  t.strictSame(await amountsOf(shop, later), [2_000]);
  for (const [amount_minor, once, earned] of [
    [4_000, [], [5_000]],
    [9_000, [2_500], [2_000]],
  ] as const) {
    await merchant.patch(`/v1/sales/${first.id}`, { amount_minor });
    t.strictSame(await amountsOf(shop, first), once);
    await eventually(
      async () => `${await amountsOf(shop, later)}` === `${earned}`,
      `the later sale to earn ${earned} beside a first one of ${amount_minor}`,
    );
  }
});

t.test('a correction changes what later sales earn by their tier or the number of payments', async (t) => {
  const inMarch = (day: number) => ({ occurred_at: `2026-03-0${day}T00:00:00Z` });
  const tiered = (tier_metric: string, from: number): Json => ({
    ...{ tier_metric, rate_value: 1_000 },
    tiers: [{ from, rate_value: 3_000 }],
  });
  const earn = async (shop: Shop, sale: Json, expected: number[], said: string) =>
    eventually(
      async () => `${await amountsOf(shop, sale)}` === `${expected}`,
      `${said}: the later sale to earn ${expected}`,
    );
  const correct = ({ id }: Json, changes: Json) => merchant.patch(`/v1/sales/${id}`, changes);
  const cases = {
    'the amount in a tier by revenue': [tiered('revenue_minor', 9_000), 3_000, { amount_minor: 5_000 }, 1_000],
    'the partner in a tier by count': [tiered('sales_count', 1), 3_000, 'other', 1_000],
    'an amount of 0 is no payment': [{ max_payments: 1 }, undefined, { amount_minor: 0 }, 2_000],
    'the partner of the one payment': [{ max_payments: 1 }, undefined, 'other', 2_000],
  } as const;
  for (const [said, [rule, before, change, after]] of Object.entries(cases)) {
    const { shop, partner, buys } = await open([]);
    const other = await shop.partner();
    await shop.rule({ ...rule, partner_ids: [partner.id] });
    const [first, later] = [await buys(0, inMarch(1)), await buys(0, inMarch(2))];
    t.strictSame(await amountsOf(shop, later), before === undefined ? [] : [before], said);
    await correct(first, change === 'other' ? { partner_id: other.id } : change);
    await earn(shop, later, [after], said);
    await correct(first, change === 'other' ? { partner_id: partner.id } : { amount_minor: 10_000 });
    await earn(shop, later, before === undefined ? [] : [before], `${said}, and back`);
  }
});
