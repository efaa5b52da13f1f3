import t from 'tap';
import { type Json, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';

const rail = await startRail();

const send = (shop: Shop, fields: Json) =>
  shop.merchant.request('POST', '/v1/sales', {
    ...{ program_id: shop.program_id, amount_minor: 10_000, currency: 'USD', external_charge_id: fresh('charge') },
    ...fields,
  });

t.test('a sale names its customer, click, coupon and partner at once, in their order of precedence', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const [ada, bob, eve] = [await shop.partner(), await shop.partner(), await shop.partner()];
  const { external_id: coupon_external_id } = await shop.coupon({ partner_id: bob.id });
  const click_id = async () => (await shop.click(eve)).id;
  const paid = async (fields: Json) => {
    const { status, body } = await send(shop, fields);
    t.equal(status, 201, JSON.stringify(body));
    return body;
  };

  t.test('the explicit partner before all, whose customer is recorded', async (t) => {
    const external_customer_id = fresh('cus');
    const named = { external_customer_id, coupon_external_id, click_id: await click_id(), partner_id: ada.id };
    const sale = await paid({ ...named, customer: { email: 'one@customer.example.com' } });
    t.match(sale, { partner_id: ada.id, coupon_id: null, referral_id: null });
    t.match(await shop.merchant.get(`/v1/customers/${sale.customer_id}`), {
      external_customer_id,
      email: 'one@customer.example.com',
      partner_id: ada.id,
      tracked_by: 'api',
    });
    t.match(await paid({ ...named, partner_id: undefined }), { partner_id: ada.id, is_first_sale: false });
  });

  t.test('on the first sale the coupon, also of a customer who is known', async (t) => {
    const known = await shop.customer({ partner_id: ada.id, external_customer_id: fresh('cus') });
    const { id: customer_id, external_customer_id } = known;
    const sale = await paid({ customer_id, external_customer_id, coupon_external_id, click_id: await click_id() });
    t.match(sale, { customer_id, partner_id: bob.id });
    t.match(await shop.merchant.get(`/v1/customers/${customer_id}`), { partner_id: bob.id, tracked_by: 'coupon' });
  });

  t.test('a charge with an unknown customer and a coupon records the customer by the coupon', async (t) => {
    const external_customer_id = fresh('cus');
    const sale = await paid({ external_customer_id, customer: { name: 'Grace' }, coupon_external_id });
    t.match(sale, { partner_id: bob.id });
    t.match(await shop.list('customers', `external_customer_id=${external_customer_id}`), [
      { id: sale.customer_id, name: 'Grace', tracked_by: 'coupon' },
    ]);
  });

  t.test('the partner of the customer, where that of the coupon is suspended', async (t) => {
    const suspended = await shop.partner();
    const { external_id } = await shop.coupon({ partner_id: suspended.id });
    await shop.merchant.patch(`/v1/partners/${suspended.id}`, { status: 'suspended' });
    const { id: customer_id } = await shop.customer({ partner_id: ada.id });
    const sale = await paid({ customer_id, coupon_external_id: external_id });
    t.match(sale, { partner_id: ada.id, coupon_id: null, commissions: [{ partner_id: ada.id, amount_minor: 2_000 }] });
    t.match(await shop.merchant.get(`/v1/customers/${customer_id}`), { partner_id: ada.id, coupon_id: null });
    t.match(await paid({ coupon_external_id: external_id, customer: { email: 'new@customer.example.com' } }), {
      partner_id: null,
      warnings: [{ code: 'no_partner_attributed' }],
    });
  });

  for (const [what, winner] of Object.entries({
    'the coupon of another partner': { coupon_external_id },
    'another partner': { partner_id: bob.id },
  })) {
    t.test(`a click and ${what}: the next sale by the click is of the same customer`, async (t) => {
      await shop.events();
      const click = await click_id();
      const first = await paid({ ...winner, click_id: click });
      t.match(first, { partner_id: bob.id, is_first_sale: true, referral_id: null });
      t.ok(first.customer_id);
      const again = await paid({ click_id: click });
      t.match(again, { partner_id: bob.id, customer_id: first.customer_id, is_first_sale: false });
      t.match(await shop.commissionsOf(again), [{ partner_id: bob.id, amount_minor: 2_000 }]);
      const referral = (await shop.events()).filter(({ type }) => /^referral\.(lead|converted)$/.test(type));
      t.same(
        referral.map(({ type, partner_id }) => [type, partner_id]),
        [
          ['referral.lead', eve.id],
          ['referral.converted', eve.id],
        ],
        'the referral stays that of the partner of the click',
      );
    });
  }

  t.test('the partner of the customer, whoever the click belongs to', async (t) => {
    const { id: customer_id } = await shop.customer({ partner_id: ada.id });
    t.match(await paid({ customer_id, click_id: await click_id() }), { partner_id: ada.id, referral_id: null });
  });

  t.test('the click, whose visitor becomes the customer that is described', async (t) => {
    const external_customer_id = fresh('cus');
    const sale = await paid({ external_customer_id, click_id: await click_id(), coupon_external_id: 'unknown' });
    t.match(sale, { partner_id: eve.id, referral_id: String });
    t.match(await shop.merchant.get(`/v1/customers/${sale.customer_id}`), { external_customer_id, tracked_by: 'link' });
  });

  t.test('a click and a coupon of one partner: the customer came by the click, and its link', async (t) => {
    const link = await shop.link(bob, { rate_override: { rate_type: 'percent', rate_value: 5_000 } });
    const { id } = await shop.click(bob, { value: link.value });
    const sale = await paid({ click_id: id, coupon_external_id, customer: { name: 'Grace' } });
    t.match(sale, { partner_id: bob.id, link_id: link.id, coupon_id: String, commissions: [{ amount_minor: 5_000 }] });
    t.match(await shop.merchant.get(`/v1/customers/${sale.customer_id}`), { tracked_by: 'coupon', link_id: link.id });
    t.match(await shop.merchant.get(`/v1/referrals/${sale.referral_id}`), { status: 'converted' });
  });
});

