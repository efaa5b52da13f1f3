/** Tests answers that mailboxes may leave out, and logins that servers refuse for the moment. */
import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { access_token, startMailbox, startTokenServer, type TokenServer } from '../mailbox.ts';
import { type Mailed, mail } from './mailed.ts';
import {
  answered,
  answerTo,
  openImapServer,
  openReadOutreach,
  openUnread,
  password,
  type ReadOutreach,
} from './read_inbox.ts';

t.jobs = 4;
const tokens = await startTokenServer();
const rail = await startRail({ provider_urls: { google: tokens.url } });

const inboxOf = async ({ inbox_id }: ReadOutreach): Promise<Json> =>
  (await rail.query<Json>(sql`select t.* from recruitment.inbox t where t.id = ${inbox_id}`))[0] as Json;
const readerOf = async ({ inbox_id }: ReadOutreach): Promise<Json> =>
  (await rail.query<Json>(sql`select r.* from recruitment.inbox_reader r where r.inbox_id = ${inbox_id}`))[0] as Json;
const isKept = (to: Mailed) =>
  eventually(
    async () =>
      (
        await rail.query(
          sql`select from recruitment.message t where t.prospect_id = ${to.prospect_id} and t.direction = 'inbound'`,
        )
      ).length === 1,
    'the reply',
  );
/** Its next connections do not wait. */
const tryAtOnce = ({ inbox_id }: ReadOutreach) =>
  rail.query(
    sql`update recruitment.inbox_reader set next_try_at = now() where inbox_id = ${inbox_id} and worker_id is null`,
  );

t.test('a refusal of the moment is no wrong password', async (t) => {
  const later = [
    'NO [UNAVAILABLE] Authentication failed.',
    'NO [LIMIT] no',
    'NO [INUSE] no',
    'NO Temporary authentication failure.',
    'NO Too many simultaneous connections. (Failure)',
    'BAD User is authenticated but not connected.',
    'BYE overloaded',
  ];
  // Without a code, in whatever language, it may be one of the moment.
  const in_doubt = ['NO LOGIN failed.', 'NO Die Anmeldung ist voruebergehend nicht moeglich'];
  const wrong = ['NO [AUTHENTICATIONFAILED] Try again later', 'NO [EXPIRED] no'];
  const checked = async (answer: string, isOver: (outreach: ReadOutreach) => Promise<boolean>) => {
    const server = await openImapServer();
    const outreach = await openReadOutreach(rail, server);
    server.faults.login_answers.set(outreach.user, answer);
    server.drop();
    await eventually(async () => {
      await tryAtOnce(outreach);
      return isOver(outreach);
    }, answer);
    return { ...(await inboxOf(outreach)), ...(await readerOf(outreach)), outreach };
  };
  const isDisconnected = async (outreach: ReadOutreach) => (await inboxOf(outreach)).status === 'disconnected';
  const [deferred, refused] = await Promise.all([
    Promise.all([...later, ...in_doubt].map((answer) => checked(answer, async ({ server }) => server.refused > 3))),
    Promise.all(wrong.map((answer) => checked(answer, isDisconnected))),
  ]);
  for (const [nth, one] of deferred.entries())
    t.match(one, { status: 'connected', refused: 0, unreachable_since: /^20/ }, `${[...later, ...in_doubt][nth]}`);
  for (const [nth, one] of refused.entries()) t.match(one, { disconnected_reason: 'auth_failed' }, `${wrong[nth]}`);
  const [{ outreach }] = deferred as [(typeof deferred)[number]];
  const { smtp } = await startMailbox();
  const { server, user: username } = outreach;
  const imap = { host: 'localhost', port: server.port, security: 'tls', username, password };
  const answer = await outreach.caller.request('PATCH', `/recruitment/v1/inboxes/${outreach.inbox_id}`, { smtp, imap });
  t.match(answer, {
    status: 422,
    body: { error: { code: 'imap_unreachable', message: /accepts no logins at the moment/ } },
  });
  const refusedInDoubt = deferred.at(-1)?.outreach as ReadOutreach;
  for (const each of [outreach, refusedInDoubt]) {
    await rail.query(
      sql`update recruitment.inbox_reader set unreachable_since = now() - interval '16 minutes' where inbox_id = ${each.inbox_id}`,
    );
    await eventually(async () => {
      await tryAtOnce(each);
      return isDisconnected(each);
    }, 'the end of 15 minutes');
  }
  t.match(await inboxOf(outreach), { disconnected_reason: 'connection_failed' });
  t.match(await inboxOf(refusedInDoubt), { disconnected_reason: 'auth_failed' });
});

