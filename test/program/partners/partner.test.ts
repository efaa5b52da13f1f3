import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop, types } from '../../shop.ts';

const rail = await startRail();

t.test('a handle is derived from the email, with the suffix -2, -3 if it is taken', async (t) => {
  const { partner } = await openShop(rail);
  const handleOf = async (email: string) => (await partner({ email })).handle;
  t.equal(await handleOf('ada.lovelace@a.example.com'), 'ada-lovelace');
  t.equal(await handleOf('Ada_Lovelace@b.example.com'), 'ada-lovelace-2');
  t.equal(await handleOf('ada+lovelace@c.example.com'), 'ada-lovelace-3');
  t.equal(await handleOf('x@example.com'), 'xpartner');
  const long = 'abcdefghijklmnopqrstuvwxyz0123456789';
  t.equal(await handleOf(`${long}@a.example.com`), long.slice(0, 32));
  t.equal(await handleOf(`${long}@b.example.com`), `${long.slice(0, 30)}-2`);
});

t.test('a taken email or handle answers 409 with the partner that holds it', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner({ email: 'ada@example.com', handle: 'ada' });
  const create = (fields: Json) =>
    shop.merchant.request('POST', '/v1/partners', { program_id: shop.program.id, ...fields });
  t.match(await create({ email: 'ADA@example.com' }), {
    status: 409,
    body: { error: { code: 'resource_already_exists', param: 'email' }, existing: { id: ada.id } },
  });
  t.match(await create({ email: 'other@example.com', handle: 'ada' }), {
    status: 409,
    body: { error: { code: 'resource_already_exists', param: 'handle' }, existing: { id: ada.id } },
  });
  for (const handle of ['a', '-ada', 'ada-', 'Ada', 'ada_1', 'x'.repeat(33)]) {
    t.match(await create({ email: 'new@example.com', handle }), { status: 400, body: { error: { param: 'handle' } } });
  }
  const elsewhere = await openShop(rail);
  t.equal(
    (await elsewhere.partner({ email: 'ada@example.com', handle: 'ada' })).handle,
    'ada',
    'another program is free',
  );
  await shop.merchant.delete(`/v1/partners/${ada.id}`);
  t.equal((await create({ email: 'ada@example.com', handle: 'ada' })).status, 201, 'and so is what a deleted one held');
});

t.test('a PATCH to a value that another record has answers 409 with that record', async (t) => {
  const shop = await openShop(rail);
  const { merchant, program } = shop;
  const [ada, bob] = [await shop.partner({ handle: 'ada' }), await shop.partner({ handle: 'bob' })];
  const tag = (name: string) => merchant.post('/v1/tags', { program_id: program.id, name });
  const [vip, other] = [await tag('VIP'), await tag('Other')];
  const [mine, theirs] = [await shop.coupon(), await shop.coupon()];
  const [link, second] = [await shop.link(ada), await shop.link(bob)];
  for (const [path, body, param, existing] of [
    [`/v1/partners/${bob.id}`, { handle: 'ada' }, 'handle', ada],
    [`/v1/tags/${other.id}`, { name: 'vip' }, 'name', vip],
    [`/v1/coupons/${mine.id}`, { external_id: theirs.external_id }, 'external_id', theirs],
    [`/v1/links/${second.id}`, { short_slug: link.short_slug }, 'short_slug', link],
  ] as const) {
    const answer = await merchant.request('PATCH', path, body);
    t.match(answer, { status: 409, body: { error: { code: 'resource_already_exists', param } } }, param);
    t.same(answer.body.existing, existing, param);
  }
  t.equal((await merchant.request('PATCH', `/v1/partners/${ada.id}`, { handle: 'ada' })).status, 200, 'its own');
  t.equal((await merchant.request('PATCH', `/v1/tags/${vip.id}`, { name: 'vip' })).status, 200, 'its own, respelt');
});

t.test('affiliate.updated is emitted only for changes', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner({ first_name: 'Ada' });
  const tag = await shop.merchant.post('/v1/tags', { program_id: shop.program.id, name: 'VIP' });
  await shop.events();
  const told = async (changes: Json) => {
    await shop.merchant.patch(`/v1/partners/${ada.id}`, changes);
    return types(await shop.events());
  };
  for (const nothing of [{}, { first_name: 'Ada' }, { status: 'active' }, { tag_ids: [] }])
    t.same(await told(nothing), []);
  for (const changes of [{ first_name: 'A' }, { tag_ids: [tag.id] }, { metadata: { a: [1, { b: 2 }] } }]) {
    t.same(await told(changes), ['affiliate.updated']);
    t.same(await told(changes), []);
  }
});

