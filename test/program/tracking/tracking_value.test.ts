import t from 'tap';
import { type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';

const rail = await startRail({ worker: false });

const createLink = (shop: Shop, partner: Json, fields: Json) =>
  shop.merchant.request('POST', '/v1/links', {
    program_id: shop.program_id,
    partner_id: partner.id,
    destination_url: 'https://acme.example.com/',
    ...fields,
  });

const createPartner = (shop: Shop, fields: Json) =>
  shop.merchant.request('POST', '/v1/partners', {
    program_id: shop.program_id,
    email: `${fresh('partner')}@partner.example.com`,
    ...fields,
  });

const taken = (param: string, existing: Json) => ({
  status: 409,
  body: { error: { code: 'resource_already_exists', param }, existing: { id: existing.id, object: existing.object } },
});

t.test("a link cannot take another partner's handle under one of the program's url_params", async (t) => {
  const shop = await openShop(rail);
  const [ada, bob] = [await shop.partner({ handle: 'ada' }), await shop.partner({ handle: 'bob' })];
  for (const fields of [{ value: 'ada' }, { value: 'ADA' }, { value: 'ada', param: 'via' }]) {
    t.match(await createLink(shop, bob, fields), taken('value', ada));
  }
  t.match(await createLink(shop, bob, { value: 'ada', param: 'partner' }), { status: 201 });
  t.match(await createLink(shop, ada, {}), { status: 201, body: { value: 'ada' } });
  t.match(await createLink(shop, ada, { value: 'Ada' }), { status: 409 }, 'her own link has it');
});

t.test('values of links differ in more than letter case, and so do the clicks that they get', async (t) => {
  const shop = await openShop(rail);
  const [ada, bob] = [await shop.partner({ handle: 'ada' }), await shop.partner({ handle: 'bob' })];
  const summer = await shop.link(ada, { value: 'Summer' });
  for (const [partner, value] of [
    [bob, 'Summer'],
    [bob, 'SUMMER'],
    [ada, 'summer'],
  ] as [Json, string][])
    t.match(await createLink(shop, partner, { value }), taken('value', summer));
  t.match(await createLink(shop, bob, { value: 'summer', param: 'via' }), { status: 201 }, 'another parameter');
  const target = async (value: string) => {
    const { partner_id, link_id } = await shop.click({}, { value });
    return { partner_id, link_id };
  };
  const by_link = { partner_id: ada.id, link_id: summer.id };
  t.same(await target('Summer'), by_link);
  t.same(await target('sUMMER'), by_link);
  const own = await shop.link(ada, { value: 'ada' });
  t.same(await target('ADA'), { partner_id: ada.id, link_id: own.id }, 'the link of the handle');
  t.same(await target('BOB'), { partner_id: bob.id, link_id: null });
  const many = await Promise.all(
    Array.from({ length: 8 }, (_, nth) => createLink(shop, nth % 2 ? ada : bob, { value: nth < 4 ? 'rush' : 'RUSH' })),
  );
  t.same(many.map(({ status }) => status).sort(), [201, ...Array.from({ length: 7 }, () => 409)]);
});

t.test("a handle cannot take the value of another partner's link", async (t) => {
  const shop = await openShop(rail);
  const [ada, bob] = [await shop.partner({ handle: 'ada' }), await shop.partner({ handle: 'bob' })];
  const link = await shop.link(ada, { value: 'Summer' });
  t.match(await createPartner(shop, { handle: 'summer' }), taken('handle', link));
  t.match(
    await shop.merchant.request('POST', '/v1/applications', {
      program_id: shop.program_id,
      email: 'c@partner.example.com',
      handle: 'summer',
    }),
    taken('handle', link),
  );
  const rename = (partner: Json) => shop.merchant.request('PATCH', `/v1/partners/${partner.id}`, { handle: 'summer' });
  t.match(await rename(bob), taken('handle', link));
  t.match(await rename(ada), { status: 200 });

  await t.test('unless the link has another parameter or is deleted', async (t) => {
    await shop.link(ada, { value: 'winter', param: 'partner' });
    t.match(await createPartner(shop, { handle: 'winter' }), { status: 201 });
    const deleted = await shop.link(ada, { value: 'spring' });
    await shop.merchant.delete(`/v1/links/${deleted.id}`);
    t.match(await createPartner(shop, { handle: 'spring' }), { status: 201 });
  });
});

t.test('a derived handle avoids the values of links', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  await shop.link(partner, { value: 'grace' });
  await shop.link(partner, { value: 'Grace-2', param: 'via' });
  await shop.link(partner, { value: 'grace-3', param: 'partner' });
  t.match(await shop.partner({ email: 'grace@one.example.com' }), { handle: 'grace-3' });
  t.match(await shop.partner({ email: 'grace@two.example.com' }), { handle: 'grace-4' });
});

t.test('an email address that is taken is reported before the handle', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner({ handle: 'ada' });
  await shop.link(ada, { value: 'summer' });
  t.match(await createPartner(shop, { email: ada.email, handle: 'summer' }), taken('email', ada));
});

