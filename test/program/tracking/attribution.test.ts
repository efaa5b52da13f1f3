import t from 'tap';
import { type Credit, creditOf, earnsCredit, windowEnd } from '../../../src/program/tracking/attribution.ts';
import { eventually, log, sql, startRail, startWorker } from '../../harness.ts';
import { fresh, openShop, types } from '../../shop.ts';

const rail = await startRail({ worker: false });

/** Lets the jobs run that are left. */
async function attributed(): Promise<void> {
  const worker = startWorker({ url: rail.url, store: rail.store, services: rail.services, concurrency: 4, log });
  const left = sql`select 1 from program.click where attributed_at is null`;
  await eventually(async () => (await rail.query(left)).length === 0, 'all clicks to be attributed');
  await worker.stop();
}

const ada = 'part_ada';
const grace = 'part_grace';
const later = '2026-12-01T00:00:00.000Z';
const earlier = '2026-10-01T00:00:00.000Z';
const click = { partner_id: ada, created_at: '2026-11-01T00:00:00.000Z' };

t.test('the effect of a click on the live referral of its visitor', (t) => {
  const referral = (partner_id: string, status: 'visit' | 'lead' | 'converted', expires_at = later) => ({
    partner_id,
    status,
    expires_at,
  });
  const cases: [what: string, live: Parameters<typeof creditOf>[0], last_click: Credit, first_click: Credit][] = [
    ['a first visit makes one', undefined, 'create', 'create'],
    ['a visit through the same partner renews it', referral(ada, 'visit'), 'renew', 'renew'],
    ['even after its window', referral(ada, 'visit', earlier), 'renew', 'renew'],
    [
      'a visit through another partner moves the credit under last_click alone',
      referral(grace, 'visit'),
      'move',
      'keep',
    ],
    ['a window that has passed protects nobody', referral(grace, 'visit', earlier), 'move', 'move'],
    ['nor one that ends with the click', referral(grace, 'visit', click.created_at), 'move', 'move'],
    ['a lead stays', referral(grace, 'lead'), 'keep', 'keep'],
    ['a lead stays, its window passed or not', referral(grace, 'lead', earlier), 'keep', 'keep'],
    ['a converted one stays', referral(grace, 'converted'), 'keep', 'keep'],
    ['and is not renewed by its own partner', referral(ada, 'converted'), 'keep', 'keep'],
  ];
  for (const [what, live, last_click, first_click] of cases) {
    t.equal(creditOf(live, click, 'last_click'), last_click, `${what} (last_click)`);
    t.equal(creditOf(live, click, 'first_click'), first_click, `${what} (first_click)`);
  }
  t.end();
});

t.test('bots, blocked countries and partners who are not active earn no credit', (t) => {
  const visit = { country: 'DE', is_bot: false, made_while_paused: false, partner_status: 'active' as const };
  const cases: [what: string, click: Parameters<typeof earnsCredit>[0], earns: boolean][] = [
    ['a visit', visit, true],
    ['a visit of which nothing is known', { ...visit, country: null }, true],
    ['a blocked country', { ...visit, country: 'KP' }, false],
    ['a robot', { ...visit, is_bot: true }, false],
    ['a suspended partner', { ...visit, partner_status: 'suspended' }, false],
    ['a paused program', { ...visit, made_while_paused: true }, false],
    ['a deleted partner', { ...visit, partner_status: null }, false],
  ];
  for (const [what, given, earns] of cases) t.equal(earnsCredit(given, ['KP', 'IR']), earns, what);
  t.end();
});

t.test('the attribution window ends whole days of 24 hours after the click', (t) => {
  t.equal(windowEnd('2026-01-31T10:30:00.250Z', 1), '2026-02-01T10:30:00.250Z');
  t.equal(windowEnd('2028-02-28T00:00:00.000Z', 2), '2028-03-01T00:00:00.000Z');
  t.equal(windowEnd('2026-03-01T00:00:00.000Z', 365), '2027-03-01T00:00:00.000Z');
  t.end();
});

t.test('clicks are attributed in their order, whichever job runs first', async (t) => {
  const visitors = Array.from({ length: 20 }, () => fresh('visitor'));
  const shops = await Promise.all(
    (['last_click', 'first_click'] as const).map((attribution) => openShop(rail, { attribution })),
  );
  const partners = await Promise.all(shops.map(async (shop) => [await shop.partner(), await shop.partner()] as const));
  for (const [nth, shop] of shops.entries()) {
    for (const partner of partners[nth] ?? [])
      await Promise.all(visitors.map((visitor_token) => shop.click(partner, { visitor_token })));
  }
  // As after a crash, when the oldest jobs come last.
  await rail.query(sql`update graphile_worker._private_jobs set priority = -id::int`);
  await attributed();
  for (const [nth, [first, last]] of partners.entries()) {
    const shop = shops[nth] as (typeof shops)[number];
    const credited = await shop.list('referrals');
    t.same(
      [...new Set(credited.map(({ partner_id }) => partner_id))],
      [shop.program.attribution === 'last_click' ? last.id : first.id],
    );
    t.equal(credited.length, visitors.length);
  }

  await t.test('also whichever click of a visitor a request refers to first', async (t) => {
    const shop = await openShop(rail);
    const [ada, bob] = [await shop.partner(), await shop.partner()];
    const visitor_token = fresh('visitor');
    const first = await shop.click(ada, { visitor_token });
    await shop.click(bob, { visitor_token });
    await shop.events();
    t.match(await shop.customer({ click_id: first.id }), { partner_id: bob.id });
    t.same(types(await shop.events()), ['referral.created', 'referral.deleted', 'referral.created', 'referral.lead']);
  });
});

