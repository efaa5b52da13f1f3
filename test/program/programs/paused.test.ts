import t from 'tap';
import { eventually, type Json, log, sql, startRail, startWorker } from '../../harness.ts';
import { fresh, openShop, type Shop, types } from '../../shop.ts';

const rail = await startRail({ worker: false });

/** Lets the jobs run that are left. */
async function attributed(): Promise<void> {
  const worker = startWorker({ url: rail.url, store: rail.store, services: rail.services, concurrency: 4, log });
  const left = sql`select 1 from program.click where attributed_at is null`;
  await eventually(async () => (await rail.query(left)).length === 0, 'all clicks to be attributed');
  await worker.stop();
}

const set = (shop: Shop, status: string) => shop.merchant.patch(`/v1/programs/${shop.program_id}`, { status });
const signUp = (shop: Shop, click: Json, fields: Json = {}) =>
  shop.merchant.request('POST', '/v1/customers', { program_id: shop.program_id, click_id: click.id, ...fields });
const without_credit = {
  status: 409,
  body: { error: { type: 'conflict_error', code: 'click_without_credit', param: 'click_id' } },
};

t.test('a paused program takes no applications', async (t) => {
  const shop = await openShop(rail, { status: 'paused' });
  const { merchant, program_id } = shop;
  const apply = (email: string) => merchant.request('POST', '/v1/applications', { program_id, email });
  t.match(await apply('ada@partner.example.com'), {
    status: 409,
    body: { error: { code: 'invalid_state_transition', message: /paused/ } },
  });
  t.same(types(await shop.events()), []);
  t.same(await shop.list('partners'), []);

  await t.test('but its merchant adds partners and decides applications', async (t) => {
    const pending = await shop.partner({ status: 'pending' });
    const [application] = (await shop.list('applications', `partner_id=${pending.id}`)) as [Json];
    t.match(await merchant.post(`/v1/applications/${application.id}/approve`), { status: 'approved' });
  });

  await set(shop, 'active');
  t.match(await apply('ada@partner.example.com'), { status: 201 });
});

t.test(
  'a click made while the program is paused is recorded and earns no credit, also once it is active',
  async (t) => {
    const shop = await openShop(rail);
    await shop.rule();
    const partner = await shop.partner();
    const link = await shop.link(partner);
    const visitor_token = fresh('visitor');
    await set(shop, 'paused');
    const [pending, settled] = [await shop.click(partner), await shop.click(partner, { visitor_token })];
    await fetch(`${rail.address}/r/${link.short_slug}`, {
      redirect: 'manual',
      headers: { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0' },
    });
    const [by_short_link] = (await shop.list('clicks', `link_id=${link.id}`)) as [Json];
    t.match(await signUp(shop, settled), without_credit);
    await set(shop, 'active');
    for (const click of [settled, pending, by_short_link]) t.match(await signUp(shop, click), without_credit);
    await attributed();
    for (const click of [settled, pending, by_short_link]) {
      t.match(await signUp(shop, click), without_credit);
      t.match(await shop.sale({ click_id: click.id }), { partner_id: null, commissions: [] });
    }
    t.same(await shop.list('referrals'), []);
    t.match(
      await signUp(shop, await shop.click(partner, { visitor_token })),
      { status: 201 },
      'a new click earns credit',
    );
  },
);

t.test('a click made before the program was paused keeps its credit', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  const click = await shop.click(partner);
  await set(shop, 'paused');
  t.match(await signUp(shop, click), { status: 201, body: { partner_id: partner.id } });
});

t.test('a click made while the program is paused does not renew or move a referral', async (t) => {
  const shop = await openShop(rail);
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const visitor_token = fresh('visitor');
  await shop.click(ada, { visitor_token });
  await attributed();
  const [before] = await shop.list('referrals');
  await set(shop, 'paused');
  await shop.click(ada, { visitor_token });
  await shop.click(bob, { visitor_token });
  await attributed();
  t.same(await shop.list('referrals'), [before]);
});

t.test('the coupons of a paused program bring no customers, and customers of before go on earning', async (t) => {
  const shop = await openShop(rail, { auto_enrol_customers: true });
  await shop.rule();
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const [lead, payer] = [await shop.referred(ada), await shop.referred(ada)];
  await shop.sale({ customer_id: payer.id });
  const coupon = await shop.coupon({ partner_id: bob.id });
  await set(shop, 'paused');
  const by_coupon = { coupon_external_id: coupon.external_id };
  t.match(await shop.sale({ ...by_coupon, customer: { email: `${fresh('new')}@customer.example.com` } }), {
    customer_id: null,
    partner_id: null,
    warnings: [{ code: 'no_partner_attributed' }],
  });
  t.match(await shop.sale({ customer_id: payer.id }), { partner_id: ada.id, commissions: [{ amount_minor: 2000 }] });
  await shop.events();
  t.match(await shop.sale({ customer_id: lead.id }), { partner_id: ada.id, is_first_sale: true });
  t.notOk(
    types(await shop.events()).includes('customer.enrolled_as_partner'),
    'nobody joins a paused program by a sale',
  );
  await set(shop, 'active');
  t.match(await shop.sale({ ...by_coupon, customer: { email: `${fresh('new')}@customer.example.com` } }), {
    partner_id: bob.id,
  });
});
