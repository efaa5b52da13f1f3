import t from 'tap';
import { type Json, startRail } from '../../harness.ts';
import { fresh, openShop } from '../../shop.ts';

const rail = await startRail();

/** A program that pays half of a first sale, and a tenth of three renewals. */
async function open() {
  const shop = await openShop(rail, { holding_period_days: 0 });
  await shop.rule({ name: 'First', rate_value: 5_000, applies_to: 'first', priority: 1 });
  await shop.rule({ name: 'Renewals', rate_value: 1_000, applies_to: 'renewals', max_payments: 3 });
  const partner = await shop.partner();
  const customer = await shop.customer({ partner_id: partner.id });
  const sell = (day: number) =>
    shop.sale({
      customer_id: customer.id,
      occurred_at: `2026-03-0${day}T10:00:00.000Z`,
      external_charge_id: `ch_${customer.id}_${day}`,
    });
  const earned = async () => {
    const sales = await shop.list('sales', `customer_id=${customer.id}`);
    const rows = await Promise.all(
      sales.map(async (sale) => [
        sale.is_first_sale,
        (await shop.commissionsOf(sale)).map(({ amount_minor }) => amount_minor),
      ]),
    );
    return rows.reverse();
  };
  return { shop, customer, sell, earned };
}

t.test('the next sale is the first when the first is deleted, and is paid as one', async (t) => {
  const { shop, customer, sell, earned } = await open();
  const [first, second, third] = [await sell(1), await sell(2), await sell(3)];
  t.same(await earned(), [
    [true, [5_000]],
    [false, [1_000]],
    [false, [1_000]],
  ]);
  await shop.events();
  await shop.merchant.delete(`/v1/sales/${first.id}`);
  t.same(await earned(), [
    [true, [5_000]],
    [false, [1_000]],
  ]);
  t.equal((await shop.merchant.get(`/v1/customers/${customer.id}`)).converted_at, second.occurred_at);
  const told = (await shop.events()).filter(({ data }) => data.sale_id === second.id);
  t.ok(told.some(({ type, data }) => type === 'sale.updated' && data.previous_amount_minor === data.amount_minor));
  await shop.merchant.delete(`/v1/sales/${second.id}`);
  t.same(await earned(), [[true, [5_000]]]);
  await shop.merchant.delete(`/v1/sales/${third.id}`);
  t.same(await earned(), []);
  await sell(4);
  t.same(await earned(), [[true, [5_000]]]);
});

t.test('what is paid stays as it is', async (t) => {
  const { shop, sell, earned } = await open();
  const [first, second] = [await sell(1), await sell(2)];
  await shop.pay((await shop.commissionsOf(second))[0] as Json);
  await shop.merchant.delete(`/v1/sales/${first.id}`);
  t.same(await earned(), [[true, [1_000]]]);
});

t.test('the earliest sale that is left is the first, also one before the deleted one', async (t) => {
  for (const settled of ['on hold', 'paid']) {
    for (const has_third of [false, true]) {
      const { shop, customer, sell, earned } = await open();
      const second = await sell(2);
      const [commission] = (await shop.commissionsOf(second)) as [Json];
      if (settled === 'paid') await shop.pay(commission);
      else await shop.merchant.post(`/v1/commissions/${commission.id}/hold`, {});
      const late = await sell(1);
      t.equal(late.is_first_sale, false);
      const third = has_third ? [[false, [1_000]]] : [];
      if (has_third) await sell(3);
      await shop.merchant.delete(`/v1/sales/${second.id}`);
      t.same(await earned(), [[true, [5_000]], ...third], settled);
      t.equal((await shop.merchant.get(`/v1/customers/${customer.id}`)).converted_at, late.occurred_at);
      await sell(4);
      t.same(await earned(), [[true, [5_000]], ...third, [false, [1_000]]], settled);
    }
  }
});

