/** Pages of the dashboard that are made by hand, as a manager uses them: without scripts. */
import type { Sql } from 'sql-template-tag';
import t from 'tap';
import { balancesOf } from '../../src/program/commissions/balances.ts';
import { openTab } from '../browser.ts';
import { eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import type { Form, Page } from '../pages/browse.ts';
import { signedIn } from '../pages/people.ts';
import { tellStory } from '../pages/story.ts';
import { setDebtor } from '../program/payouts/files/fixture.ts';
import { mail, openCampaign, openOutreach, replyTo } from '../recruitment/outreach/mailed.ts';
import { openShop } from '../shop.ts';

const rail = await startRail();
const outreach = await openOutreach(rail);
const merchant = outreach.caller;
const shop = await openShop(rail, { holding_period_days: 30 }, merchant);
const { program_id } = shop;
const receiver = await startReceiver();
const endpoint = await shop.endpoint(receiver.url);
await shop.rule();
const partner: Json = await shop.partner({ email: 'ada@partner.example.com' });
const owner = await signedIn(rail, merchant, 'owner');
const viewer = await signedIn(rail, merchant, 'viewer');
const stranger = await signedIn(rail, await rail.organization());

const formOf = ({ forms }: Page, operation: string, button?: string): Form | undefined =>
  forms.find(({ action, button: own }) => action.endsWith(`/do/${operation}`) && (!button || own === button));

t.test('webhooks: the log, the body, a test, replays, and a secret that is shown once', async (t) => {
  const page = await owner.get('/dashboard/webhooks');
  t.match(page.text, /Endpoints of the program.*Endpoints of recruitment.*Log of the program/);
  const path = `/dashboard/webhook_endpoints/${endpoint.id}`;
  t.ok(page.links.includes(path));
  const deliveries = () => shop.list('webhook_deliveries', `endpoint_id=${endpoint.id}`);

  const tested = await owner.submit(formOf(await owner.get(path), 'webhook_endpoints.ping'), {
    event_type: 'payout.paid',
  });
  t.equal(tested.path.split('?')[0], path);
  t.match(tested.text, /Done: .*payout\.paid/);
  await eventually(async () => (await deliveries()).every(({ status }) => status === 'delivered'), 'the deliveries');

  const [delivery] = await deliveries();
  const one = await owner.get(`/dashboard/webhook_deliveries/${delivery?.id}`);
  t.match(one.html, /&quot;type&quot;: &quot;payout\.paid&quot;/, 'the body over several lines');
  t.match(one.text, /Attempt 1 .*Rail-Signature: /);
  const again = await owner.submit(formOf(one, 'webhook_deliveries.replay'));
  t.match(again.text, new RegExp(`Done: .*Replay of.*${delivery?.id}`));

  const before = (await deliveries()).length;
  const minute = (ms: number) => new Date(Date.now() + ms).toISOString().slice(0, 16);
  const [from, to] = [minute(-3_600_000), minute(60_000)];
  const window = formOf(await owner.get(path), 'webhook_endpoints.replay', 'Replay all, delivered ones too');
  await owner.submit(window, { from, to });
  await eventually(async () => (await deliveries()).length > before, 'the replays');
  const since = formOf(await owner.get(path), 'webhook_endpoints.replay', 'Replay what failed');
  t.match((await owner.submit(since, { failed_since: from })).text, /Done: /);
  t.match((await owner.submit(since, { failed_since: 'yesterday' })).html, /id="field-failed_since-error"/);

  const unsure = await owner.submit(formOf(await owner.get(path), 'webhook_endpoints.rotate_secret'));
  t.match(unsure.text, /needs a code of an authenticator app/);
  t.notMatch(unsure.text, 'whsec_');
  const sure = await signedIn(rail, merchant, 'owner', true);
  const rotated = await sure.submit(formOf(await sure.get(path), 'webhook_endpoints.rotate_secret'));
  const [secret] = /whsec_[\w+/=]+/.exec(rotated.text) ?? [];
  t.ok(secret, rotated.text.slice(-400));
  t.notOk((await owner.get(path)).html.includes(secret as string));
  await merchant.post(`/v1/webhook_endpoints/${endpoint.id}/disable`);
  t.match((await owner.get('/dashboard/webhooks')).text, new RegExp(`${endpoint.url}.* disabled`));
  t.equal((await viewer.get(path)).forms.filter(({ action }) => action.includes('/do/')).length, 0);
  t.equal((await stranger.get(path)).status, 404);
});

t.test('a calendar says when commissions mature, by currency', async (t) => {
  const customer: Json = await shop.referred(partner);
  await shop.sale({ customer_id: customer.id, amount_minor: 10_000 });
  await shop.sale({ customer_id: customer.id, amount_minor: 50_000, currency: 'JPY' });
  const [commission] = (await shop.list('commissions', `customer_id=${customer.id}`)) as [Json];
  const month = commission.mature_at.slice(0, 7);
  const page = await owner.get(`/dashboard/maturing?program_id=${program_id}&month=${month}`);
  t.match(page.text, /pending USD 1 \$20\.00/i);
  t.match(page.text, /pending JPY 1 ¥10,000/i);
  const day = page.links.find((link) => link.startsWith('/dashboard/see/commissions.maturing?')) as string;
  t.ok(decodeURIComponent(day).includes(commission.mature_at.slice(0, 10)));
  t.ok((await owner.get(day)).links.includes(`/dashboard/commissions/${commission.id}`));
  const other = await owner.get(`/dashboard/maturing?program_id=${program_id}&month=2031-02`);
  t.match(other.text, /Nothing matures in this month/);
  for (const wrong of ['2031-13', '0000-01', "'", '99999-01'])
    t.equal((await owner.get(`/dashboard/maturing?month=${encodeURIComponent(wrong)}`)).status, 200, wrong);
  // As many as are added up, of which nothing is paid, and one after them: past the triggers, and gone again.
  const [{ columns } = { columns: '' }] = await rail.query<{ columns: string }>(sql`
    select string_agg(quote_ident(a.attname), ', ') as columns from pg_attribute a
    where a.attrelid = 'program.commission'::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''`);
  const copies = (status: string, day: string, count: number) => {
    const differing: Json = {
      id: `core.new_id('com')`,
      status: `'${status}'`,
      mature_at: `'${day}T12:00:00Z'`,
      sale_id: 'null',
      kind: `'bonus'`,
    };
    const values = columns.split(', ').map((column) => differing[column] ?? column);
    return `insert into program.commission (${columns}) select ${values} from program.commission, generate_series(1, ${count}) where id = '${commission.id}'`;
  };
  const quietly = (...statements: string[]) =>
    rail.store.database.query(
      ['begin; set local session_replication_role = replica', ...statements, 'commit'].join(';'),
    );
  await quietly(copies('rejected', '2031-03-01', 20_000), copies('pending', '2031-03-02', 1));
  const full = await owner.get(`/dashboard/maturing?program_id=${program_id}&month=2031-03`);
  t.match(full.text, /More than 20,000 commissions mature in this month: the days from 2031-03-02 on are not added up/);
  await quietly(`delete from program.commission where mature_at >= '2031-03-01' and mature_at < '2031-04-01'`);
});

t.test('risk flags are closed one after the other, with a reason', async (t) => {
  for (const email of ['one@mailinator.com', 'two@mailinator.com']) await shop.referred(partner, { email });
  await eventually(async () => (await shop.list('risk_flags', 'status=open')).length === 2, 'the flags');
  const page = await owner.get(`/dashboard/risk?program_id=${program_id}`);
  t.match(page.text, /2 open.*disposable email address.*Host mailinator\.com/);
  const { action, fields } = formOf(page, 'risk_flags.resolve') as Form;
  const refused = await owner.post(action, { ...fields, resolution: 'confirmed', note: ' ' });
  t.equal(refused.status, 400);
  t.match(refused.html, /id="field-note"[^>]* aria-invalid="true"/);
  const closed = await owner.post(action, { ...fields, resolution: 'dismissed', note: 'A real person.' });
  t.match(closed.text, /Done: .*1 open/, 'the next one is shown');
  const [flag] = (await shop.list('risk_flags', 'status=dismissed')) as [Json];
  t.match(flag, { note: 'A real person.', resolved_by: owner.user_id });
  t.match((await owner.get(`/dashboard/risk_flags/${flag.id}`)).text, /A real person\..*Other flags of this partner/);
  const skip = (await owner.get('/dashboard/risk')).links.find((link) => link.includes('after='));
  t.notOk(skip, 'there is no other to go to');
  t.notOk(formOf(await viewer.get('/dashboard/risk'), 'risk_flags.resolve'));
  t.equal((await stranger.get(`/dashboard/risk_flags/${flag.id}`)).status, 404);
});

t.test('a partner page has the balances and all that belongs to the partner', async (t) => {
  await shop.link(partner);
  await shop.coupon({ partner_id: partner.id, code: 'ADA10' });
  await merchant.patch(`/v1/partners/${partner.id}`, { company_name: 'Engines <b>' });
  const page = await owner.get(`/dashboard/partners/${partner.id}`);
  t.match(page.text, /¥10,000 Pending \$20\.00 Pending/);
  t.match(
    page.text,
    /Engines <b>.*ADA10.*Customers .*Commissions .*Payouts .*Tax form .*Risk flags .*Events .*affiliate\.updated/,
  );
  t.match(page.text, /Audit.*Update a partner/);
  t.notMatch(page.html, 'Engines <b>');
  t.equal((await stranger.get(`/dashboard/partners/${partner.id}`)).status, 404);
});

t.test('open commissions are added up from an index alone', async (t) => {
  const statement = await new Promise<Sql>((told) =>
    balancesOf({ organization_id: 'org_x', all: told } as never, { id: 'part_x', program_id: 'prg_x' }),
  );
  const client = await rail.store.database.connect();
  await client.query('begin; set local enable_seqscan = off; set local enable_bitmapscan = off');
  const { rows } = await client.query(sql`explain ${statement}`);
  await client.query('rollback');
  client.release();
  t.match(JSON.stringify(rows), /Index Only Scan using commission_open/);
});

t.test('on a phone each row of a table is a card, and nothing scrolls sideways', async (t) => {
  const { page } = await openTab({ viewport: { width: 390, height: 900 } });
  await page.goto(`${rail.address}${await owner.link()}`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  const mailed = await mail(rail, outreach);
  const reply_id = await replyTo(rail, outreach, mailed, mailed.email, { text: 'x'.repeat(9_000) });
  await rail.query(sql`update recruitment.message set subject = ${'W'.repeat(1_000)} where id = ${reply_id}`);
  const of_long_words = [`/threads/${mailed.thread_id}`, `/messages/${reply_id}`, `/search?q=${'W'.repeat(200)}`];
  for (const path of [`/partners/${partner.id}`, '/webhooks', '/reports?report=partners', ...of_long_words]) {
    await page.goto(`${rail.address}/dashboard${path}`);
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), path);
    t.same(
      await page.evaluate(`[...document.querySelectorAll('.table')]
        .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).map((one) => one.ariaLabel)`),
      [],
      path,
    );
    const names = await page.evaluate(`[...document.querySelectorAll('tbody tr')].filter((row) =>
      [...row.cells].some((cell, nth) => cell.textContent !== '' && (cell.offsetHeight < 20 ||
        getComputedStyle(cell, '::before').content !== JSON.stringify(row.closest('table').rows[0].cells[nth].textContent)))).length`);
    t.equal(names, 0, `${path}: each value stands below the name of its column`);
  }
});

