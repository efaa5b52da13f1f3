import t from 'tap';
import { createKey } from '../../../src/core/access/api_key.ts';
import { callerOf, eventually, type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';

const rail = await startRail();

/** The open flags of a kind, once there are so many. */
async function flags(shop: Shop, kind: string, count = 1): Promise<Json[]> {
  const found = () => shop.list('risk_flags', `kind=${kind}`);
  await eventually(async () => (await found()).length >= count, `a flag of ${kind}`);
  return found();
}

/** Waits until no job is left that might raise a flag. */
const quiet = () =>
  eventually(async () => {
    const jobs = sql`
      select 1 from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
      where t.identifier in ('program/assess_risk', 'program/attribute_clicks')`;
    return (await rail.query(jobs)).length === 0;
  }, 'the jobs to be done');

t.test('clicks: blocked country, paid ads and click velocity', async (t) => {
  const shop = await openShop(rail, { blocked_countries: ['KP'] });
  const partner = await shop.partner();
  const scanned = await shop.partner();
  const scan = { user_agent: 'BarracudaCentral-Bot/1.0', ip: '203.0.113.10', country: 'KP' };
  const landing_url = 'https://acme.example.com/?gclid=abc';
  await Promise.all(Array.from({ length: 21 }, () => shop.click(scanned, { ...scan, landing_url })));
  await shop.click(scanned, { ip: scan.ip });
  const blocked = await shop.click(partner, { country: 'KP' });
  t.match(await flags(shop, 'blocked_country'), [
    { partner_id: partner.id, customer_id: null, severity: 'low', evidence: { click_id: blocked.id, country: 'KP' } },
  ]);
  const paid = await shop.click(partner, { landing_url: 'https://acme.example.com/?gclid=abc' });
  t.match(await flags(shop, 'paid_ad_traffic'), [
    { severity: 'medium', evidence: { click_id: paid.id, parameter: 'gclid' } },
  ]);
  for (let nth = 0; nth < 21; nth++) await shop.click(partner, { ip: '203.0.113.7' });
  t.match(await flags(shop, 'click_velocity'), [
    { partner_id: partner.id, severity: 'medium', evidence: { clicks: 21 } },
  ]);
  await quiet();
  t.same(await shop.list('risk_flags', `partner_id=${scanned.id}`), [], 'a scanner says nothing against the partner');
});

t.test('sign-ups: self-referral, disposable email address and many from one IP address', async (t) => {
  const shop = await openShop(rail, { block_self_referrals: false });
  const partner = await shop.partner({ email: 'ada@example.com' });
  const own = await shop.customer({ partner_id: partner.id, email: 'a.da+x@example.com' });
  t.match(await flags(shop, 'self_referral'), [{ customer_id: own.id, partner_id: partner.id, severity: 'high' }]);
  const thrown_away = await shop.customer({ partner_id: partner.id, email: 'x@mailinator.com' });
  t.match(await flags(shop, 'disposable_email'), [
    { customer_id: thrown_away.id, evidence: { host: 'mailinator.com' } },
  ]);
  for (let nth = 0; nth < 3; nth++) {
    await shop.customer({ click_id: (await shop.click(partner, { ip: '203.0.113.8' })).id });
  }
  await quiet();
  t.same(await shop.list('risk_flags', 'kind=same_ip'), [], 'three are a household');
  const fourth = await shop.customer({ click_id: (await shop.click(partner, { ip: '203.0.113.8' })).id });
  t.match(await flags(shop, 'same_ip'), [{ customer_id: fourth.id, evidence: { customers: 4 } }]);
});

t.test('sign-ups: many from one address of a visitor, however many others click from the other ones', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  const home = { ip: '203.0.113.20' };
  for (let nth = 0; nth < 3; nth++) await shop.customer({ click_id: (await shop.click(partner, home)).id });
  const visitor_token = fresh('visitor');
  const clicks = [await shop.click(partner, { ...home, visitor_token })];
  for (let nth = 1; nth < 10; nth++) clicks.push(await shop.click(partner, { ip: `198.51.100.${nth}`, visitor_token }));
  await quiet();
  const others = await rail.query(sql`
    insert into program.click (organization_id, id, program_id, partner_id, link_id, referral_id, param, value, visitor_token, ip_hash, attributed_at, created_at)
    select c.organization_id, core.new_id('clk'), c.program_id, c.partner_id, c.link_id, 'ref_00' || right(core.new_id('ref'), 24), c.param, c.value, 'other' || n, c.ip_hash,
      c.attributed_at, c.created_at
    from program.click c, generate_series(1, 99) as n
    where c.id = any(${clicks.slice(1).map(({ id }) => id)})
    returning id`);
  const fourth = await shop.customer({ click_id: clicks[0]?.id });
  await quiet();
  t.match(await shop.list('risk_flags', 'kind=same_ip'), [{ customer_id: fourth.id, evidence: { customers: 4 } }]);
  await rail.query(sql`delete from program.click where id = any(${others.map(({ id }) => id)})`);
});

