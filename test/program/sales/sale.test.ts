import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { list } from '../../../src/core/resource/list.ts';
import { saleList } from '../../../src/program/record_sale.ts';
import { sales } from '../../../src/program/sales/sale.ts';
import { type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, types } from '../../shop.ts';

const rail = await startRail();

t.test('who earns a sale', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const coupon = await shop.coupon({ partner_id: bob.id });

  t.test('the explicit partner, before the partner of the customer, who stays theirs', async (t) => {
    const customer = await shop.referred(ada);
    const sale = await shop.sale({ partner_id: bob.id, customer: { external_customer_id: fresh('new') } });
    t.match(sale, { partner_id: bob.id, is_first_sale: true });
    t.match(await shop.merchant.get(`/v1/customers/${sale.customer_id}`), { partner_id: bob.id, tracked_by: 'api' });

    const external_customer_id = fresh('known');
    const known = await shop.customer({ partner_id: ada.id, external_customer_id });
    const other = await shop.sale({ partner_id: bob.id, customer: { external_customer_id } });
    t.match(other, { partner_id: bob.id, customer_id: known.id });
    t.match(await shop.merchant.get(`/v1/customers/${known.id}`), { partner_id: ada.id });
    t.match(await shop.sale({ customer_id: customer.id }), { partner_id: ada.id, referral_id: customer.referral_id });
  });

  t.test(
    "on the customer's first sale the coupon, which binds the customer; afterwards the customer's partner",
    async (t) => {
      const external_customer_id = fresh('known');
      const known = await shop.customer({ partner_id: ada.id, external_customer_id });
      const first = await shop.sale({ coupon_external_id: coupon.external_id, customer: { external_customer_id } });
      t.match(first, { partner_id: bob.id, coupon_id: coupon.id, customer_id: known.id, is_first_sale: true });
      const bound = { partner_id: bob.id, coupon_id: coupon.id, tracked_by: 'coupon', status: 'active' };
      t.match(await shop.merchant.get(`/v1/customers/${known.id}`), bound);

      const late = await shop.customer({ partner_id: ada.id, external_customer_id: fresh('late') });
      await shop.sale({ customer_id: late.id });
      const { external_customer_id: late_id } = late;
      const second = await shop.sale({
        coupon_external_id: coupon.external_id,
        customer: { external_customer_id: late_id },
      });
      t.match(second, { partner_id: ada.id, coupon_id: null, is_first_sale: false });
    },
  );

  t.test('a coupon that is switched off, or has no partner, brings nobody', async (t) => {
    const off = await shop.coupon({ partner_id: bob.id });
    await shop.merchant.post(`/v1/coupons/${off.id}/deactivate`);
    for (const { external_id } of [off, await shop.coupon()]) {
      const sale = await shop.sale({ coupon_external_id: external_id, customer: { external_customer_id: fresh('x') } });
      t.match(sale, { partner_id: null, customer_id: null, warnings: [{ code: 'no_partner_attributed' }] });
    }
    const occurred_at = new Date(Date.now() - 60_000).toISOString();
    const customer = { external_customer_id: fresh('x') };
    const before = await shop.sale({ coupon_external_id: off.external_id, customer, occurred_at });
    t.match(before, { partner_id: bob.id, coupon_id: off.id }, 'what happened while it was on is told late');
  });

  t.test('a new customer whom a coupon brings is bound by it', async (t) => {
    const sale = await shop.sale({
      coupon_external_id: coupon.external_id,
      customer: { email: 'new@customer.example.com' },
    });
    t.match(await shop.merchant.get(`/v1/customers/${sale.customer_id}`), { partner_id: bob.id, tracked_by: 'coupon' });
  });

  t.test('the click, whose visitor becomes a customer on the spot and stays one', async (t) => {
    const link = await shop.link(ada);
    const click = await shop.click(ada, { value: link.value });
    const first = await shop.sale({ click_id: click.id, customer: { email: 'visitor@customer.example.com' } });
    t.match(first, { partner_id: ada.id, link_id: link.id, is_first_sale: true });
    const customer = await shop.merchant.get(`/v1/customers/${first.customer_id}`);
    t.match(customer, { tracked_by: 'link', referral_id: first.referral_id, email: 'visitor@customer.example.com' });
    t.match(await shop.sale({ click_id: click.id }), { customer_id: customer.id, is_first_sale: false });
    t.match(await shop.merchant.get(`/v1/referrals/${first.referral_id}`), { status: 'converted' });
  });

  t.test('nobody, and then it is recorded with a warning and told of to nobody', async (t) => {
    await shop.events();
    const sale = await shop.sale({ external_customer_id: 'unheard_of' });
    t.match(sale, { partner_id: null, customer_id: null, activity_outcome: 'sale_recorded', commissions: [] });
    t.match(sale.warnings, [{ code: 'no_partner_attributed', message: String }]);
    await shop.refund(sale);
    t.same(await shop.events(), []);
  });

  t.test('a sale that names somebody of another program is refused', async (t) => {
    const other = await openShop(rail);
    const stranger = await other.partner();
    const body = { program_id: shop.program.id, amount_minor: 1, currency: 'USD', external_charge_id: fresh('x') };
    const send = (fields: Json) => shop.merchant.request('POST', '/v1/sales', { ...body, ...fields });
    for (const claim of [{ partner_id: stranger.id }, { customer_id: 'cus_x' }, { click_id: 'clk_x' }]) {
      t.match(await send(claim), { status: 404, body: { error: { param: Object.keys(claim)[0] } } });
    }
    const sibling = await openShop(rail, {}, shop.merchant);
    const { id: partner_id } = await sibling.partner();
    const { id: customer_id } = await sibling.customer({ partner_id });
    for (const claim of [{ partner_id }, { customer_id }]) {
      const { status, body } = await send(claim);
      t.match([status, body.error.message], [404, /in this program\.$/]);
    }
  });
});

