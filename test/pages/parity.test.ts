import t from 'tap';
import { createKey } from '../../src/core/access/api_key.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { operations } from '../../src/operations.ts';
import { submitTaxForm } from '../../src/program/partners/tax_form.ts';
import { type Json, startRail, startReceiver } from '../harness.ts';
import { resources, World } from '../samples.ts';
import { signedIn } from './people.ts';
import { tellStory } from './story.ts';

const rail = await startRail();
const receiver = await startReceiver();
const merchant = await rail.organization();
const world = new World(merchant, receiver.url, merchant, rail);
for (const plural of ['webhook_endpoints', ...resources]) await world.fixture(plural);
const owner = await signedIn(rail, merchant, 'owner', true);

/** Operations without a page, and why. */
const without_page: Record<string, string> = {
  'exports.get': 'a feed for programs: every list has its rows as CSV',
};

const reads = operations.filter(({ method, name }) => method === 'GET' && !(name in without_page));
const changes = operations.filter(({ method, name }) => method !== 'GET' && !(name in without_page));

t.test('every operation has a page, or stands in a list with its reason', async (t) => {
  t.ok(reads.length > 80 && changes.length > 120);
  for (const { name } of reads) {
    const page = await owner.get(`/dashboard/see/${name}`);
    // It shows what was asked for, or asks for what it needs to know.
    t.ok(
      page.status === 200 || (page.status === 400 && page.forms.some(({ action }) => action.endsWith(name))),
      `${name}: ${page.status} ${page.text.slice(-200)}`,
    );
  }
  for (const { name } of changes) {
    const page = await owner.get(`/dashboard/do/${name}`);
    t.equal(page.status, 200, `${name}: ${page.text.slice(-200)}`);
    t.ok(
      page.forms.some(({ action }) => action === `/dashboard/do/${name}`),
      name,
    );
  }
});

t.test('every record has a page, with what can be done to it and what stands below it', async (t) => {
  let count = 0;
  for (const { name, path } of operations) {
    if (!/^\/(?:recruitment\/)?v1\/\w+$/.test(path) || !name.endsWith('.list')) continue;
    const tag = name.slice(0, -'.list'.length);
    if (!operations.some((one) => one.name === `${tag}.get`)) continue;
    const list = await owner.get(`/dashboard/${tag}`);
    t.equal(list.status, 200, `${tag}: ${list.text.slice(-300)}`);
    const record = list.links.find((link) => new RegExp(`^/dashboard/${tag}/[a-z_]+_[0-9a-z]{26}$`).test(link));
    if (record === undefined) continue;
    const page = await owner.get(record);
    t.equal(page.status, 200, `${record}: ${page.text.slice(-300)}`);
    count++;
  }
  t.ok(count > 25, `${count} kinds`);
});

t.test('a record of another organization, and one that does not exist, is 404 on every page', async (t) => {
  const other = await signedIn(rail, await rail.organization());
  const links = new Set<string>();
  for (const tag of ['programs', 'partners', 'sales', 'commissions', 'payouts', 'webhook_endpoints', 'customers']) {
    const list = await owner.get(`/dashboard/${tag}`);
    for (const link of list.links) if (/_[0-9a-z]{26}$/.test(link)) links.add(link);
  }
  t.ok(links.size > 7);
  for (const link of links) {
    t.equal((await other.get(link)).status, 404, link);
    t.equal((await owner.get(link.replace(/.{6}$/, '000000'))).status, 404);
  }
  for (const path of ['/dashboard/nothing', '/dashboard/a/b/c', '/dashboard/a/b/c/d']) {
    const page = await owner.get(path);
    t.match(page, { status: 404, headers: { 'content-type': /^text\/html/ } }, path);
  }
  // The ids of searches and scans begin alike.
  const of_none = `fsc_${'0'.repeat(26)}`;
  t.match(await owner.get(`/dashboard/searches/${of_none}`), { status: 404, path: `/dashboard/scans/${of_none}` });
  t.equal((await owner.get('/dashboard/see/partners.create')).status, 404);
  const program_id = (await world.fixture('programs')).id;
  const { id } = await merchant.post('/v1/partners', { program_id, email: 'unpaid@partner.example.com' });
  const path = `/dashboard/see/partners.get_payout_method?id=${id}`;
  t.match(
    await owner.get(path),
    { status: 200, text: /There is none yet/ },
    'a record that is there without such a part',
  );
  t.equal((await other.get(path)).status, 404);
});

