import { createHmac } from 'node:crypto';
import type { Page } from 'playwright-core';
import t from 'tap';
import { openTab } from '../../browser.ts';
import { eventually, type Json, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';
import { startWebsites } from './websites.ts';

const rail = await startRail();
const sites = await startWebsites(rail.address);
const hosts = ['acme.test', 'www.acme.test', 'shop.test', 'far.test'];
const is_click = /^clk_[a-z0-9]{26}$/;

async function openSite(settings: Json = {}) {
  const shop = await openShop(rail, settings);
  const body = { program_id: shop.program_id, allowed_origins: hosts.map(sites.origin) };
  const key = await shop.merchant.post('/v1/publishable_keys', body);
  const ada = await shop.partner();
  const tag = (attributes = '', src = '/_rail/rail.js') =>
    `<script async src="${src}" data-key="${key.key}" ${attributes}></script>`;
  return { ...shop, key, ada, tag, ref: `ref=${ada.handle}` };
}

const clickOf = (page: Page): Promise<string | null> =>
  page.evaluate('new Promise((done) => (window.Rail ||= []).push((rail) => rail.click().then(done)))');
/** Everything that the page could find of the visitor. */
const traces = (page: Page): Promise<string> =>
  page.evaluate('document.cookie + Object.entries(localStorage) + Object.entries(sessionStorage)');
const consent = (page: Page, given: string) => page.evaluate(`Rail.consent(${given})`);
/** Leaves by a click, and gives the address that the browser asked for. */
async function follow(page: Page, selector: string): Promise<URL> {
  const asked = page.waitForRequest((request) => request.isNavigationRequest());
  await page.click(selector);
  const url = new URL((await asked).url());
  await page.waitForLoadState();
  return url;
}

t.test(
  'a visit, a reload, a route of the page, another domain and a checkout are one click of one visitor',
  async (t) => {
    const site = await openSite();
    const { page, context, errors } = await openTab();
    await context.route('https://buy.stripe.com/**', (route) =>
      route.fulfill({ contentType: 'text/html', body: 'Pay' }),
    );
    const shop = sites.page(
      'shop.test',
      '/buy',
      `${site.tag()}<a id="pay" href="https://buy.stripe.com/test_1?prefilled_email=a%40b.example">Pay</a>`,
    );
    const home = sites.page(
      'acme.test',
      '/',
      `${site.tag('data-domains="acme.test shop.test"')}<a id="own" href="/">Home</a><a id="shop" href="${shop}"><b>Shop</b></a><a id="far" href="${sites.page('far.test', '/', '')}">Far</a>`,
    );
    await page.goto(`${home}?${site.ref}`);
    const id = await clickOf(page);
    t.match(id, is_click);
    const [cookie, ...others] = await context.cookies();
    t.match(cookie, {
      name: 'rail_click',
      value: id,
      domain: '.acme.test',
      path: '/',
      secure: true,
      sameSite: 'Lax',
      httpOnly: false,
    });
    t.same(others, []);
    t.ok((cookie?.expires ?? 0) > Date.now() / 1_000 + 59 * 86_400, 'as long as cookie_days');
    await page.reload();
    t.equal(await clickOf(page), id);
    await page.evaluate(`history.pushState({}, '', '/pricing?${site.ref}&page=2')`);
    t.equal(await clickOf(page), id);
    await page.goto(home);
    t.equal((await follow(page, '#own')).search, '', 'links of the same host are left alone');
    t.equal((await follow(page, '#shop b')).searchParams.get('rail_click'), id);
    t.equal(await clickOf(page), id, 'the other domain goes on with it');
    t.equal((await context.cookies(shop)).find(({ name }) => name === 'rail_click')?.value, id);
    const paying = await follow(page, '#pay');
    t.same(Object.fromEntries(paying.searchParams), { prefilled_email: 'a@b.example', client_reference_id: id });
    await page.goto(home);
    t.equal((await follow(page, '#far')).search, '', 'nobody else is told');
    await eventually(async () => (await site.list('clicks')).every(({ referral_id }) => referral_id), 'attribution');
    t.equal((await site.list('clicks')).length, 1);
    t.equal((await site.list('referrals')).length, 1);
    t.match(await site.merchant.get(`/v1/publishable_keys/${site.key.id}`), { setup: 'first_party' });
    t.same(errors, []);
  },
);

t.test('a short link’s own click is taken over, and none is recorded beside it', async (t) => {
  const site = await openSite();
  const home = sites.page('acme.test', '/', site.tag());
  const { short_slug } = await site.link(site.ada, { destination_url: home, param: 'via' });
  const { page, errors } = await openTab();
  await page.goto(`${sites.origin('rail.test')}/r/${short_slug}`);
  t.equal(await clickOf(page), new URL(page.url()).searchParams.get('rail_click'));
  t.equal((await site.list('clicks')).length, 1);
  t.same(errors, []);
});

t.test('without consent nothing is kept; with it the cookie is; and withdrawal leaves nothing', async (t) => {
  const site = await openSite();
  const { page, context, errors } = await openTab();
  const home = sites.page('acme.test', '/', site.tag('data-consent="required"'));
  await page.goto(`${home}?${site.ref}`);
  t.equal(await clickOf(page), null);
  await page.evaluate(`history.pushState({}, '', '/two')`);
  t.equal(await traces(page), '');
  t.same(await site.list('clicks'), [], 'and nothing is sent');
  await consent(page, 'true');
  const id = await clickOf(page);
  t.match(id, is_click, 'the page before is remembered');
  t.match(await traces(page), `rail_click=${id}`);
  await page.goto(home);
  t.equal(await clickOf(page), id, 'consent is known by the cookie');
  await consent(page, 'false');
  t.equal(await clickOf(page), null);
  t.equal(await traces(page), '');
  t.same(await context.cookies(), []);
  await page.goto(`${home}?${site.ref}`);
  await consent(page, `'session'`);
  const of_session = await clickOf(page);
  t.match(of_session, is_click);
  await page.goto(home);
  t.equal(await clickOf(page), of_session, 'for this tab');
  t.same(await page.evaluate('[document.cookie, localStorage.length]'), ['', 0]);
  await consent(page, 'true');
  t.equal(await clickOf(page), of_session);
  t.match(await context.cookies(), [{ value: of_session }]);
  t.equal((await site.list('clicks')).length, 2);
  t.same(errors, []);
});

t.test('consent tools decide: TCF, Consent Mode, and Global Privacy Control', async (t) => {
  const site = await openSite();
  const gtag = 'window.dataLayer = window.dataLayer || []; function gtag() { dataLayer.push(arguments) }';
  const tools = `<script>${gtag}; gtag('consent', 'default', { ad_storage: 'denied' });
    let tell; window.__tcfapi = (command, version, then) => { if (command === 'addEventListener' && version === 2) tell = then }
    function tcf(agreed) { tell({ gdprApplies: true, eventStatus: 'useractioncomplete', purpose: { consents: { 1: agreed } } }, true) }</script>`;
  const home = sites.page('acme.test', '/', tools + site.tag('data-consent="required"'));
  for (const [agree, withdraw] of [
    [`gtag('consent', 'update', { ad_storage: 'granted' })`, `gtag('consent', 'update', { ad_storage: 'denied' })`],
    ['tcf(true)', 'tcf(false)'],
  ] as const) {
    const { page, errors } = await openTab();
    await page.goto(`${home}?${site.ref}`);
    t.equal(await clickOf(page), null);
    await page.evaluate(agree);
    t.match(await clickOf(page), is_click, agree);
    await page.evaluate(withdraw);
    t.equal(await clickOf(page), null, withdraw);
    t.equal(await traces(page), '');
    t.same(errors, []);
  }
  const { page, context } = await openTab();
  await context.addInitScript(`Object.defineProperty(navigator, 'globalPrivacyControl', { value: true })`);
  await page.goto(`${sites.page('acme.test', '/', site.tag())}?${site.ref}`);
  t.equal(await clickOf(page), null);
  t.equal(await traces(page), '', 'the header means: consent is required');
});

t.test('without cookies the click is counted, and the browser keeps nothing', async (t) => {
  const site = await openSite();
  const { page, context, errors } = await openTab();
  await page.goto(`${sites.page('acme.test', '/', site.tag('data-consent="cookieless"'))}?${site.ref}`);
  t.equal(await clickOf(page), null);
  await eventually(async () => (await site.list('clicks')).length === 1, 'the click');
  t.equal(await traces(page), '');
  t.same(await context.cookies(), []);
  t.same(errors, []);
});

t.test('from a domain of its own it works by CORS, and the script sets the cookie', async (t) => {
  const site = await openSite();
  const { page, context, errors } = await openTab();
  const src = `${sites.origin('rail.test')}/rail.js`;
  await page.goto(`${sites.page('www.acme.test', '/', site.tag('', src))}?${site.ref}`);
  const id = await clickOf(page);
  t.match(await context.cookies(), [{ name: 'rail_click', value: id, domain: '.acme.test', secure: true }]);
  t.match(await site.merchant.get(`/v1/publishable_keys/${site.key.id}`), { setup: 'third_party' });
  t.same(errors, []);
  const other = await openTab();
  await other.page.goto(`${sites.page('evil.test', '/', site.tag('', src))}?${site.ref}`);
  t.equal(await clickOf(other.page), null, 'an origin that is not allowed');
  t.equal((await site.list('clicks')).length, 1);
});

t.test(
  'tabs, back and forward, blocked storage, an older browser and a strict policy leave the console clean',
  async (t) => {
    const site = await openSite();
    const policy = { 'content-security-policy': "default-src 'self'; script-src 'self'; img-src data:" };
    const home = sites.page('acme.test', '/', `${site.tag()}<a id="next" href="/next">Next</a>`, policy);
    sites.page('acme.test', '/next', site.tag(), policy);
    const { page, context, errors } = await openTab();
    await page.goto(`${home}?${site.ref}`);
    const id = await clickOf(page);
    const second: Page = await context.newPage();
    await second.goto(`${home}?${site.ref}`);
    t.equal(await clickOf(second), id);
    await follow(page, '#next');
    await page.goBack();
    t.equal(await clickOf(page), id);
    await page.goForward();
    t.equal(await clickOf(page), id);
    t.equal((await site.list('clicks')).length, 1);
    t.same(errors, []);

    const blocked = await openTab();
    await blocked.context.addInitScript(`
    for (const kind of ['localStorage', 'sessionStorage']) Object.defineProperty(window, kind, { get() { throw new DOMException('blocked', 'SecurityError') } });
    Object.defineProperty(Document.prototype, 'cookie', { get() { throw new DOMException('blocked', 'SecurityError') }, set() { throw new DOMException('blocked', 'SecurityError') } });
    delete window.navigation;`);
    await blocked.page.goto(`${home}?${site.ref}`);
    t.match(await clickOf(blocked.page), is_click);
    await blocked.page.evaluate(`history.pushState({}, '', '/?${site.ref}')`);
    t.equal((await site.list('clicks')).length, 2);
    const other = await site.partner();
    await blocked.page.evaluate(`history.replaceState({}, '', '/?via=${other.handle}')`);
    await eventually(async () => (await site.list('clicks')).length === 3, 'the click of another partner');
    await blocked.page.evaluate('Rail.consent(false)');
    t.same(blocked.errors, []);
  },
);

t.test('hostile pages: taken names, frozen prototypes, what is missing, and a copy that is pinned', async (t) => {
  const site = await openSite();
  const { script } = await import('../../../src/program/snippet/snippet_tag.ts');
  const pinned = (integrity: string) =>
    site.tag(`integrity="${integrity}" crossorigin="anonymous"`, `${sites.origin('rail.test')}${script().path}`);
  const clobbered = '<a id="Rail" href="/a">Rail</a><form name="currentLocation"></form>';
  const freeze = `for (const one of [Object, Array, Function, Promise, String, RegExp, Map, History]) Object.freeze(one.prototype);`;
  const cases: [what: string, body: string, init: string, records: boolean][] = [
    ['an element called Rail', clobbered + site.tag(), '', true],
    ['another Rail', `<script>window.Rail = { version: '8.0', click() {} }</script>${site.tag()}`, '', true],
    ['frozen prototypes', site.tag(), freeze, true],
    [
      'no crypto, no navigation',
      site.tag(),
      `for (const one of ['crypto', 'navigation']) Object.defineProperty(window, one, { value: undefined })`,
      true,
    ],
    ['parameters that are not encoded', site.tag('data-params="100% ref"'), '', false],
    ['no fetch', site.tag(), 'delete window.fetch; window.fetch = undefined', false],
    ['a pinned copy of another origin', pinned(script().integrity), '', true],
  ];
  let count = 0;
  for (const [what, body, init, records] of cases) {
    const { page, context, errors } = await openTab();
    if (init) await context.addInitScript(init);
    await page.goto(`${sites.page('acme.test', '/', body)}?${site.ref}`);
    await page.waitForFunction('window.Rail?.lead');
    const id = await page.evaluate('Rail.click()');
    if (records) count++;
    t.match(String(id), records ? is_click : /^null$/, what);
    t.same(await page.evaluate('Rail.lead()'), { recorded: false, verified: false }, what);
    t.same(
      errors.filter((error) => !error.includes('400')),
      [],
      what,
    );
    await context.close();
  }
  t.equal((await site.list('clicks')).length, count);
  const { page } = await openTab();
  const other = pinned(script().integrity.replace(/.$/, (sign) => (sign === 'A' ? 'B' : 'A')));
  await page.goto(`${sites.page('acme.test', '/', other)}?${site.ref}`);
  t.equal(await page.evaluate('typeof window.Rail'), 'undefined', 'a copy that was changed does not run');
  t.equal((await site.list('clicks')).length, count);
});

t.test('the page works on where Rail cannot be reached, and what is asked of the script ends', async (t) => {
  const site = await openSite();
  const home = sites.page('acme.test', '/', `${site.tag()}<button onclick="this.textContent = 'done'">Buy</button>`);
  const { page, context } = await openTab();
  const thrown: string[] = [];
  context.on('weberror', (error) => thrown.push(error.error().message));
  await context.route('**/v1/*', (route) => route.abort());
  await page.goto(`${home}?${site.ref}`);
  t.equal(await clickOf(page), null);
  t.same(await page.evaluate(`Rail.lead({ email: 'grace@customer.example.com' })`), {
    recorded: false,
    verified: false,
  });
  sites.is_cut_off = true;
  await page.goto(`${home}?${site.ref}`);
  await page.click('button');
  t.equal(await page.textContent('button'), 'done');
  t.equal(await page.evaluate('typeof window.Rail'), 'undefined', 'the script itself did not come');
  sites.is_cut_off = false;
  t.same(thrown, []);
});

t.test('checkouts are given the click: elements, fields, forms and Paddle', async (t) => {
  const site = await openSite();
  const forms = `<form id="get" action="https://shop.test:${sites.port}/buy"><input name="plan" value="pro"><button>Get</button></form>
    <form id="post" method="post" action="https://shop.test:${sites.port}/buy"><input name="action" value="x"><button>Post</button></form>
    <form id="own" method="post" action="/order"><input type="hidden" name="rail_click"><button>Order</button></form>
    <a id="chargebee" href="https://acme.chargebee.com/hosted_pages/plans/pro">Pro</a>
    <a id="taken" href="https://buy.stripe.com/test_1?client_reference_id=order_1">Pay</a>`;
  const elements =
    '<stripe-buy-button></stripe-buy-button><stripe-pricing-table client-reference-id="mine"></stripe-pricing-table>';
  const paddle =
    '<script>window.opened = []; window.Paddle = { Checkout: { open(options) { opened.push(options) } } }</script>';
  const home = sites.page('acme.test', '/', paddle + site.tag('data-domains="shop.test"') + elements + forms);
  sites.page('shop.test', '/buy', 'Shop');
  const { page, context, errors } = await openTab();
  for (const pattern of ['https://buy.stripe.com/**', 'https://acme.chargebee.com/**'])
    await context.route(pattern, (route) => route.fulfill({ contentType: 'text/html', body: 'Pay' }));
  await page.goto(`${home}?${site.ref}`);
  const id = await clickOf(page);
  await page.evaluate(`document.body.append(document.createElement('stripe-pricing-table'))`);
  const given = `[...document.querySelectorAll('stripe-buy-button, stripe-pricing-table')].map((one) => one.getAttribute('client-reference-id'))`;
  t.same(await page.evaluate(given), [id, 'mine', id]);
  t.equal(await page.inputValue('#own input'), id);
  await page.evaluate(`Paddle.Checkout.open({ items: [1], customData: { order: 7 } })`);
  t.same(await page.evaluate('opened'), [{ items: [1], customData: { rail_click: id, order: 7 } }]);
  const back = () => page.goto(home);
  t.same(Object.fromEntries((await follow(page, '#get button')).searchParams), { plan: 'pro', rail_click: id });
  await back();
  t.same(Object.fromEntries((await follow(page, '#post button')).searchParams), { rail_click: id });
  await back();
  t.equal((await follow(page, '#chargebee')).searchParams.get('cf_rail_click'), id);
  await back();
  t.equal(
    (await follow(page, '#taken')).searchParams.get('client_reference_id'),
    'order_1',
    'what the merchant has set stays',
  );
  t.same(errors, []);
});

t.test('what was given a click gets the next one, and loses it when consent is withdrawn', async (t) => {
  const site = await openSite();
  const [home, other] = ['/', '/other'].map((path) =>
    sites.page(
      'acme.test',
      path,
      `${site.tag('data-domains="shop.test"')}<stripe-buy-button></stripe-buy-button>
        <stripe-pricing-table client-reference-id="mine"></stripe-pricing-table>
        <form><input name="rail_click"></form><a id="pay" href="https://buy.stripe.com/test_1">Pay</a>
        <a id="shop" href="https://shop.test:${sites.port}/buy?plan=pro">Shop</a><a id="top" href="#top">Top</a>`,
    ),
  ) as [string, string];
  const bob = await site.partner();
  const { short_slug } = await site.link(bob, { destination_url: other, param: 'via' });
  const { page, errors } = await openTab();
  const given = (): Promise<string[]> =>
    page.evaluate(`[...document.querySelectorAll('stripe-buy-button, stripe-pricing-table')].map((one) => one.getAttribute('client-reference-id'))
      .concat(document.querySelector('input').value, [...document.links].map((one) => one.getAttribute('href').replace(/.*[?]/, '')))`);
  await page.evaluate(`addEventListener('click', (event) => event.preventDefault())`);
  await page.goto(`${home}?${site.ref}`);
  const first = await clickOf(page);
  await page.goto(`${sites.origin('rail.test')}/r/${short_slug}`);
  const second = await clickOf(page);
  t.not(second, first);
  await eventually(async () => (await given())[0] === second, 'the new click at the checkout');
  await page.evaluate(`addEventListener('click', (event) => event.preventDefault())`);
  for (const id of ['#pay', '#shop', '#top']) await page.click(id);
  const named = [`client_reference_id=${second}`, `plan=pro&rail_click=${second}`, '#top'];
  t.same(await given(), [second, 'mine', second, ...named]);
  await consent(page, 'false');
  t.same(await given(), ['', 'mine', '', 'client_reference_id=', 'plan=pro&rail_click=', '#top']);
  t.same(errors, []);
});

t.test('a page reports a sign-up, and the merchant’s server vouches for it', async (t) => {
  const site = await openSite();
  const { page, errors } = await openTab();
  const early = `<script>window.Rail = []; Rail.push((rail) => rail.lead({ email: 'early@customer.example.com' }).then((answer) => { window.early = answer }))</script>`;
  await page.goto(`${sites.page('acme.test', '/', early + site.tag())}?${site.ref}`);
  const id = await clickOf(page);
  await page.waitForFunction('window.early');
  t.same(await page.evaluate('window.early'), { object: 'tracked_lead', recorded: true, verified: false });
  const [email, identifier] = ['early@customer.example.com', 'user_42'];
  const signature = createHmac('sha256', site.key.signing_secret).update([email, '', id].join('|')).digest('hex');
  t.match(await page.evaluate(`Rail.lead({ email: '${email}', signature: '${signature}' })`), {
    recorded: true,
    verified: true,
  });
  t.match(await page.evaluate(`Rail.lead({ identifier: '${identifier}' })`), { recorded: true, verified: false });
  t.match(await site.list('customers'), [
    { identifier, verified: false },
    { email, verified: true },
  ]);
  t.same(errors, []);
});

t.test('the page of the demo shows the click, records a sign-up, and forgets', async (t) => {
  const site = await openSite();
  const { demoKey } = await import('../../../src/program/snippet/demo_page.ts');
  const { transaction } = await import('../../../src/core/postgres/transaction.ts');
  const services = { ...rail.services, base_url: rail.address };
  const made = () =>
    transaction(rail.store, { organization_id: site.merchant.organization_id, request_id: null }, (tx) =>
      demoKey(tx, site.program_id, services),
    );
  const { publishable_key } = await made();
  t.same(await made(), { publishable_key }, 'the next start finds it');
  Object.assign(rail.services, { demo_key: publishable_key });
  const { page, errors } = await openTab();
  await page.goto(`${rail.address}/demo?${site.ref}`);
  const shown = (selector: string, text: RegExp) =>
    eventually(async () => text.test((await page.textContent(selector)) ?? ''), `${text} on the page`);
  await shown('#click', /^clk_/);
  await page.click('#lead button');
  await shown('#recorded', /^Recorded/);
  await page.click('#forget');
  await shown('#click', /^none/);
  t.match(await site.list('customers'), [{ verified: false }]);
  t.same(errors, []);
});