t.test('a program that is new says what it needs, and nothing is shown by its id', async (t) => {
  const own = await rail.organization();
  const person = await signedIn(rail, own, 'owner');
  for (const path of ['', '/sales', '/webhook_deliveries', '/reports', '/payout_run'])
    t.match(await person.get(`/dashboard${path}`), { status: 200, text: /no program yet\. Create the first/ }, path);
  const { program_id } = await openShop(rail, {}, own);
  t.match(
    (await person.get('/dashboard')).text,
    /First steps Create a rule \. .* Create a partner \. .* Connect your shop/,
  );
  t.notMatch((await (await signedIn(rail, own, 'viewer')).get('/dashboard')).text, /Create a rule/);
  t.match(
    (await person.get('/dashboard/sales')).text,
    /There is nothing here yet\. Sales come from your billing processor/,
  );
  t.match((await person.get('/dashboard/review')).text, /No application waits for a decision\. Partners apply at http/);
  const pages = [
    'audit_log',
    'customers',
    'commissions',
    'sales',
    'webhooks',
    'links',
    'coupons',
    'payouts',
    'risk_flags',
  ];
  t.match((await owner.get('/dashboard/users')).html, /<h1>People<\/h1>/, 'as the menu says');
  const [customer] = (await shop.list('customers')) as [Json];
  const file = await owner.get(`/dashboard/see/customers.export?id=${customer.id}`);
  t.match(file.headers, { 'content-disposition': 'attachment; filename="customers.json"' });
  t.equal(JSON.parse(file.html).customer.id, customer.id);
  for (const path of pages) t.notMatch((await owner.get(`/dashboard/${path}`)).text, /\w_…\w/, path);
  t.notMatch(
    (await person.get(`/dashboard/programs/${program_id}`)).text,
    /Custom domain –/,
    'what is not set stands below',
  );
});