t.test('url_params cannot be changed so that a value stands for two partners', async (t) => {
  const shop = await openShop(rail);
  const [ada, bob] = [await shop.partner({ handle: 'ada' }), await shop.partner({ handle: 'bob' })];
  const link = await shop.link(ada, { value: 'Bob', param: 'partner' });
  const change = (url_params: string[]) =>
    shop.merchant.request('PATCH', `/v1/programs/${shop.program_id}`, { url_params });
  t.match(await change(['ref', 'partner']), taken('url_params', link));
  t.match(await shop.merchant.get(`/v1/programs/${shop.program_id}`), { url_params: ['ref', 'via'] });
  await shop.merchant.patch(`/v1/partners/${bob.id}`, { handle: 'robert' });
  t.match(
    await change(['ref', 'partner']),
    taken('url_params', link),
    'the old handle stays with its partner for a while',
  );
  await shop.merchant.delete(`/v1/links/${link.id}`);
  t.match(await change(['ref', 'partner']), { status: 200 });
});

t.test(
  'where a value stood for two partners before, clicks prefer the link, and the program can be changed',
  async (t) => {
    const shop = await openShop(rail);
    const [ada, bob] = [await shop.partner({ handle: 'ada' }), await shop.partner({ handle: 'bob' })];
    const link = await shop.link(ada);
    await rail.query(sql`update program.link set value = 'bob' where id = ${link.id}`);
    t.match(await shop.click(bob), { partner_id: ada.id, link_id: link.id });
    const { status } = await shop.merchant.request('PATCH', `/v1/programs/${shop.program_id}`, {
      name: 'Acme 2',
      url_params: ['via', 'ref', 'aff'],
    });
    t.equal(status, 200);
    t.match(await rail.audit(), [{ invariant: 'a handle or link value has one partner', subject_id: link.id }]);
    await shop.merchant.delete(`/v1/links/${link.id}`);
  },
);

t.test('a changed handle stays an alias of its partner for cookie_days', async (t) => {
  const shop = await openShop(rail, { cookie_days: 7 });
  const [ada, bob] = [await shop.partner({ handle: 'ada' }), await shop.partner({ handle: 'bob' })];
  const rename = (partner: Json, handle: string) =>
    shop.merchant.request('PATCH', `/v1/partners/${partner.id}`, { handle });
  await rename(ada, 'lovelace');
  t.match(await shop.click(ada), { partner_id: ada.id, link_id: null }, 'clicks by the old handle count');
  t.match(await shop.click({ handle: 'lovelace' }), { partner_id: ada.id });

  await t.test('and nobody else can take it meanwhile', async (t) => {
    t.match(await rename(bob, 'ada'), taken('handle', ada));
    t.match(await createPartner(shop, { handle: 'ada' }), taken('handle', ada));
    t.match(await createLink(shop, bob, { value: 'Ada' }), taken('value', ada));
    t.match(await shop.partner({ email: 'ada@one.example.com' }), { handle: 'ada-2' });
    t.match(await createLink(shop, ada, { value: 'ada' }), { status: 201 }, 'but its partner can');
    const [link] = (await shop.list('links')) as [Json];
    await shop.merchant.delete(`/v1/links/${link.id}`);
  });

  await t.test('which can also go back to it, and change it again', async (t) => {
    t.match(await rename(ada, 'ada'), { status: 200 });
    t.match(await rename(bob, 'lovelace'), taken('handle', ada));
    t.match(await rename(ada, 'countess'), { status: 200 });
    t.match(await rename(bob, 'ada'), taken('handle', ada));
  });

  await t.test('after that it is free', async (t) => {
    const [alias] = await rail.query<{ days: number }>(
      sql`select round(extract(epoch from expires_at - now()) / 86400)::int as days from program.handle_alias where handle = 'ada' and partner_id = ${ada.id}`,
    );
    t.equal(alias?.days, 7);
    await rail.query(sql`update program.handle_alias set expires_at = now() where partner_id = ${ada.id}`);
    t.match(
      await shop.merchant.request('POST', '/v1/clicks', {
        program_id: shop.program_id,
        value: 'ada',
        landing_url: 'https://acme.example.com/',
        visitor_token: fresh('visitor'),
      }),
      { status: 404 },
    );
    t.match(await rename(bob, 'ada'), { status: 200 });
    t.match(await shop.click(ada), { partner_id: bob.id });
    t.match(await rename(bob, 'bobby'), { status: 200 });
    t.match(await rename(ada, 'ada'), taken('handle', bob), 'it is the alias of whoever had it last');
  });

  await t.test('or when its partner is deleted', async (t) => {
    await shop.merchant.delete(`/v1/partners/${bob.id}`);
    t.match(await rename(ada, 'ada'), { status: 200 });
    t.match(await createPartner(shop, { handle: 'bobby' }), { status: 201 });
  });
});