t.test("a link's own rate is paid to its own partner alone", async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ rate_value: 1_000 });
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const link = await shop.link(ada, { rate_override: { rate_type: 'percent', rate_value: 5_000 } });
  const visitor = async () => shop.customer({ click_id: (await shop.click(ada, { value: link.value })).id });

  const own = await shop.sale({ customer_id: (await visitor()).id });
  t.match(own.commissions, [{ partner_id: ada.id, amount_minor: 5_000, rule_id: null, rate_value: 5_000 }]);

  const reassigned = await visitor();
  await shop.merchant.patch(`/v1/customers/${reassigned.id}`, { partner_id: bob.id });
  const by_hand = await shop.sale({ customer_id: reassigned.id });
  t.match(by_hand, { partner_id: bob.id, link_id: null, commissions: [{ amount_minor: 1_000 }] });

  const external_customer_id = fresh('cus');
  const click = await shop.click(ada, { value: link.value });
  await shop.customer({ click_id: click.id, external_customer_id });
  const explicit = await shop.sale({ partner_id: bob.id, customer: { external_customer_id } });
  t.match(explicit, { partner_id: bob.id, link_id: null, commissions: [{ amount_minor: 1_000 }] });
});

t.test('warnings say why nobody was paid, and the sale is not dropped', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  const unpaid = async (fields: Json, code: string) => {
    const sale = await shop.sale({ partner_id: partner.id, ...fields });
    t.match(sale, { activity_outcome: 'sale_recorded', commissions: [], warnings: [{ code }] });
    t.equal(sale.warnings.length, 1);
    t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { id: sale.id, partner_id: partner.id });
  };
  await unpaid({}, 'no_commission_from_rules');
  await shop.rule({ rate_type: 'fixed', rate_value: 500 });
  await unpaid({ currency: 'EUR' }, 'fixed_rate_currency_mismatch');
  const paid = await shop.sale({ partner_id: partner.id });
  t.match(paid, { activity_outcome: 'commission_created', commissions: [{ amount_minor: 500, currency: 'USD' }] });
  t.notOk('warnings' in paid);
  await shop.merchant.patch(`/v1/partners/${partner.id}`, { status: 'suspended' });
  await unpaid({}, 'no_commission_from_rules');
});

t.test('a first sale tells its events in order, once', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const customer = await shop.referred(await shop.partner());
  await shop.events();
  const sale = await shop.sale({ customer_id: customer.id, occurred_at: '2026-05-06T07:08:09+02:00' });
  const [created, earned, converted, ...rest] = await shop.events();
  t.same(rest, []);
  t.same([created?.type, earned?.type, converted?.type], ['sale.created', 'commission.created', 'referral.converted']);
  t.same(created?.data, {
    sale_id: sale.id,
    customer_id: customer.id,
    partner_id: customer.partner_id,
    amount_minor: 10_000,
    currency: 'USD',
    is_first_sale: true,
    external_charge_id: sale.external_charge_id,
    occurred_at: '2026-05-06T05:08:09.000Z',
  });
  t.match(await shop.merchant.get(`/v1/customers/${customer.id}`), {
    status: 'active',
    converted_at: created?.data.occurred_at,
  });
  await shop.sale({ customer_id: customer.id });
  t.same(types(await shop.events()), ['sale.created', 'commission.created']);
});