t.test('updated_at changes only with other fields', async (t) => {
  const shop = await openShop(rail);
  const { merchant } = shop;
  const ada = await shop.partner({ first_name: 'Ada', metadata: { a: [1, { b: 2 }] } });
  const tag = await merchant.post('/v1/tags', { program_id: shop.program.id, name: 'VIP' });
  const path = `/v1/partners/${ada.id}`;
  for (const nothing of [{}, { first_name: 'Ada' }, { metadata: { a: [1, { b: 2 }] } }, { tag_ids: [] }]) {
    t.equal((await merchant.patch(path, nothing)).updated_at, ada.updated_at, JSON.stringify(nothing));
  }
  let before = ada.updated_at;
  for (const changes of [{ first_name: 'A' }, { last_name: 'L', first_name: 'A' }, { tag_ids: [tag.id] }]) {
    const { updated_at } = await merchant.patch(path, changes);
    t.ok(updated_at > before, JSON.stringify(changes));
    before = updated_at;
  }
  const { id: program_id, updated_at } = shop.program;
  const same = { url_params: shop.program.url_params, cookie_days: shop.program.cookie_days };
  t.equal((await merchant.patch(`/v1/programs/${program_id}`, same)).updated_at, updated_at);
  const rule = await shop.rule({ tier_metric: 'sales_count', tiers: [{ from: 1, rate_value: 100 }] });
  t.equal((await merchant.patch(`/v1/rules/${rule.id}`, { tiers: rule.tiers })).updated_at, rule.updated_at);
});

t.test('a partner who is not suspended has no suspension_reason', async (t) => {
  const shop = await openShop(rail);
  const { id } = await shop.partner();
  const patch = (body: Json) => shop.merchant.request('PATCH', `/v1/partners/${id}`, body);
  const refused = { status: 400, body: { error: { code: 'invalid_parameter', param: 'suspension_reason' } } };
  t.match(await patch({ suspension_reason: 'Brand search.' }), refused);
  t.match(await patch({ suspension_reason: null }), { status: 200, body: { suspension_reason: null } });
  await patch({ status: 'suspended' });
  t.match(await patch({ suspension_reason: 'Brand search.' }), { body: { suspension_reason: 'Brand search.' } });
  t.match(await patch({ status: 'active', suspension_reason: 'Brand search.' }), refused);
  t.match(await patch({ status: 'active' }), { body: { status: 'active', suspension_reason: null } });
});

t.test('suspending and reinstating emit the status and the reason', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner();
  const patch = (body: Json) => shop.merchant.patch(`/v1/partners/${ada.id}`, body);
  const told = async () => (await shop.events()).map(({ type, data }) => ({ type, data }));
  t.match(await told(), [
    { type: 'affiliate.created', data: { partner_id: ada.id, status: 'active', group_id: ada.group_id } },
  ]);

  t.match(await patch({ status: 'suspended', suspension_reason: 'Brand search.' }), {
    status: 'suspended',
    suspension_reason: 'Brand search.',
  });
  t.same(await told(), [
    { type: 'affiliate.updated', data: { partner_id: ada.id, status: 'suspended', reason: 'Brand search.' } },
  ]);
  await t.test('a click through a suspended partner is recorded without a referral', async (t) => {
    const { id } = await shop.click(ada);
    const of_click = { program_id: shop.program.id, click_id: id };
    t.match(await shop.merchant.request('POST', '/v1/customers', of_click), {
      status: 409,
      body: { error: { param: 'click_id' } },
    });
    t.match(await shop.merchant.get(`/v1/clicks/${id}`), { id, referral_id: null });
    t.same(await shop.list('referrals'), []);
  });
  t.match(await patch({ status: 'active' }), { status: 'active', suspension_reason: null });
  t.same(await told(), [{ type: 'affiliate.updated', data: { partner_id: ada.id, status: 'active', reason: null } }]);

  const pending = await shop.partner({ status: 'pending' });
  t.match(await shop.merchant.request('PATCH', `/v1/partners/${pending.id}`, { status: 'active' }), {
    status: 409,
    body: { error: { code: 'invalid_state_transition' } },
  });
});