t.test('the utm parameters of the landing page are recorded, without NUL', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  const landing_url = 'https://acme.example.com/?utm_source=%00ma%00il&utm_%00medium=x';
  const secret = landing_url.replace('https://', 'https://grace:secret@');
  const referrer = 'https://grace:secret@blog.example.com/a?b=c';
  const without_login = { landing_url, referer: 'https://blog.example.com/a?b=c' };
  t.match(await shop.click(partner, { landing_url: secret, referrer }), without_login, 'without what logs in');
  t.match(await shop.click(partner, { referrer: 'grace, by word of mouth' }), { referer: 'grace, by word of mouth' });
  const { id: click_id } = await shop.click(partner, { landing_url });
  const { referral_id } = await shop.customer({ click_id });
  const utm = { source: 'mail', medium: 'x' };
  t.match(await shop.merchant.get(`/v1/referrals/${referral_id}`), { landing_url, utm });

  await t.test('also for a short link', async (t) => {
    const link = await shop.link(partner, { destination_url: landing_url });
    const answer = await fetch(`${rail.address}/r/${link.short_slug}`, {
      redirect: 'manual',
      headers: { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0' },
    });
    const [click] = await shop.list('clicks', `link_id=${link.id}`);
    t.equal(answer.headers.get('location'), `${link.url}&rail_click=${click?.id}`);
    const customer = await shop.customer({ click_id: click?.id });
    t.match(await shop.merchant.get(`/v1/referrals/${customer.referral_id}`), { link_id: link.id, utm });
  });
});

t.test('an expired visit is superseded by the click that a sign-up refers to', async (t) => {
  for (const attribution of ['first_click', 'last_click']) {
    const shop = await openShop(rail, { attribution });
    const days = (count: number) => sql`${`${count} days`}::interval`;
    const clicksOf = async () => {
      const [ada, bob] = [await shop.partner(), await shop.partner()];
      const visitor_token = fresh('visitor');
      // Under last_click, Ada is the later one: her visit is the live one either way.
      const earlier = attribution === 'first_click' ? ada : bob;
      const later = earlier === ada ? bob : ada;
      const first = await shop.click(earlier, { visitor_token });
      const second = await shop.click(later, { visitor_token });
      await attributed();
      await shop.events();
      return { ada, bob, bobs: earlier === bob ? first : second };
    };
    const lapsed = await clicksOf();
    await rail.query(
      sql`update program.referral set expires_at = now() - ${days(10)} where partner_id = ${lapsed.ada.id}`,
    );
    await rail.query(sql`update program.click set created_at = now() - ${days(20)} where id = ${lapsed.bobs.id}`);
    const deleted = await clicksOf();
    await shop.merchant.delete(`/v1/partners/${deleted.ada.id}`);
    await shop.events();
    for (const { ada, bob, bobs } of [lapsed, deleted]) {
      const customer = await shop.customer({ click_id: bobs.id });
      t.match(customer, { partner_id: bob.id });
      t.match(await shop.merchant.get(`/v1/clicks/${bobs.id}`), { referral_id: customer.referral_id });
      t.match(await shop.events(), [
        { type: 'referral.deleted', data: { partner_id: ada.id, reason: 'reattributed' } },
        { type: 'referral.created', data: { partner_id: bob.id, referral_id: customer.referral_id } },
        { type: 'referral.lead', data: { partner_id: bob.id } },
      ]);
    }
  }

  await t.test('unless that click earns no credit itself', async (t) => {
    const shop = await openShop(rail, { attribution: 'first_click' });
    const [ada, bob] = [await shop.partner(), await shop.partner()];
    const visitor_token = fresh('visitor');
    await shop.click(ada, { visitor_token });
    const { id: click_id } = await shop.click(bob, { visitor_token });
    await attributed();
    await shop.merchant.patch(`/v1/partners/${bob.id}`, { status: 'suspended' });
    await shop.merchant.delete(`/v1/partners/${ada.id}`);
    t.match(await shop.merchant.request('POST', '/v1/customers', { program_id: shop.program.id, click_id }), {
      status: 409,
      body: { error: { code: 'click_without_credit', param: 'click_id' } },
    });
  });
});

t.test(
  'a click that earns no credit leaves the live referral, whether a request refers to it before or after its job',
  async (t) => {
    const shop = await openShop(rail);
    await shop.rule();
    const [ada, bob] = [await shop.partner(), await shop.partner()];
    await shop.merchant.patch(`/v1/partners/${bob.id}`, { status: 'suspended' });
    for (const wait of [attributed, async () => {}]) {
      for (const [partner, fields] of [
        [bob, {}],
        [ada, { user_agent: 'Googlebot/2.1 (+http://www.google.com/bot.html)' }],
      ] as const) {
        const visitor_token = fresh('visitor');
        const earned = await shop.click(ada, { visitor_token });
        const { id: click_id } = await shop.click(partner, { visitor_token, ...fields });
        await wait();
        const customer = await shop.customer({ click_id });
        t.match(customer, { partner_id: ada.id });
        t.match(await shop.merchant.get(`/v1/clicks/${earned.id}`), { referral_id: customer.referral_id });
        t.match(await shop.merchant.get(`/v1/clicks/${click_id}`), { referral_id: null });
        t.match(await shop.sale({ click_id }), { customer_id: customer.id, partner_id: ada.id });
      }
    }
  },
);