t.test('who reviews an application reads who applies, and settings name whose a key is', async (t) => {
  const applicant = { email: 'zoe@applicant.example.com', first_name: 'Zoë', country_code: 'DE', source: 'join_page' };
  await merchant.post('/v1/applications', { program_id, ...applicant });
  const { text } = await owner.get('/dashboard/review');
  t.match(text, /zoe@applicant\.example\.com .*Source join page .*First name Zoë Country code DE/);
  t.notMatch((await owner.get('/dashboard/settings')).text, /usr_…/);
});

t.test('a search finds a record by what people know it by, and says where it looked', async (t) => {
  const sale: Json = await shop.sale({ partner_id: partner.id, external_charge_id: 'ch_Wanted' });
  const link: Json = await shop.link(partner, { value: 'Spring-2026' });
  const coupon: Json = await shop.coupon({ partner_id: partner.id, code: 'SPRING5' });
  for (const [q, href] of [
    [String(partner.handle).toUpperCase(), `/dashboard/partners/${partner.id}`],
    ['ch_Wanted', `/dashboard/sales/${sale.id ?? sale.sale?.id}`],
    ['spring-2026', `/dashboard/links/${link.id}`],
    ['spring5', `/dashboard/coupons/${coupon.id}`],
  ] as const)
    t.ok((await owner.get(`/dashboard/search?q=${q}`)).links.includes(href), q);
  const none = await owner.get('/dashboard/search?q=nobody');
  t.equal(none.status, 200);
  t.match(none.text, /Nothing in this program is “nobody”/);
  t.match((await stranger.get(`/dashboard/search?q=${partner.handle}`)).text, /Nothing in this program/);
});