t.test('a deleted partner is credited no more, and open commissions are voided', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const ada = await shop.partner();
  const link = await shop.link(ada);
  const customer = await shop.referred(ada);
  const [open, paid] = [await shop.sale({ customer_id: customer.id }), await shop.sale({ customer_id: customer.id })];
  await shop.pay(paid.commissions[0]);
  const waiting = await shop.partner({ status: 'pending' });
  await shop.events();

  t.same(await shop.merchant.delete(`/v1/partners/${ada.id}`), { id: ada.id, object: 'partner', deleted: true });
  const [deleted, unlinked, voided, ...rest] = await shop.events();
  t.same(rest, []);
  t.match(deleted, { type: 'affiliate.deleted', data: { partner_id: ada.id } });
  t.same(unlinked?.data, { link_id: link.id, partner_id: ada.id });
  t.equal(unlinked?.type, 'affiliate_link.deleted');
  t.same(voided?.data, {
    commission_id: open.commissions[0].id,
    sale_id: open.id,
    partner_id: ada.id,
    amount_minor: 2_000,
    currency: 'USD',
    reason: 'partner_deleted',
  });
  t.match(await shop.commissionsOf(paid), [{ status: 'paid', amount_minor: 2_000 }], 'what was paid stays');

  const { merchant, program } = shop;
  t.equal((await merchant.request('GET', `/v1/partners/${ada.id}`)).status, 404);
  for (const value of [ada.handle, link.value]) {
    const click = {
      program_id: program.id,
      value,
      landing_url: 'https://acme.example.com/',
      visitor_token: 'visitor-0009',
    };
    t.match(await merchant.request('POST', '/v1/clicks', click), { status: 404, body: { error: { param: 'value' } } });
  }
  t.match(await shop.sale({ customer_id: customer.id }), {
    partner_id: null,
    warnings: [{ code: 'no_partner_attributed' }],
  });

  await t.test(
    'a refund is still clawed back from a deleted partner, and a correction pays nothing more',
    async (t) => {
      await merchant.patch(`/v1/sales/${paid.id}`, { amount_minor: 20_000 });
      t.equal((await shop.commissionsOf(paid)).length, 1);
      await shop.refund(paid);
      t.match(await shop.commissionsOf(paid), [{ amount_minor: 2_000 }, { kind: 'clawback', amount_minor: -2_000 }]);
    },
  );

  await t.test('deleting a pending partner withdraws the application', async (t) => {
    await merchant.delete(`/v1/partners/${waiting.id}`);
    t.match(await shop.list('applications', `partner_id=${waiting.id}`), [{ status: 'withdrawn' }]);
  });
});

t.test('a partner who is deleted and created again gets the same handle and link value', async (t) => {
  const shop = await openShop(rail);
  const add = async () => {
    const partner = await shop.partner({ email: 'ada@example.com' });
    return shop.link(partner, { value: undefined });
  };
  const first = await add();
  await shop.merchant.delete(`/v1/partners/${first.partner_id}`);
  t.equal((await shop.merchant.request('GET', `/v1/links/${first.id}`)).status, 404);
  const second = await add();
  t.equal(second.url, first.url);
  t.match(await shop.list('links'), [{ id: second.id }]);
  t.match(await shop.click({}, { value: 'ada' }), { partner_id: second.partner_id, link_id: second.id });
});

t.test("a partner's tags are read back and filter the list of partners", async (t) => {
  const shop = await openShop(rail);
  const { merchant, program_id } = shop;
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  t.same(ada.tag_ids, []);
  const tag = (name: string) => merchant.post('/v1/tags', { program_id, name });
  const [vip, press] = [await tag('VIP'), await tag('Press')];
  const tag_ids = [vip.id, press.id].sort();
  t.same((await merchant.patch(`/v1/partners/${ada.id}`, { tag_ids })).tag_ids, tag_ids);
  await merchant.patch(`/v1/partners/${bob.id}`, { tag_ids: [press.id] });
  t.same((await merchant.get(`/v1/partners/${ada.id}`)).tag_ids, tag_ids);
  const link = await shop.link(ada);
  t.same((await merchant.get(`/v1/links/${link.id}?expand[]=partner`)).partner.tag_ids, tag_ids);
  const found = async (query: string) => (await shop.list('partners', query)).map(({ id }) => id).sort();
  t.same(await found(`tag_id=${vip.id}`), [ada.id]);
  t.same(await found(`tag_id=${press.id}`), [ada.id, bob.id].sort());
  t.same(await found(`tag_id=${press.id}&email=${bob.email}`), [bob.id]);
  t.equal((await merchant.get(`/v1/partners?program_id=${program_id}&tag_id=${vip.id}`)).total_count, 1);
  await shop.events();
  await merchant.delete(`/v1/tags/${press.id}`);
  t.match(
    await shop.events(),
    [ada, bob].map(({ id: partner_id }) => ({ type: 'affiliate.updated', data: { partner_id, status: 'active' } })),
    'a deleted tag changes its partners',
  );
  t.same((await merchant.get(`/v1/partners/${ada.id}`)).tag_ids, [vip.id]);
  t.same(await found(`tag_id=${press.id}`), []);
});

