import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, types } from '../../shop.ts';

const rail = await startRail();

t.test('a sign-up through a click makes the visitor a lead, and emits referral.lead once', async (t) => {
  const shop = await openShop(rail);
  const link = await shop.link(await shop.partner());
  await shop.events();
  const click = await shop.click({}, { value: link.value });
  const customer = await shop.customer({ click_id: click.id, email: 'grace@customer.example.com' });
  t.match(customer, {
    partner_id: link.partner_id,
    link_id: link.id,
    status: 'lead',
    tracked_by: 'link',
    lead_at: String,
  });
  const events = (await shop.events()).map(({ type, data }) => ({ type, data }));
  const { referral_id } = customer;
  const { expires_at } = await shop.merchant.get(`/v1/referrals/${referral_id}`);
  t.same(events, [
    {
      type: 'referral.created',
      data: {
        referral_id,
        partner_id: link.partner_id,
        link_id: link.id,
        landing_url: click.landing_url,
        tracked_by: 'link',
        expires_at,
      },
    },
    {
      type: 'referral.lead',
      data: {
        referral_id,
        customer_id: customer.id,
        partner_id: link.partner_id,
        email: 'grace@customer.example.com',
        tracked_by: 'link',
      },
    },
  ]);
  t.equal(Date.parse(expires_at) - Date.parse(click.created_at), 60 * 86_400_000);
  await shop.customer({ click_id: click.id });
  t.same(await shop.events(), [], 'a second customer of the visitor is no second lead');
});

t.test('a customer needs one of click and partner, which must be the program’s', async (t) => {
  const [shop, other] = [await openShop(rail), await openShop(rail)];
  const partner = await shop.partner();
  const stranger = await other.click(await other.partner());
  const create = (fields: Json) =>
    shop.merchant.request('POST', '/v1/customers', { program_id: shop.program.id, ...fields });
  t.match(await create({ email: 'a@example.com' }), { status: 400, body: { error: { param: 'click_id' } } });
  const both = { partner_id: partner.id, click_id: (await shop.click(partner)).id };
  t.match(await create(both), { status: 400, body: { error: { param: 'click_id' } } });
  t.match(await create({ click_id: stranger.id }), { status: 404, body: { error: { param: 'click_id' } } });
  t.match(await create({ partner_id: 'part_unknown' }), { status: 404, body: { error: { param: 'partner_id' } } });
  t.match(await create({ partner_id: partner.id, status: 'refunded' }), {
    status: 400,
    body: { error: { param: 'status' } },
  });
  t.match(await create({ partner_id: partner.id }), { status: 201, body: { tracked_by: 'api', referral_id: null } });
});

t.test('the external customer id is unique in the program', async (t) => {
  const shop = await openShop(rail);
  const { id: partner_id } = await shop.partner();
  const external_customer_id = fresh('cus');
  const first = await shop.customer({ partner_id, external_customer_id });
  const again = { program_id: shop.program.id, partner_id, external_customer_id };
  t.match(await shop.merchant.request('POST', '/v1/customers', again), {
    status: 409,
    body: { error: { code: 'resource_already_exists', param: 'external_customer_id' }, existing: { id: first.id } },
  });
});

t.test('a customer moved to another partner is tracked by manual', async (t) => {
  const shop = await openShop(rail);
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const customer = await shop.referred(ada);
  const patch = (body: Json) => shop.merchant.patch(`/v1/customers/${customer.id}`, body);
  t.match(await patch({ partner_id: ada.id }), { tracked_by: 'link' }, 'the same partner is no change');
  const moved = { partner_id: bob.id, tracked_by: 'manual', status: 'lead', referral_id: customer.referral_id };
  t.match(await patch({ partner_id: bob.id }), moved);
  t.match(await shop.sale({ customer_id: customer.id }), { partner_id: bob.id });
});

