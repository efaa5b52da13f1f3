import t from 'tap';
import { language_codes } from '../../src/program/partners/mails/languages.ts';
import { awayFromMidnight, eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { browse } from '../pages/browse.ts';
import { bank } from '../program/payouts/fixture.ts';
import { fresh, openShop } from '../shop.ts';
import { formAt, signedIn } from './partner_browser.ts';

const rail = await startRail();

t.test('join, approve, sign in, link, sale, payout: without scripts', async (t) => {
  await awayFromMidnight();
  const shop = await openShop(rail, {
    name: `Tea & Co ${fresh('p')}`,
    terms_url: 'https://acme.example.com/terms',
    terms_version: 'May',
    holding_period_days: 0,
    min_payout_minor: 0,
    questions: [
      { key: 'audience', label: 'Who reads <you>?', kind: 'long_text', required: true },
      { key: 'topics', label: 'About what?', kind: 'choices', options: ['Bread', 'Tea'] },
      { key: 'adult', label: 'You are of age', kind: 'checkbox', required: true },
    ],
  });
  const { merchant } = shop;
  await shop.rule({ rate_value: 2000 });
  const visitor = browse(rail.address);
  const address = `/join/${shop.program.subdomain}`;
  const page = await visitor.get(address);
  t.equal(page.status, 200);
  t.match(page.text, 'Who reads <you>?');
  const email = `${fresh('joiner')}@example.com`;
  const refused = await visitor.submit(formAt(page, address), {
    email,
    website_url: 'not a page',
    'answers.audience': 'Bakers',
  });
  t.equal(refused.status, 400);
  const kept = formAt(refused, address);
  t.match(kept?.fields, { email, website_url: 'not a page', 'answers.audience': 'Bakers' });
  t.match(refused.html, /This is required/);
  const filled = {
    ...kept?.fields,
    website_url: 'tea.example.com',
    'answers.adult': 'true',
    'answers.topics': 'Tea',
    terms: 'true',
  };
  const invalid = await visitor.post(address, { ...(filled as Record<string, string>), website_url: 'not a page' });
  t.match(invalid.html, /id="field-website_url-error">Type a web address, such as https/);
  const sent = await visitor.post(address, filled as Record<string, string>);
  t.equal(sent.status, 200, sent.text);
  t.match(sent.text, 'Your application has arrived', 'nothing is mailed here');
  const again = await browse(rail.address).post(address, {
    ...(filled as Record<string, string>),
    form_key: 'another',
  });
  t.equal(again.text, sent.text, 'whether an address is of a partner is not told');
  const [application] = (await shop.list('applications')) as [Json];
  t.match(application, { email, source: 'join_page', answers: { audience: 'Bakers', topics: ['Tea'], adult: true } });
  t.equal((await shop.list('applications')).length, 1);
  t.match(await merchant.get(`/v1/partners/${application.partner_id}`), { website_url: 'https://tea.example.com' });

  const waiting = await signedIn(shop, application.partner_id, rail.address);
  t.match((await waiting.get('/portal')).text, 'being reviewed');
  t.equal((await waiting.get('/portal/links')).path, '/portal', 'who waits has no links yet');
  t.equal((await waiting.post('/portal/links', { value: 'early' })).path, '/portal');
  t.same(await shop.list('links'), []);
  await merchant.post(`/v1/applications/${application.id}/approve`);
  const home = await waiting.get('/portal');
  t.match(home.text, 'Before your first payout');
  t.match(home.text, '20%');

  const links = await waiting.get('/portal/links');
  const made = await waiting.submit(formAt(links, '/portal/links'), { label: 'News <letter>', value: 'my-news' });
  t.match(made.path, /done=created/);
  t.match(made.text, 'News <letter>');
  const [link] = (await shop.list('links')) as [Json];
  t.match(link, { value: 'my-news', partner_id: application.partner_id });
  for (const destination_url of ['evil.example.net/acme.example.com', 'https://acme.example.com\\@evil.example.net/']) {
    const away = await waiting.submit(formAt(made, '/portal/links'), { destination_url });
    t.equal(away.status, 400);
    t.match(away.html, /id="field-destination_url-error">The page must be on acme\.example\.com\./);
  }
  t.equal((await shop.list('links')).length, 1, 'no short link leads to the site of somebody else');
  const taken = await waiting.submit(formAt(made, '/portal/links'), { value: 'my-news' });
  t.equal(taken.status, 409);
  t.equal(formAt(taken, '/portal/links')?.fields.value, 'my-news');
  t.match(taken.html, /id="field-value-error">This is taken/);
  const unnamed = formAt(made, '/portal/links');
  for (const form_key of ['first', 'second', 'second'])
    await waiting.post('/portal/links', { ...unnamed?.fields, form_key });
  const { handle } = await merchant.get(`/v1/partners/${application.partner_id}`);
  const [own, named, other, ...more] = (await shop.list('links')).map(({ value }) => value).toSorted();
  t.same([own, other, more], [handle, 'my-news', []], 'a second click makes no second link');
  t.match(named, new RegExp(`^${handle}-[0-9]{1,3}$`));
  await rail.query(sql`
    insert into program.link (organization_id, id, program_id, partner_id, param, value, destination_url, url)
    select organization_id, core.new_id('lnk'), program_id, partner_id, param, 'more-' || n, destination_url, url || n
    from program.link, generate_series(1, 499) as n where id = ${link.id}`);
  const most = await waiting.submit(formAt(taken, '/portal/links'), { value: 'one-more' });
  t.equal(most.status, 402);
  t.match(most.text, 'You have reached the maximum number of links');

  const click = await merchant.post('/v1/clicks', {
    program_id: shop.program_id,
    value: 'my-news',
    landing_url: 'https://acme.example.com/',
    visitor_token: fresh('visitor'),
  });
  const customer = await shop.customer({ click_id: click.id, email: 'jane@gmail.example.com' });
  await shop.sale({ customer_id: customer.id, amount_minor: 9900, tax_minor: 900 });
  t.match((await waiting.get('/portal')).text, /Due \$19\.80/);
  t.match((await waiting.get(`/portal/links/${link.id}`)).text, /Clicks 1 Visitors 1 Customers 1/);
  t.match((await waiting.get(`/portal/links/${link.id}/qr`)).html, /^<svg/);
  const customers = await waiting.get('/portal/customers');
  t.match(customers.text, 'j…@g….com');
  t.notMatch(customers.html, 'gmail');
  const [commission] = (await shop.list('commissions')) as [Json];
  const why = await waiting.get(`/portal/commissions/${commission.id}`);
  t.match(why.text, /Why this amount\?.*the customer is already yours.*\$99\.00.*-\$9\.00.*20%/);
  t.match(why.text, /[AP]M UTC /);
  await merchant.patch(`/v1/programs/${shop.program_id}`, { timezone: 'Asia/Tokyo' });
  t.match(
    (await waiting.get(`/portal/commissions/${commission.id}`)).text,
    /[AP]M GMT\+9 \d{4}-\d\d-\d\d \d\d:\d\d UTC/,
    'in the zone of the program, with UTC beside',
  );

  const choose = await waiting.get('/portal/payout_method');
  t.ok(choose.links.includes('/portal/payout_method?method=bank_transfer'));
  const account = await waiting.get('/portal/payout_method?method=bank_transfer');
  const typed = {
    iban: bank.details.iban,
    again: bank.details.iban,
    bic: bank.details.bic,
    account_holder: 'Ada Lovelace',
  };
  const differs = await waiting.submit(formAt(account, '/portal/payout_method'), { ...typed, again: 'DE00' });
  t.equal(differs.status, 400);
  t.match(differs.html, /id="field-again-error"/);
  const wrong = await waiting.submit(formAt(differs, '/portal/payout_method'), {
    ...typed,
    iban: 'DE00',
    again: 'DE00',
  });
  t.match(wrong.html, /id="field-iban-error">This is not valid/);
  const pasted = typed.iban.replaceAll(/(.{4})/g, '$1 ');
  const saved = await waiting.submit(formAt(wrong, '/portal/payout_method'), { ...typed, again: pasted });
  t.match(saved.text, /Saved\..*Bank transfer.*3000/);
  t.notMatch(saved.html, bank.details.iban);
  t.match(await merchant.get(`/v1/partners/${application.partner_id}`), {
    completed_onboarding: true,
    terms_version: 'May',
  });

  const { id: batch_id } = await merchant.post('/v1/payout_batches', { program_id: shop.program_id });
  await eventually(
    async () => (await merchant.get(`/v1/payout_batches/${batch_id}`)).progress.state === 'done',
    'the batch',
  );
  const [payout] = (await shop.list('payouts')) as [Json];
  t.match((await waiting.get('/portal')).text, 'Your next payout is due on');
  await merchant.post(`/v1/payouts/${payout.id}/mark_paid`);
  t.match((await waiting.get('/portal')).text, /Paid \$19\.80/);
  t.match((await waiting.get('/portal/payouts')).text, /\$19\.80 Paid/);
  t.match((await waiting.get(`/portal/payouts/${payout.id}`)).text, /Bank transfer.*Sale \$19\.80 Paid/);
  await eventually(
    async () => (await waiting.get(`/portal/payouts/${payout.id}/statement`)).status === 200,
    'the statement',
  );
  t.match((await waiting.get(`/portal/payouts/${payout.id}/statement?format=csv`)).html, /,9900,1980,USD/);
  const entries = await rail.query<Json>(sql`
    select operation, partner_id from core.audit_entry where organization_id = ${merchant.organization_id} and partner_id is not null order by id`);
  const link_made = { operation: 'links.create', partner_id: application.partner_id };
  t.same(entries, [
    ...[link_made, link_made, link_made],
    { operation: 'partners.put_payout_method', partner_id: application.partner_id },
  ]);
});

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
