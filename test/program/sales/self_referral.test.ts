import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop, types } from '../../shop.ts';

const rail = await startRail();

const own_email = 'ada.lovelace@example.com';
const disguised = 'AdaLovelace+shop@example.com';
const nobody = {
  partner_id: null,
  link_id: null,
  referral_id: null,
  coupon_id: null,
  activity_outcome: 'sale_recorded',
  commissions: [],
  warnings: [{ code: 'no_partner_attributed' }],
};

/** The address as carts and forms write it, also where it cannot be kept so. */
const written = [
  ...[`${own_email}.`, `"ada.lovelace"@example.com`, `<${own_email}>`, `mailto:${own_email}`, `${own_email},`],
  ...[`ａda.lovelace@example.com`, `ada\u200blovelace@example.com`, `Ada <${own_email}>`, 'ada.lovelace @example.com'],
];

t.test('an address is the partner’s own however it is written', async (t) => {
  const { shop, ada } = await openWithAda();
  for (const email of written) {
    const sale = await shop.sale({ partner_id: ada.id, customer: { email } });
    t.match(sale, { activity_outcome: 'sale_recorded', commissions: [] }, email);
    const { id: click_id } = await shop.click(ada);
    const body = { program_id: shop.program_id, click_id, email };
    const refused = await shop.merchant.request('POST', '/v1/customers', body);
    t.match(refused.body, { error: { code: 'self_referral' } }, email);
  }
  const other = await shop.sale({ partner_id: ada.id, customer: { email: 'Eve <eve@example.com>' } });
  t.equal(other.activity_outcome, 'commission_created');
});

async function openWithAda(settings: Json = {}): Promise<{ shop: Shop; ada: Json }> {
  const shop = await openShop(rail, settings);
  await shop.rule();
  return { shop, ada: await shop.partner({ email: own_email }) };
}

const flags = (shop: Shop) => shop.list('risk_flags', 'kind=self_referral');

t.test('no route pays a partner for their own purchase: the sale is recorded and earns nobody', async (t) => {
  const routes: Record<string, (shop: Shop, ada: Json) => Promise<Json>> = {
    click: async (shop, ada) => ({ click_id: (await shop.click(ada)).id, customer: { email: disguised } }),
    coupon: async (shop, ada) => ({
      coupon_external_id: (await shop.coupon({ partner_id: ada.id })).external_id,
      customer: { email: disguised },
    }),
    'coupon of a known customer': async (shop, ada) => {
      const { id: customer_id } = await shop.customer({ partner_id: (await shop.partner()).id, email: disguised });
      return { coupon_external_id: (await shop.coupon({ partner_id: ada.id })).external_id, customer_id };
    },
    customer: async (shop, ada) => ({
      customer_id: (await shop.customer({ partner_id: ada.id, email: disguised })).id,
    }),
    'customer who says the email only now': async (shop, ada) => ({
      customer_id: (await shop.customer({ partner_id: ada.id, email: undefined })).id,
      customer: { email: disguised },
    }),
    'explicit partner': async (_, ada) => ({ partner_id: ada.id, customer: { email: disguised } }),
    'explicit partner of a known customer': async (shop, ada) => ({
      partner_id: ada.id,
      customer_id: (await shop.customer({ partner_id: (await shop.partner()).id, email: disguised })).id,
    }),
  };
  for (const [route, claimOf] of Object.entries(routes)) {
    await t.test(route, async (t) => {
      const { shop, ada } = await openWithAda();
      const claim = await claimOf(shop, ada);
      await eventually(async () => (await pendingJobs()) === 0, 'the checks of the customer');
      await shop.events();
      const sale = await shop.sale({ ...claim, external_charge_id: 'ch_own' });
      t.match(sale, nobody);
      t.match(sale.warnings, [{ message: /own purchase/ }]);
      const { customer_id = null } = claim;
      t.equal(sale.customer_id, customer_id, 'a customer who is known stays the customer');
      const told = types(await shop.events()).filter((type) =>
        /^(sale|commission|referral\.(lead|converted))/.test(type),
      );
      t.same(told, [], 'no event of a sale');
      t.match(await flags(shop), [{ partner_id: ada.id, customer_id, kind: 'self_referral', severity: 'high' }]);
      if (customer_id === null) t.same(await shop.list('customers'), []);

      const again = await shop.merchant.request('POST', '/v1/sales', {
        ...{ program_id: shop.program_id, amount_minor: 10_000, currency: 'USD' },
        ...{ ...claim, external_charge_id: 'ch_own' },
      });
      t.match(again, { status: 409, body: { error: { code: 'resource_already_exists' }, existing: { id: sale.id } } });

      t.not((await shop.sale(claim)).partner_id, ada.id, 'nor does the next one pay them');
      t.equal((await flags(shop)).length, 1, 'one flag is enough');

      const given = await shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id: ada.id });
      t.match(given, { partner_id: ada.id }, 'it can be given to the partner by hand');
      t.same(await shop.commissionsOf(sale), [], 'who earns nothing by it');
      await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 20_000 });
      t.same(await shop.commissionsOf(sale), [], 'nor by a correction');
      t.equal((await flags(shop)).length, 1);

      const { id: partner_id } = await shop.partner();
      await shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id });
      t.match(await shop.commissionsOf(sale), [{ partner_id, amount_minor: 4_000 }], 'somebody else earns by it');
    });
  }
});