t.test('a click that is expired, by a bot or from a blocked country earns no credit', async (t) => {
  const shop = await openShop(rail, { blocked_countries: ['KP'], cookie_days: 30 });
  const partner = await shop.partner();
  const create = ({ id }: Json) =>
    shop.merchant.request('POST', '/v1/customers', { program_id: shop.program.id, click_id: id });
  const expired = await shop.click(partner);
  await rail.query(sql`update program.click set created_at = now() - interval '30 days' where id = ${expired.id}`);
  t.match(await create(expired), { status: 409, body: { error: { code: 'click_expired', param: 'click_id' } } });
  const robot = await shop.click(partner, {
    user_agent: 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
  });
  const blocked = await shop.click(partner, { country: 'kp' });
  for (const click of [robot, blocked]) {
    t.match(await create(click), {
      status: 409,
      body: { error: { code: 'click_without_credit', param: 'click_id' } },
    });
  }
  t.same(await shop.list('customers'), []);
  const recent = await shop.click(partner);
  t.equal((await create(recent)).status, 201);

  await t.test('a sale with such a click is recorded all the same', async (t) => {
    for (const click of [expired, robot, blocked]) {
      t.match(await shop.sale({ click_id: click.id, customer: { email: 'grace@customer.example.com' } }), {
        partner_id: null,
        customer_id: null,
        activity_outcome: 'sale_recorded',
        warnings: [{ code: 'no_partner_attributed' }],
      });
    }
  });

  await t.test('a sale of the time before the end of the window is credited, however late it is told', async (t) => {
    const click = await shop.click(partner);
    await rail.query(sql`update program.click set created_at = now() - interval '40 days' where id = ${click.id}`);
    const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
    const buys = (days: number) =>
      shop.sale({ click_id: click.id, occurred_at: ago(days), customer: { name: 'Late' } });
    t.match(await buys(9), { partner_id: null, warnings: [{ code: 'no_partner_attributed' }] });
    t.match(await buys(11), { partner_id: partner.id });
  });

  await t.test('a customer who signed up in time is identified by the click for good', async (t) => {
    const click = await shop.click(partner);
    const customer = await shop.customer({ click_id: click.id });
    await rail.query(sql`update program.click set created_at = now() - interval '30 days' where id = ${click.id}`);
    t.match(await shop.sale({ click_id: click.id }), { partner_id: partner.id, customer_id: customer.id });
  });
});

t.test('a visit moves to the partner of the last click, or stays with the first under first_click', async (t) => {
  for (const attribution of ['last_click', 'first_click']) {
    const shop = await openShop(rail, { attribution });
    const [ada, bob] = [await shop.partner(), await shop.partner()];
    const visitor_token = fresh('visitor');
    const click = async (partner: Json) => {
      const { id } = await shop.click(partner, { visitor_token });
      const attributed = async () =>
        rail.query(sql`select 1 from program.click where id = ${id} and attributed_at is not null`);
      await eventually(async () => (await attributed()).length === 1, 'the click to be attributed');
      return id as string;
    };
    await click(ada);
    const second = await click(bob);
    const moved = attribution === 'last_click';
    const told = types(await shop.events()).filter((type) => type.startsWith('referral.'));
    t.same(told, moved ? ['referral.created', 'referral.deleted', 'referral.created'] : ['referral.created']);
    const credited = moved ? bob : ada;
    t.match(await shop.customer({ click_id: second }), { partner_id: credited.id }, attribution);
    const third = await click(moved ? ada : bob);
    t.match(
      await shop.customer({ click_id: third }),
      { partner_id: credited.id },
      'once a customer hangs on it, it stays',
    );
  }
});

t.test('a visit of a deleted partner neither holds the credit nor earns it', async (t) => {
  const shop = await openShop(rail, { attribution: 'first_click' });
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const visitor_token = fresh('visitor');
  const first = await shop.click(ada, { visitor_token });
  await eventually(async () => (await shop.list('referrals')).length === 1, 'the referral');
  await shop.merchant.delete(`/v1/partners/${ada.id}`);
  const sign_up = { program_id: shop.program.id, click_id: first.id };
  t.match(await shop.merchant.request('POST', '/v1/customers', sign_up), {
    status: 409,
    body: { error: { code: 'click_without_credit', param: 'click_id' } },
  });
  const second = await shop.click(bob, { visitor_token });
  t.match(await shop.customer({ click_id: second.id }), { partner_id: bob.id });
});

t.test('a repeated visit through the same partner renews the window, and emits no event', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  const visitor_token = fresh('visitor');
  const first = await shop.click(partner, { visitor_token });
  const referrals = () => shop.list('referrals');
  await eventually(async () => (await referrals()).length === 1, 'the referral');
  await rail.query(sql`
    update program.referral set expires_at = expires_at - interval '1 day' where program_id = ${shop.program.id}`);
  const second = await shop.click(partner, { visitor_token });
  const window = new Date(Date.parse(second.created_at) + 60 * 86_400_000).toISOString();
  await eventually(async () => (await referrals())[0]?.expires_at === window, 'the window to be renewed');
  const clicks = await shop.list('clicks');
  t.same(clicks.map(({ id }) => id).sort(), [first.id, second.id].sort());
  t.equal(new Set(clicks.map(({ referral_id }) => referral_id)).size, 1);
  t.equal(types(await shop.events()).filter((type) => type === 'referral.created').length, 1);
});