t.test('a commission is due when the holding period is over, counted from the sale', async (t) => {
  const shop = await openShop(rail, { holding_period_days: 0 });
  await shop.rule();
  const partner = await shop.partner();
  const at_once = await shop.sale({ partner_id: partner.id });
  t.match(at_once.commissions, [{ status: 'due', mature_at: at_once.occurred_at }]);

  await shop.merchant.patch(`/v1/programs/${shop.program.id}`, { holding_period_days: 30 });
  const old = await shop.sale({ partner_id: partner.id, occurred_at: '2026-01-01T00:00:00Z' });
  t.match(old.commissions, [{ status: 'due', mature_at: '2026-01-31T00:00:00.000Z' }]);
  const recent = await shop.sale({ partner_id: partner.id });
  t.match(recent.commissions, [{ status: 'pending' }]);
  const [{ mature_at }] = recent.commissions;
  t.equal(Date.parse(mature_at) - Date.parse(recent.occurred_at), 30 * 86_400_000);
  await shop.merchant.patch(`/v1/programs/${shop.program.id}`, { holding_period_days: 5 });
  t.match(await shop.commissionsOf(recent), [{ mature_at }], 'it was fixed at creation');
});

t.test('a correction recalculates with the copied rate, and tells the amount before', async (t) => {
  const shop = await openShop(rail, { commission_on_net_revenue: true });
  const rule = await shop.rule();
  const sale = await shop.sale({ partner_id: (await shop.partner()).id, tax_minor: 2_000 });
  t.match(sale, { net_amount_minor: 8_000, commissions: [{ amount_minor: 1_600, base_amount_minor: 8_000 }] });
  await shop.merchant.patch(`/v1/rules/${rule.id}`, { rate_value: 9_000 });
  await shop.merchant.patch(`/v1/programs/${shop.program.id}`, { commission_on_net_revenue: false });
  await shop.events();
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 7_000 });
  const [updated, commission, ...rest] = await shop.events();
  t.same(rest, []);
  t.match(updated, { type: 'sale.updated', data: { amount_minor: 7_000, previous_amount_minor: 10_000 } });
  t.match(commission, {
    type: 'commission.updated',
    data: { amount_minor: 1_000, status: 'pending', previous_status: 'pending' },
  });
  t.match(await shop.commissionsOf(sale), [{ base_amount_minor: 5_000, rate_value: 2_000 }]);

  t.test('and metadata alone is no correction', async (t) => {
    const [{ id }] = (await shop.commissionsOf(sale)) as [Json];
    await shop.merchant.patch(`/v1/commissions/${id}`, { amount_minor: 1_234 });
    await shop.events();
    await shop.merchant.patch(`/v1/sales/${sale.id}`, {
      metadata: { seen: true },
      product_id: 'plan_2',
      amount_minor: 7_000,
    });
    t.same(await shop.events(), []);
    t.match(await shop.commissionsOf(sale), [{ amount_minor: 1_234 }], 'what was set by hand stays');
  });

  t.test('what came to nothing comes back as it was set', async (t) => {
    const correct = (amount_minor: number, tax_minor: number) =>
      shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor, tax_minor });
    await correct(0, 0);
    t.match((await shop.events()).at(-1), { type: 'commission.voided', data: { reason: 'sale_corrected' } });
    t.same(await shop.commissionsOf(sale), []);
    await correct(12_000, 2_000);
    t.match(await shop.commissionsOf(sale), [
      { kind: 'sale', amount_minor: 2_468, status: 'pending', rate_value: 2_000 },
    ]);
  });

  t.test('nothing below what is refunded', async (t) => {
    await shop.refund(sale, { amount_minor: 100 });
    const answer = await shop.merchant.request('PATCH', `/v1/sales/${sale.id}`, { amount_minor: 99 });
    t.match(answer, { status: 400, body: { error: { code: 'invalid_parameter', param: 'amount_minor' } } });
  });
});