t.test("a partner's groups and tags decide what the rules pay", async (t) => {
  const shop = await openShop(rail);
  const { merchant } = shop;
  const program_id = shop.program.id;
  const group = await merchant.post('/v1/groups', { program_id, name: 'Gold' });
  const tag = await merchant.post('/v1/tags', { program_id, name: 'Newsletter', color: '#336699' });
  await shop.rule({ rate_value: 1_000 });
  await shop.rule({ rate_value: 3_000, group_ids: [group.id] });
  await shop.rule({ rate_value: 4_000, tag_ids: [tag.id], priority: 1 });
  const ada = await shop.partner();
  const earns = async () => (await shop.sale({ partner_id: ada.id })).commissions[0].amount_minor;
  t.equal(await earns(), 1_000);
  await shop.events();
  await merchant.patch(`/v1/partners/${ada.id}`, { group_id: group.id });
  t.same(types(await shop.events()), ['affiliate.updated']);
  t.equal(await earns(), 3_000);
  await merchant.patch(`/v1/partners/${ada.id}`, { tag_ids: [tag.id] });
  t.equal(await earns(), 4_000);
  await merchant.patch(`/v1/partners/${ada.id}`, { tag_ids: [] });
  t.equal(await earns(), 3_000);

  await shop.events();
  await merchant.delete(`/v1/groups/${group.id}`);
  t.match(await shop.events(), [{ type: 'affiliate.updated', data: { partner_id: ada.id } }]);
  const back = await merchant.get(`/v1/partners/${ada.id}?expand[]=group`);
  t.match(back.group, { is_default: true });
  t.equal(await earns(), 1_000);
  t.equal((await merchant.request('DELETE', `/v1/groups/${back.group_id}`)).status, 409, 'the default group stays');
});

t.test(
  'deleting a group moves its members, and emits affiliate.updated for partners who are not deleted',
  async (t) => {
    const shop = await openShop(rail);
    const { merchant, program } = shop;
    const [standard] = await shop.list('groups');
    const { id: group_id } = await merchant.post('/v1/groups', { program_id: program.id, name: 'Gold' });
    const [ada, bob] = [await shop.partner({ group_id }), await shop.partner({ group_id })];
    const coupon = await shop.coupon({ group_id });
    const application = await merchant.post('/v1/applications', {
      program_id: program.id,
      email: 'grace@partner.example.com',
      group_id,
    });
    await merchant.delete(`/v1/partners/${ada.id}`);
    await shop.events();
    await merchant.delete(`/v1/groups/${group_id}`);
    const told = (await shop.events()).map(({ type, data }) => [type, data.partner_id]);
    t.same(told, [
      ['affiliate.updated', bob.id],
      ['affiliate.updated', application.partner_id],
    ]);
    for (const before of [coupon, application]) {
      const after = await merchant.get(`/v1/${before.object}s/${before.id}`);
      t.equal(after.group_id, standard?.id, before.object);
      t.ok(after.updated_at > before.updated_at, `${before.object} says when it changed`);
    }
  },
);

t.test('a paying customer becomes a partner on the first sale if the program enrols customers', async (t) => {
  const shop = await openShop(rail, { auto_enrol_customers: true });
  await shop.rule();
  const customer = await shop.referred(await shop.partner(), { email: 'Grace@customer.example.com' });
  await shop.events();
  await shop.sale({ customer_id: customer.id });
  const events = await shop.events();
  t.same(types(events), [
    'sale.created',
    'commission.created',
    'referral.converted',
    'affiliate.created',
    'customer.enrolled_as_partner',
  ]);
  const [, , , created, enrolled] = events;
  const { partner_id, group_id } = (created as Json).data;
  t.same(enrolled?.data, {
    customer_id: customer.id,
    partner_id,
    handle: 'grace',
    email: customer.email,
    group_id,
    source: 'auto_enrol',
  });
  t.match(await shop.merchant.get(`/v1/partners/${partner_id}`), { status: 'active', email: customer.email });
  await shop.sale({ customer_id: customer.id });
  t.same(types(await shop.events()), ['sale.created', 'commission.created'], 'once');

  const nameless = await shop.customer({ partner_id: customer.partner_id, email: undefined });
  await shop.sale({ customer_id: nameless.id });
  t.same(types(await shop.events()), ['sale.created', 'commission.created'], 'and nobody without an email');
});