t.test('a self-referral is refused, its referral deleted and a flag raised', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner({ email: 'ada.lovelace@example.com' });
  await shop.events();
  const click = await shop.click(ada);
  const refused = await shop.merchant.request('POST', '/v1/customers', {
    program_id: shop.program.id,
    click_id: click.id,
    email: 'AdaLovelace+shop@example.com',
  });
  t.match(refused, { status: 409, body: { error: { type: 'conflict_error', code: 'self_referral', param: 'email' } } });
  const events = await shop.events();
  t.same(types(events), ['referral.created', 'referral.deleted', 'risk_flag.created']);
  const [, deleted, raised] = events as Json[] as [Json, Json, Json];
  t.match(deleted.data, { partner_id: ada.id, reason: 'self_referral' });
  const { referral_id } = deleted.data;
  t.match(raised.data, { partner_id: ada.id, customer_id: null, kind: 'self_referral', severity: 'high' });
  t.same(raised.data.evidence, { matched: 'email', referral_id });
  t.match(await shop.list('risk_flags'), [{ id: raised.data.risk_flag_id, status: 'open' }]);
  t.same([await shop.list('referrals'), await shop.list('customers')], [[], []]);

  await t.test('a repeated request gets the same answer', async (t) => {
    const again = { program_id: shop.program.id, click_id: click.id, email: 'AdaLovelace+shop@example.com' };
    const refused_again = await shop.merchant.request('POST', '/v1/customers', again);
    t.match(refused_again, { status: 409, body: { error: { code: 'self_referral', param: 'click_id' } } });
  });

  await t.test('but not if the program allows self-referrals', async (t) => {
    await shop.merchant.patch(`/v1/programs/${shop.program.id}`, { block_self_referrals: false });
    t.match(await shop.referred(ada, { email: ada.email }), { partner_id: ada.id });
  });
});

t.test('a partner who referred themselves once is recognized by the browser', async (t) => {
  const shop = await openShop(rail);
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const own = {
    ip: '203.0.113.20',
    user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0',
  };
  const sign_up = async (partner: Json, visit: Json, email: string) => {
    const { id: click_id } = await shop.click(partner, visit);
    return shop.merchant.request('POST', '/v1/customers', { program_id: shop.program.id, click_id, email });
  };
  t.equal((await sign_up(ada, own, 'before@customer.example.com')).status, 201, 'nothing is known of her yet');
  t.equal((await sign_up(ada, own, ada.email)).body.error.code, 'self_referral');
  await shop.events();
  t.match(await sign_up(ada, own, 'other@customer.example.com'), {
    status: 409,
    body: { error: { code: 'self_referral', param: 'click_id', message: /own browser/ } },
  });
  const told = (await shop.events()).filter(({ type }) => type.startsWith('referral.'));
  t.same(types(told), ['referral.created', 'referral.deleted']);
  t.match(told[1]?.data, { reason: 'self_referral', partner_id: ada.id });

  for (const [who, partner, visit] of [
    ['somebody with the same address', ada, { ...own, user_agent: `${own.user_agent} Other` }],
    ['somebody with the same browser elsewhere', ada, { ...own, ip: '203.0.113.21' }],
    ['somebody of whom less is known', ada, { ip: own.ip }],
    ['the customer of another partner', bob, own],
  ] as const) {
    t.equal((await sign_up(partner, visit, `${fresh('x')}@customer.example.com`)).status, 201, who);
  }
  await t.test('and no longer after 90 days', async (t) => {
    await rail.query(sql`update program.partner_visit set seen_at = now() - interval '91 days'`);
    t.equal((await sign_up(ada, own, 'late@customer.example.com')).status, 201);
  });
});

t.test('a referral deleted by hand emits its reason, and its customer stays with the partner', async (t) => {
  const shop = await openShop(rail);
  const customer = await shop.referred(await shop.partner());
  await shop.events();
  const path = `/v1/referrals/${customer.referral_id}`;
  t.match(await shop.merchant.request('DELETE', path, { reason: 'fraud' }), { status: 200, body: { deleted: true } });
  t.match(await shop.events(), [
    {
      type: 'referral.deleted',
      data: { referral_id: customer.referral_id, partner_id: customer.partner_id, reason: 'fraud' },
    },
  ]);
  t.equal((await shop.merchant.request('GET', path)).status, 404);
  await shop.sale({ customer_id: customer.id });
  t.same(types(await shop.events()), ['sale.created'], 'nothing converts any more');
});