t.test('sign-ups: the partner’s own browser, and email addresses changed later', async (t) => {
  const shop = await openShop(rail, { block_self_referrals: false });
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const own = { ip: '203.0.113.9', user_agent: 'Mozilla/5.0 (Macintosh) Version/26.0 Safari/605.1.15' };
  await shop.customer({ click_id: (await shop.click(ada, own)).id, email: ada.email });
  const other = await shop.customer({ click_id: (await shop.click(ada, own)).id });
  const raised = await flags(shop, 'self_referral', 2);
  t.match(
    raised.find(({ customer_id }) => customer_id === other.id),
    { partner_id: ada.id, evidence: { matched: 'browser' } },
  );
  const disguised = await shop.referred(bob);
  await quiet();
  await shop.merchant.patch(`/v1/customers/${disguised.id}`, { email: bob.email });
  const [newest] = await flags(shop, 'self_referral', 3);
  t.match(newest, { customer_id: disguised.id, partner_id: bob.id, evidence: { matched: 'email' } });
});

t.test('sales: conversion velocity and refund rate', async (t) => {
  const shop = await openShop(rail);
  const [fast, returned] = [await shop.partner(), await shop.partner()];
  for (let nth = 0; nth < 11; nth++) {
    await shop.sale({ partner_id: fast.id, customer: { external_customer_id: fresh('cus') } });
  }
  t.match(await flags(shop, 'conversion_velocity'), [{ partner_id: fast.id, evidence: { first_sales: 11 } }]);
  const { id: customer_id } = await shop.customer({ partner_id: returned.id });
  const sales: Json[] = [];
  for (let nth = 0; nth < 5; nth++) sales.push(await shop.sale({ customer_id }));
  await shop.refund(sales[0] as Json);
  await shop.refund(sales[1] as Json);
  t.match(await flags(shop, 'refund_rate'), [
    { partner_id: returned.id, severity: 'high', evidence: { refunded_bps: 4_000, sales: 5 } },
  ]);
});

t.test('partners: duplicate mailbox', async (t) => {
  const shop = await openShop(rail);
  const first = await shop.partner({ email: 'ada.lovelace@example.com' });
  const second = await shop.partner({ email: 'adalovelace+2@example.com' });
  t.match(await flags(shop, 'duplicate_partner'), [
    { partner_id: second.id, evidence: { other_partner_id: first.id } },
  ]);
});

t.test('one flag of a kind is open per partner or customer, and resolving it requires a note', async (t) => {
  const shop = await openShop(rail);
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  const advertise = (partner: Json) => shop.click(partner, { landing_url: 'https://acme.example.com/?fbclid=1' });
  for (const partner of [ada, ada, ada, bob]) await advertise(partner);
  await quiet();
  const open = await flags(shop, 'paid_ad_traffic', 2);
  t.same(open.map(({ partner_id }) => partner_id).sort(), [ada.id, bob.id].sort());
  const raised = (await shop.events()).filter(({ type }) => type === 'risk_flag.created');
  t.equal(raised.length, 2);

  const flag = open.find(({ partner_id }) => partner_id === ada.id) as Json;
  const resolve = (body: Json) => shop.merchant.request('POST', `/v1/risk_flags/${flag.id}/resolve`, body);
  for (const note of [undefined, '', '  ']) {
    t.match(await resolve({ resolution: 'dismissed', note }), { status: 400, body: { error: { param: 'note' } } });
  }
  const { status, body } = await resolve({ resolution: 'confirmed', note: 'Bids on the brand.' });
  t.equal(status, 200);
  t.match(body, { status: 'confirmed', note: 'Bids on the brand.', resolved_by: /^usr_/, resolved_at: String });
  const [resolved] = await shop.events();
  t.same(resolved?.data, {
    risk_flag_id: flag.id,
    partner_id: ada.id,
    customer_id: null,
    kind: 'paid_ad_traffic',
    severity: 'medium',
    status: 'confirmed',
    note: 'Bids on the brand.',
    resolved_by: body.resolved_by,
  });
  t.match(await resolve({ resolution: 'dismissed', note: 'Again.' }), { status: 409 });

  const { organization_id } = shop.merchant;
  const terms = { organization_id, name: 'robot', mode: 'live' as const, scopes: ['*'] };
  const { id, secret } = await createKey(rail.store.database, terms);
  const other = open.find(({ partner_id }) => partner_id === bob.id) as Json;
  const dismissal = { resolution: 'dismissed', note: 'A brand of their own.' };
  const robot = callerOf(rail.address, secret, organization_id);
  const dismissed = await robot.post(`/v1/risk_flags/${other.id}/resolve`, dismissal);
  t.equal(dismissed.resolved_by, id, 'a key of no user');
  await advertise(ada);
  await flags(shop, 'paid_ad_traffic', 3);
});
