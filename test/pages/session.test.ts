import { type IncomingMessage, request } from 'node:http';
import fastify from 'fastify';
import sql from 'sql-template-tag';
import t from 'tap';
import { confirmSession, keepTotp } from '../../src/core/access/confirm_session.ts';
import { makeSignInLink, resumeSession, type Session } from '../../src/core/access/session.ts';
import { base32, codeAt, stepOfCode } from '../../src/core/access/totp.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { takeForms } from '../../src/pages/person.ts';
import { eventually, type Json, startRail } from '../harness.ts';
import { type Browser, browse } from './browse.ts';
import { colleague, signedIn } from './people.ts';

const mails: { recipient: string; text: string }[] = [];
const rail = await startRail({ own: { mailer: async ({ recipient, text }) => void mails.push({ recipient, text }) } });
const merchant = await rail.organization();

/** The mail that came to an address. */
async function mailTo(address: string): Promise<string> {
  await eventually(() => mails.some(({ recipient }) => recipient === address), `a mail to ${address}`);
  return mails.find(({ recipient }) => recipient === address)?.text as string;
}

const service = { organization_id: null, request_id: null };

t.test('codes are those of RFC 6238', async (t) => {
  const secret = Buffer.from('12345678901234567890');
  // The last six of the eight digits in its appendix B.
  const cases: [seconds: number, code: string][] = [
    [59, '287082'],
    [1111111109, '081804'],
    [1111111111, '050471'],
    [1234567890, '005924'],
    [2000000000, '279037'],
    [20000000000, '353130'],
  ];
  for (const [seconds, code] of cases) t.equal(codeAt(secret, Math.floor(seconds / 30)), code);
  t.equal(base32(secret), 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ');
  t.equal(stepOfCode(secret, '287 082', 59_000, null), 1);
  t.equal(stepOfCode(secret, '287082', 59_000, 1), undefined, 'none is taken twice');
  t.equal(stepOfCode(secret, '287082', 130_000, null), undefined);
  for (const wrong of ['', '28708', '2870820', 'abcdef', '🙂🙂🙂'])
    t.equal(stepOfCode(secret, wrong, 59_000, null), undefined);
});

t.test('a link to sign in shows a button and changes nothing, and is redeemed once', async (t) => {
  const email = 'grace@team.example.com';
  await merchant.post('/v1/users', { email, name: 'Grace' });
  const browser = browse(rail.address);
  const form = (await browser.get('/dashboard/sign_in')).forms[0];
  const asked = await browser.submit(form, { email });
  t.match(asked.text, /a link is on its way/);
  const mail = await mailTo(email);
  const path = /\/dashboard\/sign_in\?token=\S+/.exec(mail)?.[0] as string;
  for (const _ of [1, 2]) {
    const page = await browser.get(path);
    t.equal(page.status, 200);
    t.equal(page.headers['set-cookie'], undefined);
  }
  const page = await browser.get(path);
  const home = await browser.submit(page.forms[0]);
  t.equal(home.path, '/dashboard');
  t.match(home.text, /Grace \(member\)/);
  t.same([...browser.cookies.keys()], ['__Host-rail']);
  const again = await browse(rail.address).submit(page.forms[0]);
  t.equal(again.status, 410);
  t.match(again.text, /was used, has expired/);
});

t.test(
  'whoever asks for a link learns nothing about who has an account, and no person is mailed more than five an hour',
  async (t) => {
    const email = 'often@team.example.com';
    await merchant.post('/v1/users', { email });
    const browser = browse(rail.address);
    const known = await browser.post('/dashboard/sign_in_link', { email });
    const unknown = await browser.post('/dashboard/sign_in_link', { email: 'nobody@team.example.com' });
    t.equal(known.text, unknown.text);
    for (let nth = 0; nth < 7; nth++) {
      await browser.post('/dashboard/sign_in_link', { email });
      await eventually(
        async () =>
          (await rail.query(sql`select from graphile_worker.jobs where task_identifier = 'core/mail_sign_in_links'`))
            .length === 0,
        'the links',
      );
    }
    const [{ count }] = (await rail.query(sql`
    select count(*)::int as count from core.outgoing_mail where recipient = ${email}`)) as [Json];
    t.equal(count, 5);
  },
);

t.test('the cookie is for this host alone, and neither for scripts nor for forms of other sites', async (t) => {
  const browser = await signedIn(rail, merchant);
  const { user_id } = browser;
  const token = await transaction(rail.store, service, (tx) => makeSignInLink(tx, merchant.organization_id, user_id));
  const answer = await fetch(`${rail.address}/dashboard/sign_in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: rail.address, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token }),
  });
  t.equal(answer.status, 303);
  t.match(
    answer.headers.get('set-cookie'),
    /^__Host-rail=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Lax; Max-Age=\d+$/,
  );
  const [row] = await rail.query(
    sql`select row_to_json(s)::text as stored from core.session s order by created_at desc limit 1`,
  );
  t.notOk(
    row?.stored.includes(/=([\w-]{43});/.exec(answer.headers.get('set-cookie') ?? '')?.[1]),
    'a hash alone is stored',
  );
});

t.test('a form of another site is refused, and nothing is done', async (t) => {
  const browser = await signedIn(rail, merchant);
  const fields = { name: 'Of another site' };
  for (const headers of [
    { origin: 'https://evil.example.com' },
    { origin: 'null' },
    { origin: rail.address, 'sec-fetch-site': 'cross-site' },
    { origin: `${rail.address}.evil.example.com` },
  ] as Record<string, string>[]) {
    const page = await browser.post('/dashboard/do/groups.create', fields, headers);
    t.equal(page.status, 403, JSON.stringify(headers));
    t.match(page.text, /was not sent from a page of this service/);
  }
});

t.test('a session ends when it is signed out, revoked, idle, too old, or its user is removed', async (t) => {
  const isIn = async (browser: Browser) => (await browser.get('/dashboard')).path === '/dashboard';
  const out = await signedIn(rail, merchant);
  t.ok(await isIn(out));
  const cookie = new Map(out.cookies);
  await out.submit((await out.get('/dashboard')).forms.find(({ button }) => button === 'Sign out'));
  const stolen = browse(rail.address);
  for (const [name, value] of cookie) stolen.cookies.set(name, value);
  t.notOk(await isIn(stolen), 'signed out everywhere, and not in the browser alone');

  for (const change of [
    sql`last_seen_at = now() - interval '12 hours 1 minute'`,
    sql`expires_at = now()`,
    sql`revoked_at = now()`,
  ]) {
    const browser = await signedIn(rail, merchant);
    await rail.query(sql`update core.session set ${change} where user_id = ${browser.user_id}`);
    t.notOk(await isIn(browser));
  }
  const removed = await signedIn(rail, merchant, 'member');
  await merchant.delete(`/v1/users/${removed.user_id}`);
  t.notOk(await isIn(removed));
});

t.test('an account shows its sessions, and ends the others', async (t) => {
  const first = await signedIn(rail, merchant);
  const token = await transaction(rail.store, service, (tx) =>
    makeSignInLink(tx, merchant.organization_id, first.user_id),
  );
  const second = browse(rail.address);
  await second.submit((await second.get(`/dashboard/sign_in?token=${token}`)).forms[0]);
  const account = await second.get('/dashboard/account');
  t.equal(account.forms.filter(({ button }) => button === 'Sign out there').length, 1);
  await second.submit(account.forms.find(({ button }) => button === 'Sign out everywhere else'));
  t.equal((await first.get('/dashboard')).path, '/dashboard/sign_in');
  t.equal((await second.get('/dashboard')).path, '/dashboard');
});

t.test('what opens access needs a code of an app, and the fifth wrong one ends the session', async (t) => {
  const browser = await signedIn(rail, merchant);
  const form = await browser.get('/dashboard/do/api_keys.create');
  t.match(form.text, /Set one up first/);
  t.match(form.html, /type="checkbox" name="scopes" value="sales:write"/, 'the scopes there are');
  const refused = await browser.submit(
    form.forms.find(({ action }) => action.endsWith('api_keys.create')),
    { name: 'From a page', scopes: '*:read' },
  );
  t.equal(refused.status, 403);
  t.match(refused.text, /Set up an authenticator app/);

  const setup = (await browser.get('/dashboard/account')).forms.find(
    ({ action }) => action === '/dashboard/account/app',
  );
  const key = /Key: ((?:[A-Z2-7]{4} ?)+)/.exec((await browser.get('/dashboard/account')).text);
  t.ok(key);
  const sealed = Buffer.from(setup?.fields.sealed ?? '', 'base64');
  const secret = Buffer.from(rail.services.vault.decrypt(sealed, `totp that ${browser.user_id} sets up`), 'base64');
  t.match((await browser.submit(setup, { code: '000000' })).text, /code of the new app is not right/);
  const elsewhere = browse(rail.address);
  await elsewhere.submit((await elsewhere.get(await browser.link())).forms[0]);
  const step = Math.floor(Date.now() / 30_000);
  await browser.submit(setup, { code: codeAt(secret, step) });
  t.equal((await elsewhere.get('/dashboard')).path, '/dashboard/sign_in', 'the other sessions end');
  t.match(await mailTo(browser.email), /An authenticator app was set up[\s\S]*If it was not you/);
  const now = await browser.get('/dashboard/do/api_keys.create');
  t.notMatch(now.text, /Code of your app/, 'it was confirmed a moment ago');
  const made = await browser.submit(
    now.forms.find(({ action }) => action.endsWith('api_keys.create')),
    { name: 'From a page', scopes: '*' },
  );
  t.equal(made.status, 200, made.text);
  t.match(made.text, /rail_live_/);
  t.match(made.text, /shown once/);

  await rail.query(
    sql`update core.session set confirmed_at = now() - interval '16 minutes' where user_id = ${browser.user_id}`,
  );
  const later = await browser.get('/dashboard/do/api_keys.create');
  t.match(later.text, /Code of your app/);
  const send = (code: string) =>
    browser.submit(
      later.forms.find(({ action }) => action.endsWith('api_keys.create')),
      { name: 'Another', scopes: '*:read', code },
    );
  t.match((await send(codeAt(secret, step))).text, /was used/, 'a code is taken once');
  t.equal((await send(codeAt(secret, step + 1))).status, 200);

  await rail.query(sql`update core.session set confirmed_at = null where user_id = ${browser.user_id}`);
  for (let nth = 0; nth < 5; nth++) await send('123');
  t.equal((await browser.get('/dashboard')).path, '/dashboard/sign_in');
  const [{ secrets }] = (await rail.query(
    sql`select totp_secret::text as secrets from core.user_account where id = ${browser.user_id}`,
  )) as [Json];
  t.notOk(secrets.includes(secret.toString('hex')), 'it is stored encrypted');
});

t.test('what a page does is a request with a uuid, by the user, and is done once', async (t) => {
  const program = await merchant.post('/v1/programs', {
    name: 'Acme',
    website_url: 'https://acme.example.com',
    currency: 'USD',
  });
  const browser = await signedIn(rail, merchant, 'member');
  const page = await browser.get(`/dashboard/do/partners.create?program_id=${program.id}`);
  const form = page.forms.find(({ action }) => action.endsWith('partners.create'));
  const [one, two] = await Promise.all([1, 2].map(() => browser.submit(form, { email: 'ada@partner.example.com' })));
  for (const page of [one, two]) t.match(page?.path, /^\/dashboard\/partners\/part_/, page?.text ?? '');
  const { data } = await merchant.get(`/v1/partners?program_id=${program.id}`);
  t.equal(data.length, 1);
  const events = await merchant.get(`/v1/events?program_id=${program.id}&type=affiliate.created`);
  t.equal(events.data.length, 1);
  const [event] = (await rail.query(sql`select request_id from webhooks.event where id = ${events.data[0].id}`)) as [
    Json,
  ];
  t.match(event.request_id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  const { data: entries } = await merchant.get(`/v1/audit_log?object_id=${data[0].id}`);
  t.match(entries, [
    {
      api_key_id: null,
      user_id: browser.user_id,
      partner_id: null,
      operation: 'partners.create',
      request_id: event.request_id,
    },
  ]);
});

t.test('a partner signs in by a magic link, which a program that reads mail does not use up', async (t) => {
  const program = await merchant.post('/v1/programs', {
    name: 'Portal',
    website_url: 'https://portal.example.com',
    currency: 'USD',
  });
  const partner = await merchant.post('/v1/partners', { program_id: program.id, email: 'bob@partner.example.com' });
  const { url } = await merchant.post(`/v1/partners/${partner.id}/magic_link`);
  const path = new URL(url).pathname + new URL(url).search;
  const browser = browse(rail.address);
  const page = await browser.get(path);
  await browser.get(path);
  const home = await browser.submit(page.forms[0]);
  t.equal(home.path, '/portal');
  t.match(home.text, /bob@partner.example.com/);
  t.equal((await browse(rail.address).submit(page.forms[0])).status, 410);
  t.equal((await browser.get('/dashboard')).path, '/dashboard/sign_in', 'a partner is nobody in the dashboard');

  const asked = browse(rail.address);
  await asked.submit((await asked.get('/portal/sign_in')).forms[0], { email: 'bob@partner.example.com' });
  const mail = await mailTo('bob@partner.example.com');
  t.match(mail, /\/portal\/sign_in\?token=/);
});

t.test(
  'no page can be framed or run scripts of others, and no address of a session can be set before it is opened',
  async (t) => {
    const browser = await signedIn(rail, merchant);
    for (const path of ['/dashboard', '/dashboard/sign_in', '/portal/sign_in', '/dashboard/nothing']) {
      const { headers } = await browser.get(path);
      t.match(headers['content-security-policy'], /frame-ancestors 'none'/, path);
      t.match(headers['content-security-policy'], /script-src 'self'/, path);
      t.notMatch(headers['content-security-policy'], /unsafe/, path);
      t.equal(headers['cache-control'], 'no-store', path);
    }
    const { user_id, link } = await colleague(rail, merchant);
    const fixed = browse(rail.address);
    fixed.cookies.set('__Host-rail', 'known-to-an-attacker');
    await fixed.submit((await fixed.get(await link())).forms[0]);
    t.not(fixed.cookies.get('__Host-rail'), 'known-to-an-attacker');
    const attacker = browse(rail.address);
    attacker.cookies.set('__Host-rail', 'known-to-an-attacker');
    t.equal((await attacker.get('/dashboard')).path, '/dashboard/sign_in');
    t.ok(user_id);
  },
);

t.test('a session of one area opens nothing in the other, and a path of a form leads nowhere else', async (t) => {
  const browser = await signedIn(rail, merchant);
  const portal = browse(rail.address);
  portal.cookies.set('__Host-rail-portal', browser.cookies.get('__Host-rail') as string);
  t.equal((await portal.get('/portal')).path.replace(/\?.*/, ''), '/portal/sign_in');
  const { id: program_id } = await merchant.post('/v1/programs', {
    name: 'Back',
    website_url: 'https://back.example.com',
    currency: 'USD',
  });
  const page = await browser.get(`/dashboard/do/tags.create?program_id=${program_id}`);
  const form = page.forms.find(({ action }) => action.endsWith('tags.create'));
  const made = await browser.post('/dashboard/do/tags.create', {
    ...form?.fields,
    name: 'Blog',
    back: 'https://evil.example.com/',
  });
  t.match(made.path, /^\/dashboard\/tags\/tag_/);
});

const secret = Buffer.from('12345678901234567890');

/** An owner with an app, whose code a form of the browser asks for. */
async function withApp() {
  const browser = await signedIn(rail, merchant);
  const { user_id } = browser;
  const sealed = rail.services.vault.encrypt(secret.toString('base64'), user_id);
  await rail.query(sql`update core.user_account set totp_secret = ${sealed}, totp_step = null where id = ${user_id}`);
  const session = async () => {
    const token = await transaction(rail.store, service, (tx) => makeSignInLink(tx, merchant.organization_id, user_id));
    const another = browse(rail.address);
    await another.submit((await another.get(`/dashboard/sign_in?token=${token}`)).forms[0]);
    return another;
  };
  return { user_id, browser, session };
}

/** A code that no app of the secret shows about now. */
function wrongCode(): string {
  const step = Math.floor(Date.now() / 30_000);
  const right = new Set([-2, -1, 0, 1, 2, 3].map((by) => codeAt(secret, step + by)));
  return [...'0123456789'].map((digit) => digit.repeat(6)).find((code) => !right.has(code)) as string;
}
const rightCode = () => codeAt(secret, Math.floor(Date.now() / 30_000));

t.test('of codes that are sent at once, those that come after the fifth wrong one are not looked at', async (t) => {
  const { browser } = await withApp();
  const session = await resumeSession(rail.store.database, browser.cookies.get('__Host-rail') as string);
  t.ok(session);
  // Each of these requests found the session while it went on.
  const confirm = (code: string) =>
    transaction(rail.store, service, (tx) => confirmSession(tx, session as Session, code, rail.services.vault));
  for (let nth = 0; nth < 5; nth++) t.notOk(await confirm(wrongCode()));
  t.notOk(await confirm(rightCode()), 'the right one comes too late');
});

t.test('an app that is set up stands, whatever forms were on their way', async (t) => {
  const browser = await signedIn(rail, merchant);
  const other = browse(rail.address);
  await other.submit((await other.get(await browser.link())).forms[0]);
  const stateOf = async (of: Browser) =>
    (await resumeSession(rail.store.database, of.cookies.get('__Host-rail') as string)) as Session;
  const [own, stale] = [await stateOf(browser), await stateOf(other)];
  const keep = (session: Session, secret: Buffer) =>
    transaction(rail.store, service, (tx) =>
      keepTotp(tx, session, { secret, code: codeAt(secret, Math.floor(Date.now() / 30_000)) }, rail.services.vault),
    );
  t.ok(await keep(own, secret));
  const another = Buffer.from('09876543210987654321');
  t.notOk(await keep(stale, another), 'the session was ended meanwhile');
  t.notOk(await keep(own, another), 'no code of the app that is set up was asked for');
  t.equal((await browser.get('/dashboard')).path, '/dashboard');
  t.match((await browser.post('/dashboard/account/confirm', { code: '12' })).text, /not right/);
  t.equal((await other.get('/dashboard')).path, '/dashboard/sign_in');
});

t.test('who is removed while their form is coming is nobody once it has come', async (t) => {
  const browser = await signedIn(rail, merchant, 'admin');
  const body = 'id=nothing';
  const sent = request(`${rail.address}/dashboard/account/end_session`, {
    method: 'POST',
    headers: {
      cookie: `__Host-rail=${browser.cookies.get('__Host-rail')}`,
      origin: rail.address,
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': body.length,
      expect: '100-continue',
    },
  });
  const answered = new Promise<IncomingMessage>((resolve) => sent.once('response', resolve));
  sent.flushHeaders();
  await new Promise((resolve) => sent.once('continue', resolve));
  await merchant.delete(`/v1/users/${browser.user_id}`);
  sent.end(body);
  const answer = (await answered).resume();
  t.equal(answer.headers.location, '/dashboard/sign_in');
});

t.test('a browser that keeps no cookie is told so', async (t) => {
  const { link } = await colleague(rail, merchant);
  const browser = browse(rail.address);
  browser.cookies.set = () => browser.cookies;
  const page = await browser.submit((await browser.get(await link())).forms[0]);
  t.equal(page.status, 400);
  t.match(page.text, 'Allow cookies');
});

t.test('a form over http is none of a service over https', async (t) => {
  const app = fastify();
  t.teardown(() => app.close());
  app.setErrorHandler((error, _, reply) => reply.code((error as { status?: number }).status ?? 500).send());
  takeForms(app, 'https://rail.example.com');
  app.post('/', async () => 'taken');
  const statusOf = async (headers: Record<string, string>) =>
    (
      await app.inject({
        method: 'POST',
        url: '/',
        payload: 'a=1',
        headers: { host: 'rail.example.com', 'content-type': 'application/x-www-form-urlencoded', ...headers },
      })
    ).statusCode;
  t.equal(await statusOf({ origin: 'https://rail.example.com' }), 200);
  for (const origin of [
    'http://rail.example.com',
    'https://rail.example.com:444',
    'https://rail.example.com.evil.com',
    'null',
  ])
    t.equal(await statusOf({ origin }), 403, origin);
  for (const site of ['same-site', 'cross-site', 'none'])
    t.equal(await statusOf({ origin: 'https://rail.example.com', 'sec-fetch-site': site }), 403, site);
  t.equal(await statusOf({}), 403);
});

t.test('an address is taken as it is typed, and one that no mail reaches is refused', async (t) => {
  const browser = browse(rail.address);
  for (const area of ['dashboard', 'portal']) {
    const ask = async (email: string) => (await browser.post(`/${area}/sign_in_link`, { email })).status;
    t.equal(await ask(`${'İ'.repeat(250)}@x`), 200, 'in lower case it is twice as long');
    t.equal(await ask('a\0b@x.example.com'), 400);
  }
});

t.test('more sessions give no more guesses of a code in a day', async (t) => {
  const { user_id, session } = await withApp();
  for (let nth = 0; nth < 4; nth++) {
    const one = await session();
    for (let code = 0; code < 5; code++) await one.post('/dashboard/account/confirm', { code: wrongCode() });
  }
  const last = await session();
  const refused = await last.post('/dashboard/account/confirm', { code: rightCode() });
  t.equal(refused.status, 400);
  await rail.query(sql`update core.session set last_seen_at = now() - interval '25 hours' where user_id = ${user_id}`);
  const later = await session();
  t.match((await later.post('/dashboard/account/confirm', { code: rightCode() })).text, /Confirmed/);
});

t.test('who was removed and is added again has neither session nor app', async (t) => {
  const browser = await signedIn(rail, merchant, 'member');
  await rail.query(sql`update core.user_account set totp_secret = 'x', totp_step = 1 where id = ${browser.user_id}`);
  await merchant.delete(`/v1/users/${browser.user_id}`);
  t.match(await merchant.post('/v1/users', { email: browser.email }), { id: browser.user_id, status: 'active' });
  t.same(await rail.query(sql`select totp_secret, totp_step from core.user_account where id = ${browser.user_id}`), [
    { totp_secret: null, totp_step: null },
  ]);
  t.equal((await browser.get('/dashboard')).path, '/dashboard/sign_in');
});

t.test('an address asks for 30 links an hour at most', async (t) => {
  const ask = (address: string) =>
    browse(rail.address).post(
      '/dashboard/sign_in_link',
      { email: `${crypto.randomUUID()}@team.example.com` },
      { origin: rail.address, 'x-forwarded-for': address },
    );
  let page = await ask('93.184.215.7');
  let asked = 1;
  // Twice as many, where an hour ends amid them.
  for (; page.status === 200 && asked <= 60; asked++) page = await ask('93.184.215.7');
  t.ok(asked > 30);
  t.equal(page.status, 429);
  t.match(page.headers['retry-after'], /^\d+$/);
  t.equal((await ask('93.184.215.8')).status, 200);
});

t.test('a session that somebody else has put into the browser is not taken over', async (t) => {
  const [planted, { link, user_id }] = [await signedIn(rail, merchant, 'viewer'), await colleague(rail, merchant)];
  const token = planted.cookies.get('__Host-rail') as string;
  const browser = browse(rail.address);
  browser.cookies.set('__Host-rail', token);
  await browser.submit((await browser.get(await link())).forms[0]);
  t.not(browser.cookies.get('__Host-rail'), token);
  const session = (of: Browser) => resumeSession(rail.store.database, of.cookies.get('__Host-rail') as string);
  t.equal((await session(browser))?.user_id, user_id);
  t.equal((await session(planted))?.user_id, planted.user_id, 'who planted it sees nothing of the other');
});