t.test('a paying customer becomes a pending partner if the program requires an application', async (t) => {
  const shop = await openShop(rail, { auto_enrol_customers: true, application_required: true });
  const customer = await shop.customer({ partner_id: (await shop.partner()).id });
  await shop.events();
  await shop.sale({ customer_id: customer.id });
  const [, created, enrolled] = (await shop.events()) as Json[] as [Json, Json, Json];
  t.match(created, { type: 'affiliate.created', data: { email: customer.email, status: 'pending' } });
  t.match(enrolled, { type: 'customer.enrolled_as_partner', data: { partner_id: created.data.partner_id } });
  const [application] = await shop.list('applications', 'status=pending');
  t.match(application, { partner_id: created.data.partner_id, email: customer.email });
  await shop.merchant.post(`/v1/applications/${application?.id}/approve`);
  t.same(types(await shop.events()), ['application.approved', 'affiliate.confirmed']);
  t.match(await shop.merchant.get(`/v1/partners/${created.data.partner_id}`), { status: 'active' });
});

t.test('a click that matches no partner is not recorded', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner({ handle: 'ada' });
  const send = (fields: Json) =>
    shop.merchant.request('POST', '/v1/clicks', {
      program_id: shop.program.id,
      value: 'ada',
      landing_url: 'https://acme.example.com/?utm_source=mail',
      visitor_token: 'visitor-0001',
      ...fields,
    });
  t.match(await send({ value: 'nobody' }), {
    status: 404,
    body: { error: { code: 'resource_not_found', param: 'value' } },
  });
  t.equal(
    (await send({ param: 'utm_source' })).status,
    404,
    'a handle counts under the program’s own parameters alone',
  );
  t.same(await shop.list('clicks'), []);
  t.equal((await send({ param: 'via' })).status, 201);
  await eventually(async () => (await shop.list('referrals')).length === 1, 'the referral');
  t.match(await shop.list('referrals'), [
    { partner_id: ada.id, status: 'visit', tracked_by: 'link', utm: { source: 'mail' } },
  ]);
});