t.test('a payment that is deleted makes room for another under a limit', async (t) => {
  const { shop, sell, earned } = await open();
  const sales = [];
  for (const day of [1, 2, 3, 4, 5]) sales.push(await sell(day));
  t.same(
    (await earned()).map(([, amounts]) => amounts),
    [[5_000], [1_000], [1_000], [1_000], []],
  );
  await shop.merchant.delete(`/v1/sales/${sales[1]?.id}`);
  t.same(
    (await earned()).map(([, amounts]) => amounts),
    [[5_000], [1_000], [1_000], [1_000]],
  );
});

t.test('a customer is refunded no more once no sale is left that was', async (t) => {
  const { shop, customer, sell } = await open();
  const statusOf = async () => (await shop.merchant.get(`/v1/customers/${customer.id}`)).status;
  const [first, second] = [await sell(1), await sell(2)];
  for (const sale of [first, second]) await shop.refund(sale);
  await shop.merchant.delete(`/v1/sales/${first.id}`);
  t.equal(await statusOf(), 'refunded');
  await shop.merchant.delete(`/v1/sales/${second.id}`);
  t.equal(await statusOf(), 'active');
});

/** A customer of one partner, whose sales may name coupons of others. */
async function openCoupons() {
  const shop = await openShop(rail);
  await shop.rule();
  const [own, one, other] = [await shop.partner(), await shop.partner(), await shop.partner()];
  const { id: customer_id } = await shop.customer({ partner_id: own.id });
  const sell = async (day: number, partner?: Json) =>
    shop.sale({
      ...{ customer_id, occurred_at: `2026-03-0${day}T10:00:00.000Z` },
      ...(partner ? { coupon_external_id: (await shop.coupon({ partner_id: partner.id })).external_id } : {}),
    });
  const names = new Map([own, one, other].map(({ id }, nth) => [id, ['own', 'one', 'other'][nth]]));
  /** Of each sale who is credited, who earns, and whether by a coupon; last, whose the customer is. */
  const credited = async () => {
    const sales = await Promise.all(
      (await shop.list('sales')).reverse().map(async (sale) => {
        const earners = (await shop.commissionsOf(sale)).map(({ partner_id }) => names.get(partner_id));
        const { credited_by } = await shop.merchant.get(`/v1/sales/${sale.id}/explanation`);
        const found = [names.get(sale.partner_id), ...earners, ...(sale.coupon_id ? ['coupon'] : [])].join(' ');
        return `${found} by ${credited_by}`;
      }),
    );
    const { partner_id, tracked_by, coupon_id } = await shop.merchant.get(`/v1/customers/${customer_id}`);
    return [...sales, `${names.get(partner_id)} ${tracked_by}${coupon_id ? ' coupon' : ''}`];
  };
  const deletes = ({ id }: Json) => shop.merchant.delete(`/v1/sales/${id}`);
  return { shop, customer_id, own, one, other, sell, credited, deletes };
}

t.test('a coupon of a deleted sale has made the customer nobody else', async (t) => {
  const { one, sell, credited, deletes } = await openCoupons();
  const first = await sell(1, one);
  await sell(2);
  t.same(await credited(), ['one one coupon by coupon', 'one one by customer', 'one coupon coupon']);
  await deletes(first);
  t.same(await credited(), ['own own by customer', 'own api']);
  await sell(3);
  t.same(await credited(), ['own own by customer', 'own own by customer', 'own api']);
});

