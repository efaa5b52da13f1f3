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
  t.match(await createLink(shop, ada, { value: 'Ada' }), { status: 201 });
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
  t.match(await change(['ref', 'partner']), { status: 200 });
  t.match(await createPartner(shop, { handle: 'bob' }), taken('handle', link));
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