t.test('a role does what its row of the table says, and no more', async (t) => {
  const cases: [role: string, operation: string, status: number][] = [
    ['viewer', 'partners.create', 403],
    ['member', 'partners.create', 200],
    ['member', 'commissions.create', 403],
    ['member', 'api_keys.create', 403],
    ['member', 'publishable_keys.create', 403],
    ['member', 'recruitment_webhook_endpoints.create', 403],
    ['member', 'team.create', 403],
    ['finance', 'commissions.create', 200],
    ['finance', 'partners.create', 403],
    ['finance', 'users.create', 403],
    ['admin', 'users.create', 200],
  ];
  for (const [role, operation, status] of cases) {
    const person = await signedIn(rail, merchant, role, true);
    const page = await person.get(`/dashboard/do/${operation}`);
    t.equal(page.status, status, `${role} ${operation}`);
    if (status !== 403) continue;
    const sent = await person.post(`/dashboard/do/${operation}`, { program_id: (await world.fixture('programs')).id });
    t.equal(sent.status, 403, 'the form that was not shown is refused too');
  }
});

t.test('a field that decides how much is paid is for who may decide it, with a code', async (t) => {
  const link = await world.make('links');
  const program = await world.fixture('programs');
  const member = await signedIn(rail, merchant, 'member', true);
  const form = await member.get(`/dashboard/do/links.update?id=${link.id}`);
  t.notMatch(form.html, 'id="field-rate_override');
  const given = { 'path:id': link.id, 'rate_override.rate_type': 'percent', 'rate_override.rate_value': '100' };
  const raised = await member.post('/dashboard/do/links.update', given);
  t.equal(raised.status, 403);
  t.match(raised.text, /does not allow changing 'rate_override'/);
  t.equal((await merchant.get(`/v1/links/${link.id}`)).rate_override, null);

  const admin = await signedIn(rail, merchant, 'admin');
  const change = { 'path:id': program.id, auto_payouts_enabled: 'true' };
  const unsure = await admin.post('/dashboard/do/programs.update', change);
  t.equal(unsure.status, 403);
  t.match(unsure.text, /authenticator app/);
  t.equal((await merchant.get(`/v1/programs/${program.id}`)).auto_payouts_enabled, false);
  t.equal(
    (await admin.post('/dashboard/do/programs.update', { 'path:id': program.id, cookie_days: '30' })).status,
    200,
  );
  const sure = await signedIn(rail, merchant, 'admin', true);
  t.equal((await sure.post('/dashboard/do/programs.update', change)).status, 200);
});

t.test('a form comes back with what was typed, and the error beside its field', async (t) => {
  const program_id = (await world.fixture('programs')).id;
  const page = await owner.get(`/dashboard/do/partners.create?program_id=${program_id}`);
  const form = page.forms.find(({ action }) => action.endsWith('partners.create'));
  const again = await owner.submit(form, {
    email: 'not an address',
    company_name: 'Lovelace "& Sons" <b>',
    handle: '!',
  });
  t.equal(again.status, 400);
  t.match(again.html, /id="field-email"[^>]* aria-invalid="true" autofocus/, 'what is wrong is in view');
  t.match(again.html, /id="field-email-error">[^<]*email/);
  t.match(again.html, /id="field-handle-error">/, 'all that is wrong is said at once');
  t.equal(
    again.forms.find(({ action }) => action.endsWith('partners.create'))?.fields.company_name,
    'Lovelace "& Sons" <b>',
  );
  t.notMatch(again.html, '<b>');
});

t.test('an update sends what was changed, and empties what was emptied', async (t) => {
  const partner: Json = await world.make('partners');
  await merchant.patch(`/v1/partners/${partner.id}`, { first_name: 'Ada', last_name: 'Lovelace' });
  const page = await owner.get(`/dashboard/do/partners.update?id=${partner.id}`);
  const form = page.forms.find(({ action }) => action.endsWith('partners.update'));
  t.equal(form?.fields.first_name, 'Ada');
  await owner.submit(form, { first_name: '', company_name: 'Engines' });
  t.match(await merchant.get(`/v1/partners/${partner.id}`), {
    first_name: null,
    last_name: 'Lovelace',
    company_name: 'Engines',
  });
  const { data } = await merchant.get(`/v1/audit_log?object_id=${partner.id}&operation=partners.update`);
  t.same(data[0].fields.toSorted(), ['company_name', 'first_name']);
});