t.test('what a sale says of a customer who is known adds what is missing', async (t) => {
  const shop = await openShop(rail);
  const { id: partner_id } = await shop.partner();
  const { id: customer_id } = await shop.merchant.post('/v1/customers', { program_id: shop.program_id, partner_id });
  const external_customer_id = fresh('cus');
  const customer = { email: 'grace@customer.example.com', name: 'Grace', identifier: 'user_1' };
  t.match(await send(shop, { customer_id, external_customer_id, customer }), { status: 201 });
  t.match(await shop.merchant.get(`/v1/customers/${customer_id}`), { ...customer, external_customer_id });
  t.match(await send(shop, { external_customer_id, customer: { ...customer, name: 'Grace H.' } }), {
    status: 201,
    body: { customer_id },
  });
  t.match(await shop.merchant.get(`/v1/customers/${customer_id}`), { name: 'Grace' }, 'a name identifies nobody');
  const again = { external_customer_id, customer: { email: 'Grace@Customer.example.com' } };
  t.match(await send(shop, again), { status: 201, body: { customer_id } }, 'letter case is no contradiction');
});

t.test('a click gives its customer the id of the processor, unless they have another', async (t) => {
  const shop = await openShop(rail);
  const { id: click_id } = await shop.click(await shop.partner());
  const { id: customer_id } = await shop.customer({ click_id });
  const [first, second] = [fresh('cus'), fresh('cus')];
  t.match(await send(shop, { click_id, external_customer_id: first }), { status: 201, body: { customer_id } });
  t.match(await shop.merchant.get(`/v1/customers/${customer_id}`), { external_customer_id: first });
  const other = (await send(shop, { click_id, external_customer_id: second })).body;
  t.not(other.customer_id, customer_id);
  t.match(await shop.merchant.get(`/v1/customers/${other.customer_id}`), { external_customer_id: second });
  t.match(other, { is_first_sale: true });
});

t.test('a click identifies nobody: other details are those of another customer by the same referral', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const { id: partner_id, handle } = await shop.partner();
  const { id: click_id } = await shop.click({ handle });
  const { id: customer_id, email, referral_id } = await shop.customer({ click_id, identifier: 'user_1' });
  const customer = { email: 'billing@customer.example.com' };
  const { status, body: other } = await send(shop, { click_id, customer });
  t.match([status, other], [201, { partner_id, referral_id, commissions: [{ amount_minor: 2_000 }] }]);
  t.not(other.customer_id, customer_id);
  const again = { click_id, customer: { email: 'Billing@customer.example.com' } };
  t.match(await send(shop, again), { status: 201, body: { customer_id: other.customer_id, is_first_sale: false } });
  t.match(await send(shop, { click_id, customer: { email: email.toUpperCase() } }), { body: { customer_id } });
  t.not((await send(shop, { click_id, customer: { email, identifier: 'user_2' } })).body.customer_id, customer_id);
});

t.test('contradictory identities are refused, and name the field', async (t) => {
  const shop = await openShop(rail);
  const { id: partner_id } = await shop.partner();
  const one = await shop.customer({ partner_id, external_customer_id: fresh('cus'), identifier: 'user_1' });
  const other = await shop.customer({ partner_id, external_customer_id: fresh('cus') });
  const { id: customer_id, external_customer_id } = one;
  const elsewhere = other.external_customer_id;
  const cases: [param: string, fields: Json][] = [
    ['external_customer_id', { customer_id, external_customer_id: elsewhere }],
    ['external_customer_id', { customer_id, external_customer_id: 'cus_new' }],
    ['customer.external_customer_id', { customer_id, customer: { external_customer_id: elsewhere } }],
    ['customer.external_customer_id', { customer_id, customer: { external_customer_id: 'cus_new' } }],
    ['customer.external_customer_id', { external_customer_id, customer: { external_customer_id: elsewhere } }],
    ['customer.email', { customer_id, customer: { email: other.email } }],
    ['customer.email', { external_customer_id, customer: { email: 'new@customer.example.com' } }],
    ['customer.identifier', { external_customer_id, customer: { identifier: 'user_2' } }],
  ];
  for (const [param, fields] of cases) {
    t.match(await send(shop, fields), { status: 400, body: { error: { code: 'invalid_parameter', param } } }, param);
  }
  t.same(await shop.list('sales'), []);
  t.match(await send(shop, { customer_id, click_id: 'clk_x' }), {
    status: 404,
    body: { error: { param: 'click_id' } },
  });
  t.match(await send(shop, { customer_id: 'cus_x', external_customer_id }), {
    status: 404,
    body: { error: { param: 'customer_id' } },
  });
});