t.test('a program that allows self-referrals pays them, also sales that it recorded before', async (t) => {
  const { shop, ada } = await openWithAda();
  const sale = await shop.sale({ partner_id: ada.id, customer: { email: own_email } });
  await shop.merchant.patch(`/v1/programs/${shop.program_id}`, { block_self_referrals: false });
  t.match(await shop.sale({ partner_id: ada.id, customer: { email: own_email } }), { partner_id: ada.id });
  await shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id: ada.id });
  t.match(await shop.commissionsOf(sale), [{ partner_id: ada.id, amount_minor: 2_000 }]);
});

t.test('a click from the own browser of the partner earns nothing, also beside an explicit partner', async (t) => {
  const { shop, ada } = await openWithAda();
  const browser = { ip: '203.0.113.20', user_agent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0' };
  const click = async () => (await shop.click(ada, browser)).id;
  t.match(await shop.sale({ click_id: await click(), customer: { email: own_email } }), nobody);
  t.match(await shop.sale({ click_id: await click(), customer: { email: 'x@customer.example.com' } }), nobody);
  t.match(await shop.sale({ click_id: await click(), partner_id: ada.id }), nobody);
  t.match(await shop.list('risk_flags'), [{ evidence: { matched: 'email' } }]);
  t.same(await shop.list('customers'), []);
});

t.test("the partner's own browser earns nothing, whichever customer the sale names beside its click", async (t) => {
  const browser = { ip: '203.0.113.21', user_agent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0' };
  const identifications: Record<string, (shop: Shop, ada: Json) => Promise<Json>> = {
    'by id': async (shop, ada) => ({ customer_id: (await shop.customer({ partner_id: ada.id })).id }),
    "by the processor's id": async (shop, ada) => {
      const external_customer_id = fresh('cus');
      await shop.customer({ partner_id: ada.id, external_customer_id });
      return { external_customer_id };
    },
    'by another click': async (shop, ada) => ({ customer_id: (await shop.referred(ada)).id }),
    'and a coupon': async (shop, ada) => ({
      customer_id: (await shop.customer({ partner_id: (await shop.partner()).id })).id,
      coupon_external_id: (await shop.coupon({ partner_id: ada.id })).external_id,
    }),
    'and the partner': async (shop, ada) => ({
      customer_id: (await shop.customer({ partner_id: (await shop.partner()).id })).id,
      partner_id: ada.id,
    }),
  };
  for (const [how, claimOf] of Object.entries(identifications)) {
    await t.test(how, async (t) => {
      const { shop, ada } = await openWithAda();
      const sign_up = { program_id: shop.program_id, email: own_email };
      const { id: own_click } = await shop.click(ada, browser);
      await shop.merchant.request('POST', '/v1/customers', { ...sign_up, click_id: own_click });
      await shop.merchant.post(`/v1/risk_flags/${(await flags(shop))[0]?.id}/resolve`, {
        ...{ resolution: 'dismissed', note: 'Looked at.' },
      });
      const claim = await claimOf(shop, ada);
      const sale = await shop.sale({ ...claim, click_id: (await shop.click(ada, browser)).id });
      t.match(sale, nobody);
      t.match(await shop.list('risk_flags', 'status=open'), [
        { partner_id: ada.id, customer_id: sale.customer_id, evidence: { matched: 'browser', sale_id: sale.id } },
      ]);
      const stranger = await shop.sale({ ...claim, click_id: (await shop.click(ada, { ip: '203.0.113.99' })).id });
      t.match(stranger, { partner_id: how === 'and a coupon' ? String : ada.id }, 'another browser is paid');
    });
  }
});

t.test('a click whose referral ended as a self-referral earns nothing by any sale', async (t) => {
  const { shop, ada } = await openWithAda();
  const { id: click_id } = await shop.click(ada);
  const sign_up = { program_id: shop.program_id, click_id, email: own_email };
  t.equal((await shop.merchant.request('POST', '/v1/customers', sign_up)).body.error.code, 'self_referral');
  for (const claim of [{ click_id }, { click_id, partner_id: ada.id }]) {
    const sale = await shop.sale(claim);
    t.match(sale, nobody);
    await shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id: ada.id });
    t.same(await shop.commissionsOf(sale), []);
  }
});