t.test('who can sign in as a partner, or says where they are paid, confirms it with a code', async (t) => {
  const partner: Json = await world.make('partners');
  const person = await signedIn(rail, merchant, 'admin');
  const member = await signedIn(rail, merchant, 'member', true);
  for (const operation of ['partners.create_magic_link', 'partners.put_payout_method']) {
    t.match(
      (await member.post(`/dashboard/do/${operation}`, { 'path:id': partner.id })).text,
      /Your role, member, does not allow/,
    );
    const sent = await person.post(`/dashboard/do/${operation}`, { 'path:id': partner.id });
    t.equal(sent.status, 403, operation);
    t.match(sent.text, /authenticator app/, operation);
  }
});

t.test('an admin gets no key that makes owners', async (t) => {
  const admin = await signedIn(rail, merchant, 'admin', true);
  const make = (scopes: string, for_user: string) =>
    admin.post('/dashboard/do/api_keys.create', { name: 'Of an admin', scopes, for_user });
  const refused = await make('users:write', 'false');
  t.equal(refused.status, 403, refused.text);
  t.match(refused.text, /can make owners/);
  const own = await make('users:write', 'true');
  t.equal(own.status, 200);
  t.match(own.text, /rail_live_/);
  t.equal((await make('partners:write', 'false')).status, 200);
  const of_nobody = await createKey(rail.store.database, {
    organization_id: merchant.organization_id,
    name: 'Of nobody',
    mode: 'live',
    scopes: ['users:write'],
  });
  const taken = await admin.post('/dashboard/do/api_keys.rotate', { 'path:id': of_nobody.id });
  t.equal(taken.status, 403, taken.text);
  t.notMatch(taken.text, /rail_live_/);
});

t.test('a tax form is a file for owners, admins and finance, with a code, and for no key', async (t) => {
  const { id: partner_id } = await world.make('partners');
  const content = Buffer.from('%PDF-1.7 a form').toString('base64');
  await transaction(rail.store, { organization_id: merchant.organization_id, request_id: null }, (tx) =>
    submitTaxForm(tx, rail.services, partner_id, { name: 'W-8 "BEN".pdf', media_type: 'application/pdf', content }),
  );
  const path = `/dashboard/tax_form?partner_id=${partner_id}`;
  t.ok((await owner.get(`/dashboard/partners/${partner_id}`)).links.includes(path));
  for (const [role, is_confirmed, status] of [
    ['finance', true, 200],
    ['finance', false, 403],
    ['member', true, 403],
    ['viewer', true, 403],
  ] as const) {
    const person = await signedIn(rail, merchant, role, is_confirmed);
    const page = await person.get(path);
    t.equal(page.status, status, `${role} ${is_confirmed}`);
    if (status !== 200) continue;
    t.match(page.headers, {
      'content-type': 'application/pdf',
      'content-disposition': 'attachment; filename="W-8_BEN_.pdf"',
    });
    t.equal(page.html, '%PDF-1.7 a form');
  }
  const other = await signedIn(rail, await rail.organization(), 'owner', true);
  t.equal((await other.get(path)).status, 404);
});

t.test('a payout run previews what is due and creates nothing, and another person approves', async (t) => {
  const own = await rail.organization();
  const { shop, batch } = await tellStory(rail, {}, own);
  const finance = await signedIn(rail, own, 'finance', true);
  const before = (await shop.list('payout_batches')).length;
  const page = await finance.get(`/dashboard/payout_run?program_id=${shop.program_id}`);
  t.match(page.text, /Nothing is due|Not paid now/);
  t.ok(page.links.includes(`/dashboard/payout_batches/${batch.id}`));
  t.equal((await shop.list('payout_batches')).length, before);
  t.ok((await finance.get(`/dashboard/payout_batches/${batch.id}`)).text.includes('Payouts'));
});
