/** The whole way of a partner without scripts: they join, are approved, make a link, and are paid for a sale. */
import t from 'tap';
import { awayFromMidnight, eventually, type Json, sql, startRail } from '../harness.ts';
import { formAt, signedIn } from '../portal/partner_browser.ts';
import { bank } from '../program/payouts/fixture.ts';
import { fresh, openShop } from '../shop.ts';
import { browse } from './browse.ts';

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
  t.same(
    [...refused.html.matchAll(/id="field-([\w-]+)-error">([^<,.]+)/g)].map(([, field, error]) => [field, error]),
    [
      ['website_url', 'Type a web address'],
      ['answers-adult', 'This is required'],
      ['terms', 'This is required'],
    ],
    'all that is wrong is said at once',
  );
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
