import t from 'tap';
import { type Json, startRail } from '../../harness.ts';
import { fresh, openShop, types } from '../../shop.ts';

const rail = await startRail();

t.test('a coupon has events while it has a partner', async (t) => {
  const shop = await openShop(rail);
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  await shop.events();
  const told = async () => (await shop.events()).map(({ type, data }) => ({ type, data }));
  const { id, code } = await shop.coupon({ code: 'ADA20' });
  const path = `/v1/coupons/${id}`;
  const patch = (body: Json) => shop.merchant.patch(path, body);
  await shop.merchant.post(`${path}/deactivate`);
  await shop.merchant.post(`${path}/activate`);
  t.same(await told(), [], 'nobody’s coupon is told to nobody');

  await patch({ partner_id: ada.id });
  const data = { coupon_id: id, partner_id: ada.id, code, active: true };
  t.same(await told(), [{ type: 'affiliate_coupon.created', data }]);
  await patch({ external_id: 'promo_ada' });
  t.same(await told(), [{ type: 'affiliate_coupon.updated', data }]);
  await patch({ partner_id: bob.id });
  t.same(await told(), [{ type: 'affiliate_coupon.updated', data: { ...data, partner_id: bob.id } }]);
  await shop.merchant.post(`${path}/deactivate`);
  t.same(await told(), [
    { type: 'affiliate_coupon.deactivated', data: { ...data, partner_id: bob.id, active: false } },
  ]);
  await shop.merchant.post(`${path}/deactivate`);
  t.same(await told(), [], 'it was off already');
  await shop.merchant.post(`${path}/activate`);
  t.same(await told(), [{ type: 'affiliate_coupon.activated', data: { ...data, partner_id: bob.id } }]);
  await patch({ partner_id: null });
  t.same(await told(), [{ type: 'affiliate_coupon.deleted', data: { coupon_id: id, partner_id: bob.id } }]);
  await shop.merchant.delete(path);
  t.same(await told(), []);

  const own = await shop.coupon({ partner_id: ada.id });
  t.same(types(await shop.events()), ['affiliate_coupon.created']);
  await shop.merchant.delete(`/v1/coupons/${own.id}`);
  t.same(await told(), [{ type: 'affiliate_coupon.deleted', data: { coupon_id: own.id, partner_id: ada.id } }]);
});

t.test('code and external id are unique in the program', async (t) => {
  const shop = await openShop(rail);
  const first = await shop.coupon({ code: 'ADA20', external_id: 'promo_1' });
  const create = (fields: Json) =>
    shop.merchant.request('POST', '/v1/coupons', { program_id: shop.program.id, ...fields });
  t.match(await create({ code: 'ada20' }), {
    status: 409,
    body: { error: { param: 'code' }, existing: { id: first.id } },
  });
  t.match(await create({ code: 'OTHER', external_id: 'promo_1' }), {
    status: 409,
    body: { error: { param: 'external_id' }, existing: { id: first.id } },
  });
  const other = await shop.coupon();
  const patched = await shop.merchant.request('PATCH', `/v1/coupons/${other.id}`, { external_id: 'promo_1' });
  t.match(patched, { status: 409, body: { error: { code: 'resource_already_exists', param: 'external_id' } } });
  await shop.merchant.delete(`/v1/coupons/${first.id}`);
  t.equal((await create({ code: 'ADA20', external_id: 'promo_1' })).status, 201);
});

t.test('a malformed id answers 404', async (t) => {
  const shop = await openShop(rail);
  const [coupon, partner] = [await shop.coupon(), await shop.partner()];
  for (const [path, param] of [
    [`/v1/coupons/${coupon.id}`, 'partner_id'],
    [`/v1/partners/${partner.id}`, 'group_id'],
  ] as const) {
    const answer = await shop.merchant.request('PATCH', path, { [param]: '' });
    t.match(answer, { status: 404, body: { error: { code: 'resource_not_found', param } } });
  }
});

t.test('a sale is matched by the external id, never by the code', async (t) => {
  const shop = await openShop(rail);
  const coupon = await shop.coupon({ code: 'ADA20', external_id: 'promo_1', partner_id: (await shop.partner()).id });
  t.match(await shop.sale({ coupon_external_id: 'ADA20' }), { partner_id: null, coupon_id: null });
  t.match(await shop.sale({ coupon_external_id: 'promo_1' }), { partner_id: coupon.partner_id, coupon_id: coupon.id });
});