t.test('a correction whose commission would be too large is refused, and changes nothing', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ rate_value: 20_000 });
  const sale = await shop.sale({ partner_id: (await shop.partner()).id });
  const too_large = { amount_minor: Number.MAX_SAFE_INTEGER };
  for (const [method, path, body] of [
    ['PATCH', `/v1/sales/${sale.id}`, too_large],
    [
      'POST',
      '/v1/sales',
      {
        ...too_large,
        program_id: shop.program.id,
        partner_id: sale.partner_id,
        currency: 'USD',
        external_charge_id: 'x',
      },
    ],
  ] as const) {
    t.match(await shop.merchant.request(method, path, body), {
      status: 400,
      body: { error: { code: 'invalid_parameter', param: 'amount_minor' } },
    });
  }
  t.match(await shop.list('sales'), [{ id: sale.id, amount_minor: 10_000 }]);
});

t.test('a cap may cut off as much as it likes: the largest sale is paid', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ rate_value: 20_000, max_commission_minor: 50_000 });
  const partner = await shop.partner();
  const sale = await shop.sale({ partner_id: partner.id, amount_minor: Number.MAX_SAFE_INTEGER });
  t.match(sale, { commissions: [{ amount_minor: 50_000 }] });
  await shop.refund(sale, { amount_minor: 1 });
  t.match(await shop.commissionsOf(sale), [{ amount_minor: 50_000 }]);
});

t.test('a sale that earned nothing is put to the rules again when it is corrected', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ min_sale_minor: 5_000 });
  const { id: partner_id } = await shop.partner();
  const customer = await shop.customer({ partner_id });
  const sale = await shop.sale({ customer_id: customer.id, amount_minor: 990 });
  t.match(sale, { activity_outcome: 'sale_recorded', warnings: [{ code: 'no_commission_from_rules' }] });
  await shop.refund(sale, { amount_minor: 100 });
  await shop.events();
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 9_900 });
  const [updated, created, ...rest] = await shop.events();
  t.same(rest, []);
  t.match(updated, { type: 'sale.updated', data: { amount_minor: 9_900, previous_amount_minor: 990 } });
  t.match(created, { type: 'commission.created', data: { amount_minor: 1_960, status: 'pending' } });
  t.match(await shop.commissionsOf(sale), [{ amount_minor: 1_960, customer_id: customer.id }]);

  await t.test('and only then: a note, or a refund, pays nobody', async (t) => {
    const other = await shop.sale({ partner_id, amount_minor: 4_000 });
    await shop.rule({ name: 'Later' });
    await shop.merchant.patch(`/v1/sales/${other.id}`, { metadata: { seen: true } });
    await shop.refund(other, { amount_minor: 1 });
    t.same(await shop.commissionsOf(other), []);
  });

  await t.test('but not where somebody cancelled what it earned', async (t) => {
    for (const cancel of ['void', 'reject', 'delete']) {
      const sold = await shop.sale({ partner_id });
      const path = `/v1/commissions/${sold.commissions[0].id}`;
      await (cancel === 'delete' ? shop.merchant.delete(path) : shop.merchant.post(`${path}/${cancel}`));
      await shop.merchant.patch(`/v1/sales/${sold.id}`, { amount_minor: 20_000 });
      t.same(await shop.commissionsOf(sold), [], cancel);
    }
  });

  await t.test('nor for a partner who is deleted', async (t) => {
    const gone = await shop.partner();
    const sold = await shop.sale({ partner_id: gone.id, amount_minor: 0 });
    await shop.merchant.delete(`/v1/partners/${gone.id}`);
    await shop.merchant.patch(`/v1/sales/${sold.id}`, { amount_minor: 9_900 });
    t.same(await shop.commissionsOf(sold), []);
  });
});