t.test('says what the server answered to a login that failed, without the login', async (t) => {
  const server = await openImapServer();
  const outreach = await openReadOutreach(rail, server);
  const answer = async () =>
    (await outreach.caller.get(`/recruitment/v1/inboxes/${outreach.inbox_id}/health`)).imap_answer;
  t.equal(await answer(), null);
  for (const [said, shown] of [
    ['BYE Too many connections from your IP', 'Too many connections from your IP'],
    [
      `NO [ALERT] ${outreach.user} has no \tquota for ${password} (Failure)`,
      'NO [ALERT] … has no quota for … (Failure)',
    ],
    [`NO ${'x'.repeat(1_000)}`, `NO ${'x'.repeat(197)}`],
  ] as const) {
    server.faults.login_answers.set(outreach.user, said);
    server.drop();
    await eventually(async () => {
      await tryAtOnce(outreach);
      return (await answer()) === shown;
    }, shown);
  }
  server.faults.login_answers.clear();
  await eventually(async () => {
    await tryAtOnce(outreach);
    return (await answer()) === null;
  }, 'a login');
});

t.test('an authorization server that cannot answer for a moment is no refused token', async (t) => {
  const outreach = await openReadOutreach(rail, await openImapServer());
  const { inbox_id, server } = outreach;
  const secrets = JSON.stringify({ client_secret: 'client-secret', refresh_token: 'refresh-1' });
  const deferred = [
    { status: 503, body: {} },
    { status: 429, body: { error: 'invalid_request' } },
    { status: 400, body: { error: 'temporarily_unavailable' } },
    { status: 400, body: { message: 'Bad gateway' } },
    { status: 500, body: { error: 'invalid_grant' } },
  ];
  const asked = async (answer: TokenServer['answer'], times: number) => {
    tokens.answer = answer;
    const before = tokens.received.length;
    await eventually(async () => {
      await tryAtOnce(outreach);
      return tokens.received.length >= before + times;
    }, JSON.stringify(answer));
  };
  tokens.answer = deferred[0] as TokenServer['answer'];
  await rail.query(sql`
    update recruitment.inbox set oauth = '{"provider": "google", "client_id": "client"}', secrets = ${rail.services.vault.encrypt(secrets, inbox_id)}
    where id = ${inbox_id}`);
  server.drop();
  for (const answer of deferred) await asked(answer, 2);
  t.match(
    { ...(await inboxOf(outreach)), ...(await readerOf(outreach)) },
    { status: 'connected', refused: 0, unreachable_since: /^20/ },
  );
  server.faults.login_answers.set(outreach.user, 'NO [UNAVAILABLE] Temporary System Problem. Try again later.');
  await asked({ status: 200, body: { access_token, token_type: 'Bearer', expires_in: 3_599 } }, 4);
  t.match({ ...(await inboxOf(outreach)), ...(await readerOf(outreach)) }, { status: 'connected', refused: 0 });
  server.faults.login_answers.clear();
  const before = server.logins.length;
  await eventually(async () => {
    await tryAtOnce(outreach);
    return server.logins.length > before;
  }, 'a login by token');
  server.drop();
  await asked({ status: 400, body: { error: 'invalid_grant' } }, 3);
  await eventually(async () => (await inboxOf(outreach)).status === 'disconnected', 'the end of a refused token');
  t.match(await inboxOf(outreach), { disconnected_reason: 'auth_failed' });
});

t.test('asks a server that ends each IDLE at once ever less often, and reads what comes', async (t) => {
  const server = await openImapServer();
  server.faults.ends_idle = true;
  const outreach = await openReadOutreach(rail, server);
  await eventually(() => server.idles > 2, 'a third IDLE');
  const to = await answered(rail, outreach, 'What do you pay?');
  await isKept(to);
  const { idles } = server;
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  t.ok(server.idles - idles < 10, `${server.idles - idles} IDLEs`);
});