t.test("a customer whom a deleted sale recorded by a coupon is their referral's partner's", async (t) => {
  const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  for (const recorded of ['alone', 'in bulk', 'late']) {
    const shop = await openShop(rail);
    await shop.rule();
    const [own, other] = [await shop.partner(), await shop.partner()];
    const of = { external_customer_id: fresh('cus'), program_id: shop.program_id };
    const amount = { amount_minor: 10_000, currency: 'USD', external_charge_id: fresh('charge') };
    const clicked = { ...of, ...amount, click_id: (await shop.click(own)).id, occurred_at: inHours(1) };
    const named = { ...clicked, coupon_external_id: (await shop.coupon({ partner_id: other.id })).external_id };
    const further = (fields?: Json) => shop.sale({ ...of, occurred_at: inHours(2), ...fields });
    if (recorded === 'late') await further({ partner_id: other.id });
    if (recorded === 'in bulk') await shop.merchant.post('/v1/sales/bulk', [named]);
    else await shop.sale(named);
    if (recorded !== 'late') await further();
    const [first, second] = (await shop.list('sales')).sort((one, two) => (one.occurred_at < two.occurred_at ? -1 : 1));
    t.match([first, second], [{ partner_id: other.id }, { partner_id: other.id }], recorded);
    await shop.merchant.delete(`/v1/sales/${first?.id}`);
    const [customer] = await shop.list('customers');
    t.match(customer, { partner_id: own.id, tracked_by: 'link', coupon_id: null }, recorded);
    // A sale that named its partner itself stays theirs.
    const earner = recorded === 'late' ? other : own;
    t.match(await shop.list('sales'), [{ partner_id: earner.id, is_first_sale: true }], recorded);
    t.match(await shop.commissionsOf(second as Json), [{ partner_id: earner.id, amount_minor: 2_000 }], recorded);
  }
});

t.test(
  "a late sale of before a customer was known credits nobody, also where a coupon had hidden their referral's partner",
  async (t) => {
    const { shop, own, one } = await openCoupons();
    const of = { external_customer_id: fresh('cus'), click_id: (await shop.click(own)).id };
    const { external_id: coupon_external_id } = await shop.coupon({ partner_id: one.id });
    const first = await shop.sale({ ...of, coupon_external_id, occurred_at: new Date().toISOString() });
    t.equal(first.partner_id, one.id);
    const late = await shop.sale({ ...of, click_id: undefined, occurred_at: '2026-03-01T10:00:00.000Z' });
    t.match(late, { partner_id: null, customer_id: null });
  },
);

t.test('the coupon of the sale that is the first then counts', async (t) => {
  for (const own_coupon of [false, true]) {
    const { shop, own, one, other, sell, credited, deletes } = await openCoupons();
    const first = await sell(1, one);
    await sell(2, own_coupon ? own : other);
    await sell(3);
    await shop.events();
    await deletes(first);
    const name = own_coupon ? 'own' : 'other';
    t.same(await credited(), [
      `${name} ${name} coupon by coupon`,
      `${name} ${name} by customer`,
      `${name} coupon coupon`,
    ]);
  }
});

t.test('the coupon of the earliest sale that is left counts, and none of a later one', async (t) => {
  for (const has_third of [false, true]) {
    for (const late_coupon of [false, true]) {
      const { shop, one, other, sell, credited, deletes } = await openCoupons();
      const second = await sell(2, one);
      await shop.pay((await shop.commissionsOf(second))[0] as Json);
      const late = await sell(1, late_coupon ? other : undefined);
      t.match(late, { is_first_sale: false, partner_id: one.id });
      if (has_third) await sell(3, late_coupon ? one : other);
      await deletes(second);
      const name = late_coupon ? 'other' : 'own';
      t.same(await credited(), [
        late_coupon ? 'other other coupon by coupon' : 'own own by customer',
        ...(has_third ? [`${name} ${name} by customer`] : []),
        late_coupon ? 'other coupon coupon' : 'own api',
      ]);
    }
  }
});

t.test('a sale that is paid stays with its partner, and so does a customer who was moved by hand', async (t) => {
  const paid = await openCoupons();
  const [first, second] = [await paid.sell(1), await paid.sell(2, paid.other)];
  await paid.shop.pay((await paid.shop.commissionsOf(second))[0] as Json);
  await paid.deletes(first);
  t.same(await paid.credited(), ['own own by customer', 'own api']);

  const { shop, customer_id, own, one, sell, credited, deletes } = await openCoupons();
  const coupon = await sell(1, one);
  await shop.merchant.patch(`/v1/customers/${customer_id}`, { partner_id: own.id });
  await sell(2);
  await deletes(coupon);
  t.match(await credited(), ['own own by customer', /^own manual/]);
});