t.test('an error in the details of a payout method names the field', async (t) => {
  const shop = await openShop(rail, { payout_methods: ['paypal', 'bank_transfer', 'crypto'] });
  const { id } = await shop.partner();
  const put = (method: string, details: Json) =>
    shop.merchant.request('PUT', `/v1/partners/${id}/payout_method`, { method, details });
  for (const [method, details, code, param] of [
    ['paypal', {}, 'missing_parameter', 'details.email'],
    ['paypal', { email: 'ada@example.com', x: 'y' }, 'unknown_parameter', 'details.x'],
    ['paypal', { email: 'ada' }, 'invalid_parameter', 'details.email'],
    [
      'bank_transfer',
      { account_holder: '王小明', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' },
      'invalid_parameter',
      'details.account_holder',
    ],
    [
      'crypto',
      { address: '0x52908400098527886e0F7030069857D2E4169EE7', network: 'polygon' },
      'invalid_parameter',
      'details.address',
    ],
    [
      'crypto',
      { address: 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq', network: 'ERC-20' },
      'invalid_parameter',
      'details.address',
    ],
    ['bank_transfer', { account_holder: 'Ada', iban: 'DE00', bic: 'COBADEFFXXX' }, 'invalid_parameter', 'details.iban'],
    [
      'bank_transfer',
      { account_holder: ' ', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' },
      'invalid_parameter',
      'details.account_holder',
    ],
  ] as const) {
    t.match(await put(method, details), { status: 400, body: { error: { code, param } } });
  }
  t.match(await put('paypal', { email: 'ada@example.com' }), { status: 200, body: { hint: 'ada' } });
  const french = { account_holder: 'Ada', iban: 'FR1420041010050500013M02606', bic: 'BNPAREPP' };
  t.match(await put('bank_transfer', french), { status: 200 }, 'a bank of Réunion');
  const foreign = { account_holder: 'Ада', iban: 'ES9121000418450200051332', bic: 'REVOLT21' };
  t.match(await put('bank_transfer', foreign), { status: 200 }, 'an IBAN of another country than the bank');
  for (const [address, network] of [
    ['0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 'ethereum'],
    ['0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359', 'base'],
    ['0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359', 'ERC-20'],
    ['0x5aaEB6053f3e94c9b9a09f33669435E7ef1bEAeD', 'RSK'],
    ['bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq', 'bitcoin'],
  ] as const) {
    t.match(await put('crypto', { address, network }), { status: 200 }, address);
  }
});

t.test('slugs have letters without diacritics', async (t) => {
  const { merchant, program } = await openShop(rail, { name: 'Müller & Söhne' });
  t.match(program.subdomain, /^muller-sohne/);
  t.equal((await merchant.post('/v1/groups', { program_id: program.id, name: 'Été à Tōkyō' })).slug, 'ete-a-tokyo');
});

t.test('a click with a very long user agent or referrer is recorded with both shortened', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner();
  const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0 '.padEnd(1_023, 'x');
  const user_agent = `${firefox}😀 and more`;
  const referrer = `https://search.example.com/?q=${'x'.repeat(3_000)}`;
  const click = await shop.click(ada, { user_agent, referrer });
  t.equal(click.referer, referrer.slice(0, 2_048));
  t.equal(click.user_agent, `${firefox}😀`, 'a character is never cut in two');
  t.match(await shop.customer({ click_id: click.id }), { partner_id: ada.id });
});

t.test(
  'a group and a tag of many partners are deleted at once for readers, and taken from the partners by a job',
  async (t) => {
    const shop = await openShop(rail);
    const { merchant, program_id } = shop;
    const many = 1_200;
    const [standard] = await shop.list('groups');
    const named = (noun: string) => merchant.post(`/v1/${noun}`, { program_id, name: 'Gold' });
    const [group, tag] = [await named('groups'), await named('tags')];
    await rail.query(sql`
    insert into program.partner (organization_id, id, program_id, group_id, email, handle, status)
    select ${merchant.organization_id}, 'part_' || core.id_time_part(now()) || 'e00g' || lpad(n::text, 12, '0'), ${program_id}, ${group.id},
      n || '@partner.example.com', 'many-' || n, 'active'
    from generate_series(1, ${many}) as n`);
    await rail.query(sql`
    insert into program.partner_tag (organization_id, partner_id, tag_id)
    select p.organization_id, p.id, ${tag.id} from program.partner p where p.program_id = ${program_id}`);
    const coupon = await shop.coupon({ group_id: group.id });
    const left = async (): Promise<Json> =>
      (
        await rail.query(sql`
        select (select count(*)::integer from program.partner where group_id = ${group.id}) as members,
          (select count(*)::integer from program.partner_tag where tag_id = ${tag.id}) as tagged,
          (select count(*)::integer from program.partner_group where id = ${group.id}) as groups,
          (select count(*)::integer from program.tag where id = ${tag.id}) as tags`)
      )[0] as Json;

    for (const [noun, { id }] of [
      ['tags', tag],
      ['groups', group],
    ] as const) {
      t.match(await merchant.delete(`/v1/${noun}/${id}`), { deleted: true });
      t.equal((await merchant.request('GET', `/v1/${noun}/${id}`)).status, 404);
      t.notOk((await shop.list(noun)).some((one) => one.id === id));
      t.equal((await merchant.request('DELETE', `/v1/${noun}/${id}`)).status, 404);
      t.match(await named(noun), { name: 'Gold' }, 'the name is free at once');
    }
    await eventually(async () => Object.values(await left()).every((count) => count === 0), 'the jobs to end', 120_000);
    t.equal((await merchant.get(`/v1/groups/${standard?.id}?include[]=stats`)).stats.partners, many);
    t.equal((await merchant.get(`/v1/coupons/${coupon.id}`)).group_id, standard?.id);
    const told = await rail.query(sql`
    select count(*)::integer as events, count(distinct body::jsonb #>> '{data,partner_id}')::integer as partners
    from webhooks.event where program_id = ${program_id} and type = 'affiliate.updated'`);
    t.same(told, [{ events: 2 * many, partners: many }], 'each partner is told once of either');
  },
);
