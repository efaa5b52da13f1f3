import t from 'tap';
import { language_codes } from '../../src/program/partners/mails/languages.ts';
import { eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { browse } from '../pages/browse.ts';
import { fresh, openShop } from '../shop.ts';
import { formAt, signedIn } from './partner_browser.ts';

const rail = await startRail();

t.test('postbacks: the secret once, a test, the log, sent again; three at most', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  const received = await startReceiver();
  const browser = await signedIn(shop, partner.id, rail.address);
  const page = await browser.get('/portal/postbacks');
  const refused = await browser.submit(formAt(page, '/portal/postbacks'), { url: 'ftp://example.com' });
  t.equal(refused.status, 400);
  t.match(formAt(refused, '/portal/postbacks')?.fields, { url: 'ftp://example.com' });
  const made = await browser.submit(formAt(page, '/portal/postbacks'), { url: received.url, description: 'Mine' });
  t.match(made.text, /whsec_/, made.text);
  const [endpoint] = (await shop.list('webhook_endpoints')) as [Json];
  t.match(endpoint, { partner_id: partner.id, url: received.url });
  const at = `/portal/postbacks/${endpoint.id}`;
  t.notMatch((await browser.get(at)).html, 'whsec_');
  const rotate = formAt(await browser.get(at), `${at}/rotate`);
  const [once, twice] = [await browser.submit(rotate), await browser.submit(rotate)];
  t.equal(once.text, twice.text, 'a second click shows the secret of the first');
  await browser.submit(formAt(await browser.get(at), `${at}/ping`));
  await shop.referred(partner);
  await shop.referred(await shop.partner());
  let log = await browser.get(at);
  await eventually(async () => {
    log = await browser.get(at);
    return /referral\.created.*Delivered/.test(log.text) && /referral\.lead.*Delivered/.test(log.text);
  }, 'the deliveries');
  const [, delivery] =
    log.links.find((href) => href.startsWith('/portal/deliveries/'))?.split('/portal/deliveries/') ?? [];
  const shown = await browser.get(`/portal/deliveries/${delivery}`);
  t.match(shown.text, /"partner_id"/);
  const before = received.received.length;
  t.match((await browser.submit(formAt(shown, `/portal/deliveries/${delivery}/replay`))).path, `${at}?done=replay`);
  await eventually(async () => received.received.length > before, 'the replay');
  for (let nth = 0; nth < 2; nth++)
    await browser.submit(formAt(await browser.get('/portal/postbacks'), '/portal/postbacks'), { url: received.url });
  const full = await browser.submit(formAt(await browser.get('/portal/postbacks'), '/portal/postbacks'), {
    url: received.url,
  });
  t.equal(full.status, 402);
  t.equal((await shop.list('webhook_endpoints')).length, 3);
  t.match((await browser.submit(formAt(await browser.get(at), `${at}/delete`))).path, '/portal/postbacks?done=saved');
  t.equal((await browser.get(at)).status, 404);
});