t.test('parts that are more than the amount are refused, and the refusal names the field', async (t) => {
  const shop = await openShop(rail);
  const body = { program_id: shop.program_id, currency: 'USD', amount_minor: 1_000 };
  const most = Number.MAX_SAFE_INTEGER;
  const refused: [parts: Json, param: string][] = [
    [{ tax_minor: 1_001 }, 'tax_minor'],
    [{ tax_minor: 600, shipping_minor: 401 }, 'shipping_minor'],
    [{ fee_minor: 1_000, discount_minor: 1 }, 'discount_minor'],
    [{ amount_minor: 0, fee_minor: 30 }, 'fee_minor'],
    [{ amount_minor: most, tax_minor: most, fee_minor: most }, 'fee_minor'],
  ];
  for (const [parts, param] of refused) {
    const sale = { ...body, ...parts, external_charge_id: 'ch_parts' };
    t.match(await shop.merchant.request('POST', '/v1/sales', sale), {
      status: 400,
      body: { error: { code: 'invalid_parameter', param } },
    });
  }
  const sale = await shop.sale({ amount_minor: 1_000, tax_minor: 600, discount_minor: 400 });
  t.equal(sale.net_amount_minor, 0);
  const corrected = (changes: Json) => shop.merchant.request('PATCH', `/v1/sales/${sale.id}`, changes);
  for (const [changes, param] of [
    [{ amount_minor: 999 }, 'amount_minor'],
    [{ fee_minor: 1 }, 'fee_minor'],
    [{ tax_minor: 601 }, 'tax_minor'],
    [{ amount_minor: 500, tax_minor: 501, discount_minor: 0 }, 'tax_minor'],
  ] as [Json, string][])
    t.match(await corrected(changes), { status: 400, body: { error: { code: 'invalid_parameter', param } } });
  t.match(await corrected({ amount_minor: 2_000, tax_minor: 0 }), { status: 200, body: { net_amount_minor: 1_600 } });

  await t.test('a sale from before that has more stays as it is until its amounts change', async (t) => {
    await rail.query(sql`update program.sale set tax_minor = 5000, net_amount_minor = 0 where id = ${sale.id}`);
    t.match(await corrected({ metadata: { seen: true } }), { status: 200, body: { net_amount_minor: 0 } });
    t.match(await corrected({ amount_minor: 3_000 }), { status: 400, body: { error: { param: 'amount_minor' } } });
    t.match(await corrected({ tax_minor: 0 }), { status: 200, body: { net_amount_minor: 1_600 } });
  });
});

t.test('a sale of 0 earns nothing, also by a fixed rule, and earns once its amount is corrected', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ rate_type: 'fixed', rate_value: 500 });
  const { id: partner_id } = await shop.partner();
  const free = await shop.sale({ partner_id, amount_minor: 0 });
  t.match(free, {
    activity_outcome: 'sale_recorded',
    commissions: [],
    warnings: [{ code: 'no_commission_from_rules', message: /amount is above 0/ }],
  });
  await shop.merchant.patch(`/v1/sales/${free.id}`, { amount_minor: 100 });
  t.match(await shop.commissionsOf(free), [{ amount_minor: 500, status: 'pending' }]);
  await shop.events();
  await shop.merchant.patch(`/v1/sales/${free.id}`, { amount_minor: 0 });
  t.same(await shop.commissionsOf(free), []);
  t.match((await shop.events()).at(-1), { type: 'commission.voided', data: { reason: 'sale_corrected' } });
  await shop.merchant.patch(`/v1/sales/${free.id}`, { amount_minor: 100 });
  t.match(await shop.commissionsOf(free), [{ amount_minor: 500 }]);
});

