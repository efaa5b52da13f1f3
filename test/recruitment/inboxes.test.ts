import t from 'tap';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { changePlan } from '../../src/recruitment/change_plan.ts';
import { loginOf } from '../../src/recruitment/inboxes/given_login.ts';
import { openMailbox } from '../../src/recruitment/sending/look_up.ts';
import { type Caller, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { stablePort } from '../ports.ts';
import { access_token, password, startMailbox, startTokenServer } from './mailbox.ts';

const tokens = await startTokenServer();
const rail = await startRail({ provider_urls: { google: tokens.url, microsoft: tokens.url } });
const mailbox = await startMailbox();
const path = '/recruitment/v1/inboxes';
const { smtp, imap } = mailbox;
const inbox = { email: 'grace@acme.com', from_name: 'Grace', smtp, imap };
const oauth = { client_id: 'client', client_secret: 'client-secret', refresh_token: 'refresh-1' };
const withoutPassword = ({ host, port, security }: Json) => ({ host, port, security });
const by_token = {
  ...{ email: 'grace', from_name: 'Grace', smtp: withoutPassword(smtp), imap: withoutPassword(imap) },
};

const secretsOf = async (id: string): Promise<Json> => {
  const [row] = await rail.query<{ secrets: Buffer }>(sql`select secrets from recruitment.inbox where id = ${id}`);
  return JSON.parse(rail.services.vault.decrypt(row?.secrets as Buffer, id));
};
const refused = (caller: Caller, body: Json) => caller.request('POST', path, body);

t.test('connects an inbox after trying both logins, and never shows a password', async (t) => {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  await caller.post('/recruitment/v1/webhook_endpoints', { url: receiver.url });
  mailbox.logins.length = 0;
  const created = await caller.post(path, inbox);
  t.match(created, {
    ...{ object: 'inbox', id: /^fin_/, status: 'connected', disconnected_reason: null, daily_limit: 40, oauth: null },
    ...{ ramp: { start: 10, step: 2 }, min_gap_s: 90, max_gap_s: 300, timezone: 'UTC' },
    smtp: { host: 'localhost', port: smtp.port, security: 'tls', username: 'grace' },
  });
  t.same(mailbox.logins, ['PLAIN grace']);
  t.notMatch(JSON.stringify([created, await caller.get(path)]), password);
  t.same(await secretsOf(created.id), { smtp_password: password, imap_password: password });
  const [received] = await receiver.until(1);
  t.match(received?.body, { type: 'inbox.connected', data: { inbox_id: created.id } });
  t.match(await refused(caller, { ...inbox, email: 'Grace@acme.com' }), {
    status: 409,
    body: { error: { param: 'email' }, existing: { id: created.id } },
  });
});

t.test('keeps nothing of a login that is refused, and says which', async (t) => {
  const caller = await rail.organization();
  const free_port = await stablePort();
  const certificate = /: its certificate is not valid for the host/; // which is for localhost
  const refusal = /: it refused the connection/;
  for (const [changes, status, code, param, message] of [
    [{ smtp: { ...smtp, password: 'wrong' } }, 422, 'smtp_auth_failed', 'smtp'],
    [{ imap: { ...imap, password: 'wrong' } }, 422, 'imap_auth_failed', 'imap'],
    [{ smtp: { ...smtp, port: free_port } }, 422, 'smtp_unreachable', 'smtp', refusal],
    [{ imap: { ...imap, port: free_port } }, 422, 'imap_unreachable', 'imap', refusal],
    [{ smtp: { ...smtp, host: '127.0.0.1' } }, 422, 'smtp_unreachable', 'smtp', certificate],
    [{ imap: { ...imap, host: '127.0.0.1' } }, 422, 'imap_unreachable', 'imap', certificate],
    [{ imap: undefined }, 400, 'missing_parameter', 'imap'],
    [{ smtp: withoutPassword(smtp) }, 400, 'missing_parameter', 'smtp.password'],
    [{ smtp: { ...smtp, password: undefined } }, 400, 'missing_parameter', 'smtp.password'],
    [{ imap: { ...imap, username: undefined } }, 400, 'missing_parameter', 'imap.username'],
    [{ min_gap_s: 400 }, 400, 'invalid_parameter', 'max_gap_s'],
    [{ from_name: 'Grace\r\nBcc: all@example.com' }, 400, 'invalid_parameter', 'from_name'],
  ] as const) {
    const answer = await refused(caller, { ...inbox, ...changes });
    t.match(
      answer,
      { status, body: { error: { code, param, message: message ?? /./ } } },
      `${param} ${JSON.stringify(answer.body)}`,
    );
    t.notMatch(JSON.stringify(answer.body), /wrong|app-password/);
  }
  t.equal((await caller.get(path)).total_count, 0);
});

t.test('never connects to a private host, nor to a port that is not of mail', async (t) => {
  const strict = await startRail({ worker: false, own: { allow_private_addresses: false } });
  const caller = await strict.organization();
  for (const [host, port, param] of [
    ['localhost', 993, 'imap.host'],
    ['127.0.0.1', 993, 'imap.host'],
    ['[::1]', 993, 'imap.host'],
    ['169.254.169.254', 143, 'imap.host'],
    ['imap.acme.internal', 993, 'imap.host'],
    ['imap.acme.com', 5432, 'imap.port'],
  ] as const) {
    const servers = { smtp: { ...smtp, host, port: 465 }, imap: { ...imap, host, port } };
    const { body, status } = await refused(caller, { ...inbox, ...servers });
    t.match({ status, code: body.error.code }, { status: 400, code: 'address_not_allowed' }, `${host}:${port}`);
    t.ok([param, 'smtp.host'].includes(body.error.param), body.error.param);
  }
});

t.test('a server without a port is at the usual one of its security', async (t) => {
  const portsFor = (security: 'tls' | 'starttls') => {
    const server = { host: 'mail.acme.com', security, username: 'grace', password };
    const login = loginOf({ smtp: server, imap: server }, 'grace@acme.com');
    return [login.smtp.port, login.imap.port];
  };
  t.same(
    [portsFor('tls'), portsFor('starttls')],
    [
      [465, 993],
      [587, 143],
    ],
  );
});

t.test('logs in by OAuth 2, and keeps a refresh token that the provider replaced', async (t) => {
  const caller = await rail.organization();
  const body = { ...by_token, email: 'grace@acme.com', oauth: { provider: 'microsoft', ...oauth } };
  // The user of a token is the address of the inbox, and this server knows another one.
  t.match(await refused(caller, body), { status: 422, body: { error: { code: 'smtp_auth_failed' } } });
  t.same(Object.fromEntries(tokens.received.at(-1) as URLSearchParams), {
    ...{ grant_type: 'refresh_token', client_id: 'client', client_secret: 'client-secret', refresh_token: 'refresh-1' },
    scope: 'https://outlook.office.com/SMTP.Send https://outlook.office.com/IMAP.AccessAsUser.All offline_access',
  });
  const { of_token, started } = await startTokenMailbox();
  tokens.answer = { status: 200, body: { access_token, refresh_token: 'refresh-2' } };
  const created = await caller.post(path, { ...body, ...of_token });
  t.same(created.oauth, { provider: 'microsoft', client_id: 'client' });
  t.same(started.logins, ['XOAUTH2 grace@acme.com']);
  t.same(await secretsOf(created.id), { client_secret: 'client-secret', refresh_token: 'refresh-2' });
  tokens.answer = { status: 200, body: { access_token, refresh_token: 'refresh-3' } };
  t.same(await caller.post(`${path}/${created.id}/test`), { object: 'inbox_test', ok: true });
  t.match(await secretsOf(created.id), { refresh_token: 'refresh-3' });
  tokens.answer = { status: 200, body: { access_token, refresh_token: 'refresh-4' } };
  const place = { organization_id: caller.organization_id, inbox_id: created.id };
  (await openMailbox(place, rail)).close();
  t.match(await secretsOf(created.id), { refresh_token: 'refresh-4' }, 'also by a worker that looks into the mailbox');
  tokens.answer = { status: 400, body: { error: 'invalid_grant', error_description: 'refresh-3 was revoked' } };
  const answer = await caller.request('POST', `${path}/${created.id}/test`);
  t.match(answer, { status: 422, body: { error: { code: 'oauth_failed', message: /invalid_grant/ } } });
  t.notMatch(JSON.stringify(answer.body), /refresh-3/);
  tokens.answer = { status: 503, body: {} };
  t.match(await caller.request('POST', `${path}/${created.id}/test`), { status: 503 });
});

async function startTokenMailbox() {
  const started = await startMailbox({ user: 'grace@acme.com' });
  return { started, of_token: { smtp: withoutPassword(started.smtp), imap: withoutPassword(started.imap) } };
}

t.test('updates settings alone, and a login only after trying it', async (t) => {
  const caller = await rail.organization();
  const { id } = await caller.post(path, inbox);
  const one = `${path}/${id}`;
  t.match(await caller.patch(one, { daily_limit: 60, ramp: null, signature: 'G.' }), {
    ...{ daily_limit: 60, ramp: null, signature: 'G.', smtp: { port: smtp.port } },
  });
  t.match(await caller.request('PATCH', one, { max_gap_s: 10 }), { status: 400 });
  t.match(await caller.request('PATCH', one, { smtp: { ...smtp, password: 'wrong' } }), { status: 422 });
  t.match(await secretsOf(id), { smtp_password: password });
  const elsewhere = await startMailbox();
  t.match(await caller.patch(one, { imap: elsewhere.imap }), { imap: { port: elsewhere.imap.port } });
  t.same(await secretsOf(id), { smtp_password: password, imap_password: password });
});

t.test('disconnects, reconnects after trying the login, and deletes with its login', async (t) => {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  await caller.post('/recruitment/v1/webhook_endpoints', { url: receiver.url });
  const { id } = await caller.post(path, inbox);
  const one = `${path}/${id}`;
  t.match(await caller.post(`${one}/disconnect`), { status: 'disconnected', disconnected_reason: 'disabled' });
  t.match(await caller.post(`${one}/disconnect`), { status: 'disconnected' });
  t.match(await caller.post(`${one}/reconnect`), { status: 'connected', disconnected_at: null });
  t.match(await caller.post(`${one}/reconnect`), { status: 'connected' });
  t.match(await caller.request('DELETE', one), { status: 200, body: { deleted: true } });
  t.equal((await caller.request('POST', `${one}/reconnect`)).status, 404);
  const events = (await receiver.until(4)).map(({ body }) => [body.type, body.data.reason]);
  t.same(events, [
    ['inbox.connected', undefined],
    ['inbox.disconnected', 'disabled'],
    ['inbox.connected', undefined],
    ['inbox.disconnected', 'removed'],
  ]);
  const [row] = await rail.query<{ bytes: number }>(
    sql`select length(secrets) as bytes from recruitment.inbox where id = ${id}`,
  );
  t.equal(row?.bytes, 0);
  t.match(await caller.post(path, inbox), { status: 'connected' });
});

t.test('a plan has room for its number of inboxes', async (t) => {
  const caller = await rail.organization();
  const { organization_id } = caller;
  await transaction(rail.store, { organization_id, request_id: null }, (tx) => changePlan(tx, 'starter'));
  mailbox.logins.length = 0;
  t.match(await refused(caller, inbox), { status: 402, body: { error: { code: 'plan_limit_reached' } } });
  t.same(mailbox.logins, [], 'the provider is not asked');
});