t.test('notifications, language, sessions, terms, a missing sale and a tax form', async (t) => {
  const shop = await openShop(rail, { terms_url: 'https://acme.example.com/terms', require_tax_forms: true });
  const { merchant, program_id } = shop;
  const { id } = await shop.partner();
  const [browser, elsewhere] = [await signedIn(shop, id, rail.address), await signedIn(shop, id, rail.address)];
  const settings = await browser.get('/portal/notifications');
  const form = formAt(settings, '/portal/notifications');
  const { email_new_referral: _, ...fields } = { ...form?.fields, language_code: 'de' } as Record<string, string>;
  const german = await browser.post('/portal/notifications', fields);
  t.match(await merchant.get(`/v1/partners/${id}`), {
    language_code: 'de',
    email_new_referral: false,
    email_payout_paid: true,
  });
  t.match(german.html, '<html lang="de">');
  await browser.submit(formAt(german, '/portal/sessions'));
  t.equal((await elsewhere.get('/portal')).path, '/portal/sign_in');
  t.equal((await browser.get('/portal')).path, '/portal');

  const terms = await browser.get('/portal/terms');
  await merchant.patch(`/v1/programs/${program_id}`, { terms_version: 'June' });
  const seen = formAt(terms, '/portal/terms')?.fields;
  const late = await browser.post('/portal/terms', { ...seen, accept: 'true' });
  t.equal(late.status, 400);
  t.match(late.html, 'Die Bedingungen haben sich inzwischen geändert');
  const current = formAt(late, '/portal/terms');
  await browser.post('/portal/terms', { ...current?.fields, accept: 'true' });
  t.match(await merchant.get(`/v1/partners/${id}`), { terms_version: 'June' });

  await shop.sale({ external_charge_id: 'order-77' });
  const missing = await browser.get('/portal/missing_sale');
  t.equal((await browser.submit(formAt(missing, '/portal/missing_sale'))).status, 400);
  const claimed = await browser.submit(formAt(missing, '/portal/missing_sale'), {
    external_charge_id: 'order-77',
    note: 'Mine',
  });
  t.match(claimed.path, '/portal/missing_sale?done=sent', 'what was found is not told');
  t.match(await shop.list('sale_claims'), [
    { partner_id: id, finding: 'found_without_click', status: 'open', note: 'Mine' },
  ]);

  const data = new FormData();
  data.append('file', new Blob(['%PDF-1.7 Ada'], { type: 'application/pdf' }), 'w9.pdf');
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const headers = { cookie, origin: rail.address };
  const handed = await fetch(`${rail.address}/portal/tax_form`, {
    method: 'POST',
    body: data,
    headers,
    redirect: 'manual',
  });
  t.equal(handed.headers.get('location'), '/portal/tax_form?done=saved');
  t.match(await merchant.get(`/v1/partners/${id}/tax_form`), { status: 'submitted' });
  const [stored] = await rail.query<{ content: Buffer }>(
    sql`select content from program.tax_form where partner_id = ${id}`,
  );
  t.match(rail.services.vault.decrypt(stored?.content as Buffer, id), '"name":"w9.pdf"');
  const post = (body: FormData) => fetch(`${rail.address}/portal/tax_form`, { method: 'POST', body, headers });
  data.set('file', new Blob(['<script>'], { type: 'application/pdf' }), 'w9.pdf');
  const page = await post(data);
  t.equal(page.status, 400, 'what a file is its bytes say');
  t.match(await page.text(), 'Wählen Sie eine PDF-, PNG- oder JPEG-Datei');
  data.set('file', new Blob(['%PDF-1.7 Ada']), 'w9.pdf');
  for (let nth = 0; nth < 10; nth++) data.append('more', 'x');
  t.equal((await post(data)).status, 400, 'a form of many parts is not read');
});

t.test(
  'a payout method is changed five times a day at most: each change mails the address of the account before',
  async (t) => {
    const shop = await openShop(rail, { payout_methods: ['paypal'] });
    const { id } = await shop.partner();
    const browser = await signedIn(shop, id, rail.address);
    const statuses: number[] = [];
    for (let nth = 1; nth <= 6; nth++) {
      const email = `account-${nth}@example.com`;
      statuses.push((await browser.post('/portal/payout_method', { kind: 'paypal', email, again: email })).status);
    }
    t.same(statuses, [200, 200, 200, 200, 200, 429]);
    t.match(await shop.merchant.get(`/v1/partners/${id}/payout_method`), { hint: 'nt-5' });
    const other_way = await browser.get('/portal/payout_method?method=crypto');
    t.notOk(other_way.html.includes('name="address"'), 'no way to be paid that the program does not offer');
  },
);