t.test('a sale that is given to another partner leaves the one before with nothing', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  await shop.rule({ partner_ids: [bob.id], rate_value: 3_000 });
  const give = (sale: Json, { id: partner_id }: Json) => shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id });

  const unpaid = await shop.sale({ partner_id: ada.id });
  await shop.events();
  await give(unpaid, bob);
  t.match(await shop.events(), [
    { type: 'sale.updated', data: { partner_id: bob.id, amount_minor: 10_000, previous_amount_minor: 10_000 } },
    { type: 'commission.deleted', data: { partner_id: ada.id } },
    { type: 'commission.created', data: { partner_id: bob.id, amount_minor: 3_000 } },
  ]);

  await t.test('what was paid is clawed back, and paid again when the sale comes back', async (t) => {
    const paid = await shop.sale({ partner_id: ada.id });
    await shop.pay(paid.commissions[0]);
    await give(paid, bob);
    t.match(await shop.commissionsOf(paid), [
      { partner_id: ada.id, status: 'paid', amount_minor: 2_000 },
      {
        partner_id: ada.id,
        kind: 'clawback',
        status: 'due',
        amount_minor: -2_000,
        clawback_of: paid.commissions[0].id,
      },
      { partner_id: bob.id, status: 'pending', amount_minor: 3_000 },
    ]);
    await give(paid, ada);
    const left = await shop.commissionsOf(paid);
    t.ok(left.every(({ partner_id }) => partner_id === ada.id));
    t.equal(
      left.reduce((sum, { amount_minor }) => sum + amount_minor, 0),
      2_000,
    );
  });

  await t.test('what was decided by hand holds when the sale comes back', async (t) => {
    for (const action of ['void', 'reject', 'delete'] as const) {
      const sale = await shop.sale({ partner_id: ada.id });
      const path = `/v1/commissions/${sale.commissions[0].id}`;
      await (action === 'delete' ? shop.merchant.delete(path) : shop.merchant.post(`${path}/${action}`));
      await give(sale, bob);
      await give(sale, ada);
      t.same(await shop.commissionsOf(sale), [], action);
      await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 20_000 });
      t.same(await shop.commissionsOf(sale), [], `${action}, then a correction`);
    }
    for (const edited of [500, 0]) {
      const sale = await shop.sale({ partner_id: ada.id });
      await shop.merchant.patch(`/v1/commissions/${sale.commissions[0].id}`, { amount_minor: edited });
      await give(sale, bob);
      await give(sale, ada);
      const sum = async () => (await shop.commissionsOf(sale)).reduce((all, { amount_minor }) => all + amount_minor, 0);
      t.equal(await sum(), edited, `edited to ${edited}`);
      await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 20_000 });
      t.equal(await sum(), edited * 2, 'and is scaled');
    }
  });

  await t.test('what is refunded of it earns the new one nothing', async (t) => {
    const half = await shop.sale({ partner_id: ada.id });
    await shop.refund(half, { amount_minor: 5_000 });
    await give(half, bob);
    t.match(await shop.commissionsOf(half), [{ partner_id: bob.id, amount_minor: 1_500 }]);
  });
});

t.test('the link that the customer came by pays its own partner, by whatever way the sale came to them', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ rate_value: 1_000 });
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const link = await shop.link(ada, { rate_override: { rate_type: 'percent', rate_value: 5_000 } });
  const came = async (fields: Json = {}) =>
    (await shop.customer({ click_id: (await shop.click(ada, { value: link.value })).id, ...fields })).id;
  const give = ({ id }: Json, { id: partner_id }: Json) => shop.merchant.patch(`/v1/sales/${id}`, { partner_id });
  const earned = async (sale: Json) => (await shop.commissionsOf(sale)).map(({ amount_minor }) => amount_minor);

  const sale = await shop.sale({ customer_id: await came() });
  t.match(await give(sale, bob), { link_id: null, referral_id: null });
  t.same(await earned(sale), [1_000]);
  t.match(await give(sale, ada), { link_id: link.id, referral_id: sale.referral_id });
  t.same(await earned(sale), [5_000], 'given back');

  const coupon = await shop.coupon({ partner_id: ada.id });
  const external_customer_id = fresh('customer');
  const customer_id = await came({ external_customer_id });
  const used = { coupon_external_id: coupon.external_id, customer: { external_customer_id } };
  t.match(await shop.sale(used), { customer_id, link_id: link.id, coupon_id: coupon.id });
  await shop.merchant.patch(`/v1/customers/${customer_id}`, { partner_id: bob.id });
  t.match(await shop.sale({ customer_id }), { partner_id: bob.id, link_id: null });
  await shop.merchant.patch(`/v1/customers/${customer_id}`, { partner_id: ada.id });
  t.match(await shop.sale({ customer_id }), { link_id: link.id, commissions: [{ amount_minor: 5_000 }] });
});

t.test('a sale that nobody had brought is told as made when it is given to a partner', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const { id: partner_id } = await shop.partner();
  const sale = await shop.sale();
  await shop.events();
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id });
  t.match(await shop.events(), [
    { type: 'sale.created', data: { sale_id: sale.id, partner_id, amount_minor: 10_000 } },
    { type: 'commission.created', data: { sale_id: sale.id, amount_minor: 2_000 } },
  ]);
});

t.test('a sale that was refunded whole earns nothing where it is given, and tells of no money', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const sale = await shop.refund(await shop.sale({ partner_id: ada.id }));
  await shop.events();
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id: bob.id });
  t.same(types(await shop.events()), ['sale.updated']);
});

t.test('a partner who gets a sale back while no rule pays earns by it once one does', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ min_sale_minor: 5_000 });
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const sale = await shop.sale({ partner_id: bob.id });
  const correct = (fields: Json) => shop.merchant.patch(`/v1/sales/${sale.id}`, fields);
  await correct({ partner_id: ada.id });
  await correct({ amount_minor: 4_000 });
  await correct({ partner_id: bob.id });
  await correct({ amount_minor: 10_000 });
  t.match(await shop.commissionsOf(sale), [{ partner_id: bob.id, amount_minor: 2_000 }]);
});