t.test('a list takes an email address for an id, and says beside the filter what is wrong with it', async (t) => {
  const list = await owner.get('/dashboard/commissions');
  const filters = list.forms.find(({ action }) => action === '/dashboard/commissions');
  const found = await owner.submit(filters, { partner_id: partner.email, status: 'pending' });
  t.match(found.text, /ada@partner\.example\.com.* in all/);
  t.notMatch(found.text, /com_…|sale_…/, 'records are shown by what they are');
  const nobody = await owner.submit(filters, { partner_id: 'nobody@example.com' });
  t.equal(nobody.status, 400);
  t.match(nobody.html, /id="filter-partner_id"[^>]*value="nobody@example.com"[^>]* aria-invalid="true"/);
  t.match(nobody.html, /id="filter-partner_id-error">Nobody has the email address/);
  const wrong = await owner.get('/dashboard/partners?email=Ada&status=active');
  t.equal(wrong.status, 400);
  t.match(wrong.html, /id="filter-email-error"/);
  t.equal(wrong.forms.find(({ action }) => action === '/dashboard/partners')?.fields.status, 'active');
  for (const tag of ['prospects', 'lists', 'campaigns', 'threads', 'searches', 'imports']) {
    const page = await stranger.get(`/dashboard/${tag}`);
    t.equal(page.status, 200);
    t.match(page.text, /There is no brand yet/, tag);
  }
  const path = `/dashboard/do/lists.create?brand_id=${outreach.brand_id}`;
  t.ok((await owner.get('/dashboard/lists')).links.includes(path), 'what is made belongs to what is shown');
  t.match((await owner.get('/dashboard/audit_log')).text, /Create a coupon/);
});