t.test('pages to join: private groups, pauses, and other languages', async (t) => {
  const shop = await openShop(rail, { name: fresh('Joinable') });
  const { merchant, program_id, program } = shop;
  const group = await merchant.post('/v1/groups', {
    program_id,
    name: 'Inner circle',
    is_private: true,
    landing_url: 'https://acme.example.com/inner',
  });
  const path = `/join/${program.subdomain}/${group.slug}`;
  const visitor = browse(rail.address);
  t.equal((await visitor.get('/join/nobody-has-this')).status, 404);
  t.equal((await visitor.get(`/join/${program.subdomain}/nobody`)).status, 404);
  t.equal((await visitor.get(path)).status, 404);
  t.equal((await visitor.get(`${path}?invitation=forged`)).status, 410);
  const { token: other } = await merchant.post(`/v1/groups/${group.id}/invitation`, { email: 'ada@example.com' });
  const mine = formAt(await visitor.get(`${path}?invitation=${other}`), path);
  t.match(
    (await visitor.submit(mine, { email: 'eve@example.com' })).text,
    'The invitation is for another email address',
  );
  const { token } = await merchant.post(`/v1/groups/${group.id}/invitation`);
  const page = await visitor.get(`${path}?invitation=${token}`);
  t.ok(page.links.includes('https://acme.example.com/inner'));
  const email = `${fresh('invited')}@example.com`;
  t.match((await visitor.submit(formAt(page, path), { email, language_code: 'es' })).html, '<html lang="es">');
  const [application] = (await shop.list('applications')) as [Json];
  t.match(application, { email, group_id: group.id });
  t.match(await merchant.get(`/v1/partners/${application.partner_id}`), { language_code: 'es', group_id: group.id });
  t.equal((await visitor.post(path, { email: 'eve@example.com' })).status, 404, 'without the invitation');
  await merchant.patch(`/v1/programs/${program_id}`, { status: 'paused' });
  t.equal((await visitor.get(`/join/${program.subdomain}`)).status, 409);
});

t.test('every page is there in six languages, each with its own words', async (t) => {
  const shop = await openShop(rail, { require_tax_forms: true });
  const { id } = await shop.partner();
  await shop.sale({ partner_id: id });
  const browser = await signedIn(shop, id, rail.address);
  const titles: string[] = [];
  for (const language of language_codes) {
    await shop.merchant.patch(`/v1/partners/${id}`, { language_code: language });
    const home = await browser.get('/portal');
    const pages = home.links.filter((href) => href.startsWith('/portal'));
    t.equal(new Set(pages).size >= 11, true, pages.join());
    for (const page of await Promise.all([...new Set(pages)].map((href) => browser.get(href)))) {
      t.equal(page.status, 200, page.path);
      t.match(page.html, `<html lang="${language}">`, page.path);
      t.notMatch(page.html, /undefined|\[object|NaN/, page.path);
      if (language !== 'en') t.notMatch(page.html, /Skip to|values from/, page.path);
    }
    for (const path of ['/portal/nothing', '/portal/commissions/com_nothing', '/portal/%00'])
      t.match((await browser.get(path)).html, `<html lang="${language}">`, path);
    const [, title = ''] = /<h1>(.*)<\/h1>/.exec((await browser.get('/portal/missing_sale')).html) ?? [];
    titles.push(title);
  }
  t.equal(new Set(titles).size, language_codes.length, titles.join());
  const asked = browse(rail.address);
  t.match((await asked.get('/portal/sign_in')).html, '<html lang="en">');
  for (const path of ['/portal/sign_in', '/portal/nothing', `/join/${shop.program.subdomain}`]) {
    const answer = await fetch(`${rail.address}${path}`, { headers: { 'accept-language': 'fr-CH, en;q=0.5' } });
    t.match(await answer.text(), /<html lang="fr">[\s\S]*Aller au contenu/, path);
  }
});

t.test('a service without an SMTP server says that it mails no links', async (t) => {
  for (const [area, text] of [
    ['portal', 'This service sends no email'],
    ['dashboard', 'npx --no rail user sign-in'],
  ]) {
    const browser = browse(rail.address);
    const page = await browser.get(`/${area}/sign_in`);
    t.match(page.text, text);
    t.same(page.forms, []);
    const sent = await browser.post(`/${area}/sign_in_link`, { email: 'ada@partner.example.com' });
    t.equal(sent.status, 503);
    t.match(sent.text, text);
  }
});