t.test('reads servers that leave out what they may leave out', async (t) => {
  for (const omitted of [
    ['UIDNEXT', 'LIST'],
    ['UIDVALIDITY', 'INTERNALDATE'],
    ['UIDNEXT', 'UIDVALIDITY', 'RFC822.SIZE'],
  ]) {
    const server = await openImapServer();
    server.faults.omits = new Set(omitted);
    server.faults.refuses_empty_searches = true;
    const outreach = await openReadOutreach(rail, server);
    const sent = [await mail(rail, outreach), await mail(rail, outreach), await mail(rail, outreach)] as const;
    server.deliver(outreach.user, answerTo(sent[0], 'What do you pay?'));
    await isKept(sent[0]);
    server.deliver(outreach.user, answerTo(sent[1], 'What do you pay?'), 'Junk');
    server.drop();
    await tryAtOnce(outreach);
    await isKept(sent[1]);
    server.deliver(outreach.user, answerTo(sent[2], `${'What do you pay?\n\n'.repeat(20_000)}`));
    await isKept(sent[2]);
    t.match(await inboxOf(outreach), { status: 'connected' }, omitted.join());
  }
});

t.test(
  'passes a mail over at which connections were lost, also where each connection begins a folder anew',
  async (t) => {
    const server = await openImapServer();
    server.faults.omits = new Set(['UIDVALIDITY']);
    const outreach = await openReadOutreach(rail, server);
    const sent = [await mail(rail, outreach), await mail(rail, outreach), await mail(rail, outreach)] as const;
    const set_aside = sql`select a.uid::integer from recruitment.mail_set_aside a where a.inbox_id = ${outreach.inbox_id}`;
    server.faults.drops_at = 'a poisonous mail';
    server.deliver(outreach.user, answerTo(sent[0], 'What do you pay?'));
    await isKept(sent[0]);
    const uid = server.deliver(outreach.user, answerTo(await mail(rail, outreach), 'This is a poisonous mail.'));
    server.deliver(outreach.user, answerTo(sent[1], 'What do you pay?'));
    const isReadOn = async (to: Mailed) => {
      const timer = setInterval(() => void tryAtOnce(outreach), 50);
      await isKept(to);
      clearInterval(timer);
    };
    await isReadOn(sent[1]);
    t.same(await rail.query(set_aside), [{ uid }]);
    const logins = server.logins.length;
    await rail.query(
      sql`update recruitment.mail_set_aside set next_try_at = now() where inbox_id = ${outreach.inbox_id}`,
    );
    server.drop();
    server.deliver(outreach.user, answerTo(sent[2], 'What do you pay?'));
    await isReadOn(sent[2]);
    t.equal(server.logins.length, logins + 1, 'no connection is lost at it again');
    t.same(await rail.query(set_aside), [{ uid }], 'its UID may be another one by now: it is not read again');
  },
);

t.test('reads answers to FETCH in any order, and what else is said of mails meanwhile', async (t) => {
  const server = await openImapServer();
  const outreach = await openUnread(rail, server);
  server.faults.fetches_backwards = true;
  const sent = [await mail(rail, outreach), await mail(rail, outreach), await mail(rail, outreach)];
  for (const each of sent) server.deliver(outreach.user, answerTo(each, 'Yes, please send me the details.'));
  server.drop();
  await tryAtOnce(outreach);
  for (const each of sent) await isKept(each);
  const set_aside = sql`select from recruitment.mail_set_aside a where a.inbox_id = ${outreach.inbox_id}`;
  t.equal((await rail.query(set_aside)).length, 0);
});

t.test('reads INBOX although the junk folder that the server names cannot be selected', async (t) => {
  const server = await openImapServer();
  server.faults.unselectable = 'Junk';
  const outreach = await openReadOutreach(rail, server);
  await isKept(await answered(rail, outreach, 'What do you pay?'));
  t.equal(server.logins.length, 1, 'over the same connection');
});
