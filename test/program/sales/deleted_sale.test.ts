import t from 'tap';
import { type Json, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';

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