t.test('a commission says why it is what it is, and offers what its state allows', async (t) => {
  const [commission] = (await shop.list('commissions', 'status=pending')) as [Json];
  const path = `/dashboard/commissions/${commission.id}`;
  const page = await owner.get(path);
  t.match(page.text, /Commission of .*Why this amount The rate is 20% of/);
  t.match(page.text, /The rate applies to .*Rule Outcome Why/);
  t.notMatch(page.html, /<pre/);
  const can = ({ links }: Page, action: string) =>
    links.includes(`/dashboard/do/commissions.${action}?id=${commission.id}`);
  t.same(
    ['approve', 'hold', 'void', 'release'].map((action) => can(page, action)),
    [true, true, true, false],
  );
  await merchant.post(`/v1/commissions/${commission.id}/hold`);
  const held = await owner.get(path);
  t.same(
    ['approve', 'hold', 'void', 'release'].map((action) => can(held, action)),
    [false, false, true, true],
  );
  t.match(
    (await owner.get(`/dashboard/sales/${commission.sale_id}`)).text,
    /Why it is credited and paid so .*The rate applies to/,
  );
});

t.test('a payout run goes from approval to the report of the bank, and each page says what comes next', async (t) => {
  const own = await rail.organization();
  const { shop, batch } = await tellStory(rail, { payout_approval_required: true }, own);
  const finance = await signedIn(rail, own, 'finance', true);
  const path = `/dashboard/payout_batches/${batch.id}`;
  const [locked] = (await shop.list('commissions', 'status=due')) as [Json];
  const { links } = await finance.get(`/dashboard/commissions/${locked.id}`);
  t.notOk(
    links.some((link) => link.includes('/do/commissions.')),
    'a commission in a payout is not changed',
  );
  t.match((await finance.get('/dashboard/payout_run')).text, /How you pay .*Bank transfer Not set up/);
  await setDebtor(rail, shop);
  const run = async (operation: string) =>
    finance.submit(formOf(await finance.get(`/dashboard/do/${operation}?id=${batch.id}`), operation));
  t.match((await finance.get(path)).text, /Next: Somebody else .* approves it/);
  await run('payout_batches.approve');
  t.match((await finance.get(path)).text, /Next: Send it/);
  t.match((await finance.get(`${path}?done=payout_batches.send`)).text, /Next: A worker is sending its payouts/);
  await run('payout_batches.send');
  await eventually(async () => (await own.get(`/v1/payout_batches/${batch.id}`)).files.length > 0, 'the file');
  const sent = await finance.get(path);
  t.match(sent.text, /Next: Give the file to your bank.*Files for the bank/);
  t.notOk(sent.links.some((link) => link.includes('payout_batches.send')));
  const file = await finance.get(sent.links.find((link) => link.includes('file=1')) as string);
  const [rejected, ...paid] = [...file.html.matchAll(/<EndToEndId>([^<]+)/g)].map(([, key]) => key as string);
  const status = (key: string, code: string, why = '') =>
    `<TxInfAndSts><OrgnlEndToEndId>${key}</OrgnlEndToEndId><TxSts>${code}</TxSts>${why}</TxInfAndSts>`;
  const [, message_id = ''] = /<MsgId>([^<]+)/.exec(file.html) ?? [];
  const report = `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.10"><CstmrPmtStsRpt>
<GrpHdr><MsgId>BANK-1</MsgId><CreDtTm>2026-11-20T10:00:00Z</CreDtTm></GrpHdr><OrgnlGrpInfAndSts><OrgnlMsgId>${message_id}</OrgnlMsgId>
<OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId></OrgnlGrpInfAndSts><OrgnlPmtInfAndSts><OrgnlPmtInfId>${message_id}-1</OrgnlPmtInfId>
${status(rejected as string, 'RJCT', '<StsRsnInf><Rsn><Cd>AC04</Cd></Rsn></StsRsnInf>')}${paid.map((key) => status(key, 'ACSC')).join('')}
</OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>`;
  const upload = (who: { cookies: Map<string, string> }, text: string, origin = rail.address) => {
    const body = new FormData();
    body.set('document', new File([text], 'report.xml'));
    const cookie = [...who.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    return fetch(`${rail.address}/dashboard/bank_report/${batch.id}`, {
      ...{ method: 'POST', body, redirect: 'manual' },
      headers: { origin, cookie },
    });
  };
  const wrong = await upload(finance, 'no XML');
  t.equal(wrong.status, 400);
  t.match(await wrong.text(), /role="alert">The report is not valid XML/);
  t.equal((await upload(finance, report, 'https://elsewhere.example.com')).status, 403);
  t.equal((await upload(await signedIn(rail, own, 'finance'), report)).status, 403, 'without a code');
  t.equal((await upload(stranger, report)).status, 403);
  t.equal((await upload({ cookies: new Map() }, report)).headers.get('location'), '/dashboard/sign_in');
  const taken = await upload(finance, report);
  t.match(taken.headers.get('location'), `${path}?done=payout_batches.take_in_report`);
  t.match((await finance.get(path)).text, /Next: Every payout is paid, failed or deleted/);
  const [failed] = (await shop.list('payouts', 'status=failed')) as [Json];
  const payout = await finance.get(`/dashboard/payouts/${failed.id}`);
  t.match(payout.text, /The payment failed: account closed.*Ask the partner where to pay, then retry it/);
  t.ok(payout.links.includes(`/dashboard/do/payouts.retry?id=${failed.id}`));
});

t.test('a report says beside its fields what is wrong, and names its rows and the window before', async (t) => {
  const own = await rail.organization();
  const { partners } = await tellStory(rail, {}, own);
  const person = await signedIn(rail, own, 'viewer');
  for (const [query, field] of [
    ['first=2026-02-30', 'first'],
    ['first=2026-11-29&last=2026-11-01', 'last'],
    ['first=2016-11-29&last=2026-11-01', 'last'],
  ] as const)
    t.match(
      (await person.get(`/dashboard/reports?${query}`)).html,
      new RegExp(`aria-invalid="true" aria-describedby="${field}-error"`),
      query,
    );
  t.match((await person.get('/dashboard/reports')).text, /Sales 0 before .*Before: /);
  t.notMatch((await person.get('/dashboard')).text, /First steps/);
  t.match((await person.get('/dashboard/reports?report=customers')).text, /customer-0@example\.com Sales Details/);
  t.notMatch((await person.get('/dashboard/reports?report=payouts')).text, /batch_/);
  t.match(
    (await person.get(`/dashboard/reports?partner_id=${partners[0]?.id}`)).text,
    /Partner: ada@partner\.example\.com/,
  );
});

t.test('the inbox shows replies as text, and answers and corrects them', async (t) => {
  const mailed = await mail(rail, outreach);
  const text = 'Yes <script>alert(1)</script> & "more"';
  const reply_id = await replyTo(rail, outreach, mailed, mailed.email);
  await rail.query(sql`
    update recruitment.message set body_text = ${text}, body_html = '<img src=x onerror=alert(1)>', needs_review = true where id = ${reply_id}`);
  await rail.query(sql`update recruitment.thread set needs_review = true where id = ${mailed.thread_id}`);
  const path = `/dashboard/threads/${mailed.thread_id}`;
  t.ok((await owner.get('/dashboard/inbox')).links.includes(path));
  const page = await owner.get(path);
  t.ok(page.text.includes(text));
  t.notMatch(page.html, /<script>alert|<img/);
  t.match(page.text, /Campaign Autumn Sequence Sequence of /, 'what it belongs to is shown by name');
  const kind = await owner.submit(formOf(page, 'messages.reclassify'), { reply_kind: 'question' });
  t.equal(kind.path.split('?')[0], path);
  t.match(await merchant.get(`/recruitment/v1/threads/${mailed.thread_id}`), {
    reply_kind: 'question',
    needs_review: false,
  });
  t.ok((await owner.get('/dashboard/inbox?state=question')).links.includes(path));
  t.notOk((await owner.get('/dashboard/inbox')).links.includes(path));
  const form = formOf(await owner.get(path), 'prospects.reply');
  const answered = await owner.submit(form, { text: 'Let us talk on Monday.' });
  t.equal(answered.path.split('?')[0], path, answered.text.slice(-300));
  await owner.submit(form, { text: 'Let us talk on Monday.' });
  const sent = await merchant.get(`/recruitment/v1/threads/${mailed.thread_id}/messages?purpose=answer`);
  t.equal(sent.total_count, 1, 'a second click sends nothing');
  t.equal((await stranger.get(path)).status, 404);
  t.notOk(formOf(await viewer.get(path), 'prospects.reply'));
});

t.test('prospects are ticked in their list, and added to a list without an id being typed', async (t) => {
  const { brand_id } = outreach;
  const list = await merchant.post('/recruitment/v1/lists', { brand_id, name: 'Favourites' });
  const prospect = { brand_id, channel: 'website', key: 'ticked.com', name: 'Ticked' };
  const { id } = await merchant.post('/recruitment/v1/prospects', prospect);
  const page = await owner.get('/dashboard/prospects');
  t.match(page.html, new RegExp(`name="prospect_ids" value="${id}" aria-label="Choose Ticked"`));
  t.match(page.html, new RegExp(`formaction="/dashboard/do/lists.add_prospects" name="path:id" value="${list.id}"`));
  const { action, fields } = page.forms.find((form) => form.action.endsWith('lists.add_prospects')) as Form;
  const { form_key, back } = fields as { form_key: string; back: string };
  const added = await owner.post(action, { form_key, back, 'path:id': list.id, prospect_ids: id });
  t.equal(added.status, 200);
  t.match(added.text, /Done: Add prospects to a list\. Show it/);
  t.ok(added.links.includes(`/dashboard/lists/${list.id}`));
  t.match((await owner.get(`/dashboard/lists/${list.id}`)).text, /Prospects .*Ticked/);
  t.notMatch((await viewer.get('/dashboard/prospects')).html, /name="prospect_ids"/);
});

t.test('a campaign says what it would send, and is paused and resumed', async (t) => {
  const { organization_id } = merchant;
  const { brand_id, inbox_id } = outreach;
  const campaign_id = await openCampaign(rail, { organization_id, brand_id, inbox_id });
  const path = `/dashboard/campaigns/${campaign_id}`;
  const empty = await owner.get(path);
  t.match(empty.text, /No prospect waits for the first email/);
  const prospect = { brand_id, channel: 'website', key: 'waits.com', email: 'ada@waits.com' };
  const { id } = await merchant.post('/recruitment/v1/prospects', prospect);
  await merchant.post(`/recruitment/v1/campaigns/${campaign_id}/prospects`, { prospect_ids: [id] });
  const page = await owner.get(path);
  t.match(page.text, /1 prospect waits for the first email 1 of them can be written to 2 emails, if nobody replies/);
  t.match(page.text, /Brand Acme Inboxes grace@acme.example.com .*Nothing keeps it from being launched/);
  const start_at = `${new Date().getUTCFullYear() + 1}-01-02T09:00`;
  const launched = await owner.submit(formOf(page, 'campaigns.launch'), { start_at });
  t.match(launched.text, /State scheduled/);
  await rail.query(
    sql`update recruitment.campaign set state = 'sending', start_at = null, launched_at = now() where id = ${campaign_id}`,
  );
  const paused = await owner.submit(formOf(await owner.get(path), 'campaigns.pause'));
  t.match(paused.text, /Done: .*State paused Paused by User/);
  const resumed = await owner.submit(formOf(paused, 'campaigns.resume'));
  t.match(resumed.text, /State sending/);
  t.equal(formOf(await viewer.get(path), 'campaigns.pause'), undefined);
  t.equal((await stranger.get(path)).status, 404);
});

t.test('jobs and health are for operators of the service alone', async (t) => {
  const task = 'core/of_no_worker';
  const failed = async () => {
    await rail.query(
      sql`select core.enqueue(${JSON.stringify([{ identifier: task, payload: { id: 'mail_1', secret: 'x-y-z' } }])}::json)`,
    );
    const [job] = await rail.query<{ id: number }>(sql`
      update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'connect <b>ECONNREFUSED'
      where id = (select max(id) from graphile_worker._private_jobs) returning id`);
    return String(job?.id);
  };
  const stateOf = async (id: string) =>
    (await rail.query<Json>(sql`select state from core.jobs() where id = ${id}`))[0]?.state;
  const ids = [await failed(), await failed(), await failed()] as [string, string, string];
  const path = '/dashboard/service';
  t.equal((await owner.get(path)).status, 404, 'while the setting names nobody');
  Object.assign(rail.services, { operator_organization: merchant.organization_id });

  const outsiders = [
    stranger,
    viewer,
    await signedIn(rail, merchant, 'member'),
    await signedIn(rail, merchant, 'finance'),
  ];
  for (const other of outsiders) {
    const page = await other.get(path);
    t.equal(page.status, 404);
    t.notOk(page.links.includes(path), 'the menu does not name it');
    t.equal((await other.post(`${path}/jobs`, { action: 'cancel', id: ids[0] })).status, 404);
  }
  t.equal(await stateOf(ids[0]), 'failed');

  const admin = await signedIn(rail, merchant, 'admin');
  t.ok((await admin.get('/dashboard')).links.includes(path));
  const page = await admin.get(path);
  t.match(page.text, new RegExp(`${task} 0 0 0 0 3 0 .*${ids[0]} ${task} .*mail_1.*connect <b>ECONNREFUSED`));
  t.notMatch(page.html, /<b>|x-y-z/, 'no payload, and an error is text');
  t.match(page.text, new RegExp(`Endpoints that are off .*${endpoint.id}`, 'i'));
  t.notMatch(page.text, endpoint.url);
  t.match(page.text, /program\/mature_commissions .*Never/);
  const send = async (fields: Json) => admin.post(`${path}/jobs`, fields as Record<string, string>);
  t.match((await send({ action: 'cancel', id: ids[0] })).text, /Cancelled: 1\./);
  t.equal(await stateOf(ids[0]), 'cancelled');
  t.match((await send({ action: 'retry', task, confirm: '3' })).text, /others than those that were shown/);
  t.equal(await stateOf(ids[1]), 'failed');
  t.match((await send({ action: 'retry', task, confirm: '2' })).text, /Retried: 2\./);
  t.same([await stateOf(ids[1]), await stateOf(ids[2])], ['ready', 'ready']);
  t.equal((await send({ action: 'retry', id: ids[1] })).status, 409, 'it is due already');
  t.equal((await send({ action: 'retry', id: '999999999' })).status, 409);
  t.equal((await send({})).status, 409);
});