t.test('a correction that makes it a self-referral is done, and nothing is earned from then on', async (t) => {
  await t.test('of the email of the customer', async (t) => {
    const { shop, ada } = await openWithAda();
    const { id: customer_id } = await shop.customer({ partner_id: ada.id });
    const before = await shop.sale({ customer_id });
    await shop.merchant.patch(`/v1/customers/${customer_id}`, { email: disguised });
    t.match(await shop.sale({ customer_id }), { ...nobody, customer_id });
    t.match(await flags(shop), [{ partner_id: ada.id, customer_id }]);
    t.match(await shop.commissionsOf(before), [{ amount_minor: 2_000 }], 'what was earned before stays');
  });

  await t.test('of the partner of the customer', async (t) => {
    const { shop, ada } = await openWithAda();
    const { id: customer_id } = await shop.customer({ partner_id: (await shop.partner()).id, email: own_email });
    t.match(await shop.sale({ customer_id }), { activity_outcome: 'commission_created' });
    await shop.merchant.patch(`/v1/customers/${customer_id}`, { partner_id: ada.id });
    t.match(await shop.sale({ customer_id }), { ...nobody, customer_id });
    t.match(await flags(shop), [{ partner_id: ada.id, customer_id }]);
  });

  await t.test('of the partner of the sale', async (t) => {
    const { shop, ada } = await openWithAda();
    const { id: bob } = await shop.partner();
    const { id: customer_id } = await shop.customer({ partner_id: bob, email: own_email });
    const sale = await shop.sale({ customer_id });
    await shop.events();
    t.match(await shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id: ada.id }), { partner_id: ada.id });
    t.match(await shop.events(), [
      { type: 'sale.updated', data: { partner_id: ada.id } },
      { type: 'commission.deleted', data: { partner_id: bob } },
      { type: 'risk_flag.created', data: { partner_id: ada.id, customer_id, kind: 'self_referral' } },
    ]);
    t.same(await shop.commissionsOf(sale), []);
  });

  await t.test('and a partner who earned by the sale before is not paid again when it comes back', async (t) => {
    const { shop, ada } = await openWithAda();
    const { id: bob } = await shop.partner();
    const { id: customer_id } = await shop.customer({ partner_id: ada.id });
    const sale = await shop.sale({ customer_id });
    await shop.pay(sale.commissions[0]);
    const give = (partner_id: string) => shop.merchant.patch(`/v1/sales/${sale.id}`, { partner_id });
    await give(bob);
    await shop.merchant.patch(`/v1/customers/${customer_id}`, { email: own_email });
    await give(ada.id);
    const total = async () => (await shop.commissionsOf(sale)).reduce((sum, { amount_minor }) => sum + amount_minor, 0);
    t.equal(await total(), 0);
    await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 30_000 });
    await shop.refund(sale, { amount_minor: 1_000 });
    t.equal(await total(), 0, 'nor by what follows');
  });
});

/** Jobs that are not done, of whatever kind. */
async function pendingJobs(): Promise<number> {
  const [row] = await rail.query<{ jobs: number }>(sql`
    select count(*)::integer as jobs from graphile_worker.jobs where task_identifier = 'program/assess_risk'`);
  return row?.jobs ?? 0;
}

t.test('a sale of a stranger is paid as ever', async (t) => {
  const { shop, ada } = await openWithAda();
  const sale = await shop.sale({ partner_id: ada.id, customer: { external_customer_id: fresh('stranger') } });
  t.match(sale, { partner_id: ada.id, activity_outcome: 'commission_created' });
});