t.test('a customer whose partner was deleted stays the customer, and no sale is the first again', async (t) => {
  const shop = await openShop(rail);
  await shop.rule({ rate_value: 5_000, applies_to: 'first' });
  await shop.rule({ rate_value: 1_000, applies_to: 'renewals' });
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const { id: customer_id } = await shop.customer({ partner_id: ada.id });
  await shop.sale({ customer_id });
  await shop.merchant.delete(`/v1/partners/${ada.id}`);
  const renewal = await shop.sale({ customer_id });
  t.match(renewal, {
    customer_id,
    partner_id: null,
    is_first_sale: false,
    commissions: [],
    warnings: [{ code: 'no_partner_attributed' }],
  });
  await shop.merchant.patch(`/v1/sales/${renewal.id}`, { partner_id: bob.id });
  t.match(await shop.commissionsOf(renewal), [{ amount_minor: 1_000 }]);
});

t.test('a click names the customer who signed up by it, also when the partner was deleted since', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const { id: click_id } = await shop.click(ada);
  const { id: customer_id } = await shop.customer({ click_id });
  await shop.merchant.delete(`/v1/partners/${ada.id}`);
  await shop.events();
  t.match(await shop.sale({ click_id }), { customer_id, partner_id: null, is_first_sale: true });
  t.same(types(await shop.events()), [], 'what nobody brought tells nothing');
  await shop.merchant.patch(`/v1/customers/${customer_id}`, { partner_id: bob.id });
  t.match(await shop.sale({ click_id }), { customer_id, partner_id: bob.id, is_first_sale: false });
});

t.test('a sale that is told when it is given to a partner tells what was refunded of it, too', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const { id: partner_id } = await shop.partner();
  const sale = await shop.refund(await shop.sale(), { amount_minor: 4_000 });
  await shop.events();
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id });
  t.match(await shop.events(), [
    { type: 'sale.created', data: { amount_minor: 10_000 } },
    { type: 'sale.refunded', data: { amount_minor: 4_000, refunded_at: sale.refunded_at } },
    { type: 'commission.created', data: { amount_minor: 1_200 } },
  ]);
});

t.test('the first sale says the subscription of a customer who signed up before', async (t) => {
  const shop = await openShop(rail);
  const { id: customer_id } = await shop.customer({ partner_id: (await shop.partner()).id });
  await shop.sale({ customer_id, external_subscription_id: 'sub_1' });
  t.match(await shop.merchant.get(`/v1/customers/${customer_id}`), { external_subscription_id: 'sub_1' });
});

t.test('a deleted sale takes back what partners have who had it before', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const sale = await shop.sale({ partner_id: ada.id });
  await shop.lock(sale.commissions[0]);
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id: bob.id });
  await shop.lock(sale.commissions[0], false);
  await shop.merchant.delete(`/v1/sales/${sale.id}`);
  t.same(await shop.commissionsOf(sale), []);
});

t.test('a deleted sale takes back what it earned: unpaid is deleted, paid is clawed back', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const partner_id = (await shop.partner()).id;
  const [unpaid, paid] = [await shop.sale({ partner_id }), await shop.sale({ partner_id })];
  await shop.pay(paid.commissions[0]);
  await shop.events();
  t.same(await shop.merchant.delete(`/v1/sales/${unpaid.id}`), { id: unpaid.id, object: 'sale', deleted: true });
  t.same(
    (await shop.events()).map(({ type, data }) => ({ type, data })),
    [
      { type: 'sale.deleted', data: { sale_id: unpaid.id, partner_id } },
      { type: 'commission.deleted', data: { commission_id: unpaid.commissions[0].id, partner_id } },
    ],
  );
  await shop.merchant.delete(`/v1/sales/${paid.id}`);
  t.match(await shop.events(), [
    { type: 'sale.deleted' },
    { type: 'commission.created', data: { kind: 'clawback', amount_minor: -2_000, sale_id: paid.id } },
  ]);
  t.equal((await shop.merchant.request('GET', `/v1/sales/${paid.id}`)).status, 404);

  const again = await shop.sale({ partner_id, external_charge_id: unpaid.external_charge_id });
  t.equal(again.activity_outcome, 'commission_created', 'its charge may be recorded again');
});