t.test('a second coupon answers 409 that names the field it shares with the first', async (t) => {
  const shop = await openShop(rail);
  const first = await shop.coupon({ code: 'ADA20', external_id: undefined });
  const second = await shop.coupon({ code: 'BOB20', external_id: 'promo_bob' });
  for (const [body, param, existing] of [
    [{ code: 'ada20' }, 'code', first],
    [{ code: 'bob20' }, 'code', second],
    [{ code: 'CAT20', external_id: 'promo_bob' }, 'external_id', second],
  ] as const) {
    const coupon = { program_id: shop.program.id, ...body };
    const refused = await shop.merchant.request('POST', '/v1/coupons', coupon);
    t.match(refused, { status: 409, body: { error: { param }, existing } }, JSON.stringify(body));
  }
});

t.test('a code that looks like another one is that one, or is refused', async (t) => {
  const shop = await openShop(rail);
  const create = (code: string) =>
    shop.merchant.request('POST', '/v1/coupons', { program_id: shop.program_id, code, external_id: fresh('promo') });
  t.equal((await create('SAVE10')).status, 201);
  t.match(await create('ＳＡＶＥ10'), { status: 409, body: { error: { param: 'code' } } });
  for (const code of [' SAVE10', 'SAVE10 ', '\u00a0ＳＡＶＥ10'])
    t.match(await create(code), { status: 409, body: { error: { param: 'code' } } }, code);
  t.equal((await create('SAVE-10')).body.code, 'SAVE-10');
  for (const code of ['SAVE\u201010', 'SAVE–10', 'SAVE−10', 'save－10'])
    t.match(await create(code), { status: 409, body: { error: { param: 'code' } } }, code);
  const marked = ['SAVE۱0', 'SAVE10\u0301', 'АВЕС', 'аве-10', 'ΑΒΕ10'];
  for (const code of ['ЅAVE10', 'SAVE10\u200b', 'SA\u00adVE10', 'SAVE\u03911', ...marked]) {
    t.match(await create(code), { status: 400, body: { error: { code: 'invalid_parameter', param: 'code' } } }, code);
  }
  for (const code of ['СКИДКА10', 'Müller-10', '割引SALE10', 'दीवाली10', 'خصم10', '❤️10', '👩‍💻10'])
    t.equal((await create(code)).status, 201, code);
});

t.test('nor do values of links, names of tags and addresses of partners that look alike', async (t) => {
  const shop = await openShop(rail);
  const { program_id } = shop;
  const { id: partner_id } = await shop.partner({ email: 'ada@example.com' });
  const destination_url = 'https://acme.example.com/';
  const routes: [string, string, (text: string) => Json][] = [
    ['/v1/links', 'value', (value) => ({ program_id, partner_id, destination_url, value })],
    ['/v1/tags', 'name', (name) => ({ program_id, name })],
  ];
  for (const [path, param, bodyOf] of routes) {
    const create = (text: string) => shop.merchant.request('POST', path, bodyOf(text));
    t.equal((await create('spring')).status, 201, path);
    for (const text of ['spring ', 'ｓpring', 'Spring'])
      t.match(await create(text), { status: 409, body: { error: { param } } }, `${path} ${text}`);
    for (const text of ['spring\u200b', 'sprіng', 'sp\u0335ring', 'spring١'])
      t.match(await create(text), { status: 400, body: { error: { param } } }, `${path} ${text}`);
  }
  const click = { ...{ program_id, visitor_token: fresh('visitor-token') }, landing_url: destination_url };
  const clicked = await shop.merchant.post('/v1/clicks', { ...click, value: 'ｓpring\u200b ' });
  t.equal(clicked.partner_id, partner_id);
  const join = (email: string) => shop.merchant.request('POST', '/v1/partners', { program_id, email });
  t.match(await join('ａda@example.com'), { status: 409, body: { error: { param: 'email' } } });
  t.match(await join('аda@example.com'), { status: 400, body: { error: { param: 'email' } } });
  for (const email of ['ада@example.com', 'björn@example.com']) t.equal((await join(email)).status, 201, email);
});