t.test('a customer first paid by the earliest sale that is not deleted', async (t) => {
  const shop = await openShop(rail);
  const customer = await shop.referred(await shop.partner());
  const [first, second, third] = [
    await shop.sale({ customer_id: customer.id, occurred_at: '2026-03-02T00:00:00Z' }),
    await shop.sale({ customer_id: customer.id, occurred_at: '2026-05-02T00:00:00Z' }),
    await shop.sale({ customer_id: customer.id, occurred_at: '2026-04-02T00:00:00Z' }),
  ];
  const convertedAfter = async ({ id }: Json): Promise<string | null> => {
    await shop.merchant.delete(`/v1/sales/${id}`);
    return (await shop.merchant.get(`/v1/customers/${customer.id}`)).converted_at;
  };
  const window = 'from=2026-03-01T00:00:00Z&to=2026-06-01T00:00:00Z&interval=month&compare=none';
  const counted = async (): Promise<number[]> => {
    const { rows } = await shop.merchant.get(`/v1/reports/overview?program_id=${shop.program_id}&${window}`);
    return rows.map(({ customers }: Json) => customers);
  };
  t.same(await counted(), [1, 0, 0]);
  t.equal(await convertedAfter(first), '2026-04-02T00:00:00.000Z');
  t.same(await counted(), [0, 1, 0]);
  t.equal(await convertedAfter(second), '2026-04-02T00:00:00.000Z');
  t.equal(await convertedAfter(third), null);
  t.notOk((await counted()).some((customers) => customers > 0));
  const again = await shop.sale({ customer_id: customer.id, occurred_at: '2026-05-03T00:00:00Z' });
  t.ok(again.is_first_sale);
  t.same(await counted(), [0, 0, 1]);
});

t.test('a moment that Postgres cannot keep is refused, not failed on', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const partner_id = (await shop.partner()).id;
  for (const occurred_at of ['0000-01-01T00:00:00Z', '0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z']) {
    const body = {
      program_id: shop.program.id,
      partner_id,
      amount_minor: 100,
      currency: 'USD',
      external_charge_id: occurred_at,
    };
    const { status } = await shop.merchant.request('POST', '/v1/sales', { ...body, occurred_at });
    t.ok(status < 500, `${occurred_at} is answered ${status}`);
  }
});

t.test('looks for a charge and for a rare status by an index, however many sales there are', async (t) => {
  const shop = await openShop(rail);
  const { organization_id } = shop.merchant;
  await rail.query(sql`
    insert into program.sale (
      organization_id, id, program_id, external_charge_id, amount_minor, net_amount_minor, currency, is_first_sale, occurred_at, created_at, updated_at
    )
    select ${organization_id}, core.new_id('sale'), ${shop.program_id}, 'many ' || nth, 100, 100, 'USD', false, now(), now(), now()
    from generate_series(1, 10000) as nth`);
  await rail.query(sql`analyze program.sale`);
  const { program_id } = shop;
  const read = await transaction(rail.store, { organization_id, request_id: null }, async (tx) => {
    const rowsRead = async () => {
      const { rows } = await tx.one<{ rows: number }>(sql`
        select (s.seq_tup_read + coalesce(s.idx_tup_fetch, 0))::integer as rows
        from pg_stat_xact_user_tables s
        where s.relid = 'program.sale'::regclass`);
      return rows;
    };
    // Rows of earlier transactions in the same session count too.
    const before = await rowsRead();
    const of_charge = sql`t.organization_id = ${organization_id} and t.program_id = ${program_id} and t.external_charge_id = 'none'`;
    t.equal(await sales.find(tx, of_charge), undefined);
    const page = await list(saleList).page(tx, { program_id, external_charge_id: 'none', expand: [], include: [] }, []);
    t.same(page, { data: [], has_more: false, total_count: 0 });
    // So often that Postgres plans once for all values, where it may.
    for (let nth = 0; nth < 8; nth++) {
      const refunded = await list(saleList).page(tx, { program_id, status: 'refunded', expand: [], include: [] }, []);
      t.equal(refunded.total_count, 0);
    }
    return (await rowsRead()) - before;
  });
  t.equal(read, 0);
  const charge = (nth: number) => `/v1/sales?program_id=${program_id}&external_charge_id=many ${nth}`;
  t.match(await shop.merchant.get(charge(7)), { data: [{ external_charge_id: 'many 7' }], total_count: 1 });
});
