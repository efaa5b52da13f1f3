import { raw } from 'sql-template-tag';
import t from 'tap';
import { limitConcurrency } from '../../../src/core/jobs/concurrency.ts';
import { metricsText, openMetrics } from '../../../src/core/metrics/registry.ts';
import { reconnectInbox } from '../../../src/recruitment/campaigns/inbox_connection.ts';
import { openClassifier } from '../../../src/recruitment/reading/classifier.ts';
import { readInbox } from '../../../src/recruitment/reading/connection.ts';
import { eventually, type Json, log, sql, startRail, startWorker } from '../../harness.ts';
import { startMailbox } from '../mailbox.ts';
import { type Mailed, mail, within } from './mailed.ts';
import {
  answered,
  answerTo,
  newMessageId,
  openImapServer,
  openReadOutreach,
  openUnread,
  password,
  type ReadOutreach,
  source,
} from './read_inbox.ts';

// Most of a case is waiting for a worker to look, or to connect again. Those that drop connections have a server of their own.
t.jobs = 4;

await openMetrics();
const rail = await startRail();
const server = await openImapServer();
const v1 = '/recruitment/v1';

/** The events of a prospect, without those of adding it, in their order. */
const eventsOf = ({ receiver }: ReadOutreach, prospect_id: string): Json[] =>
  receiver
    .events()
    .filter(
      ({ type, data }) => data.prospect_id === prospect_id && !['affiliate.added', 'email.revealed'].includes(type),
    );
const cameIn = async (outreach: ReadOutreach, prospect_id: string, count: number) => {
  await eventually(() => eventsOf(outreach, prospect_id).length >= count, `${count} events of ${prospect_id}`);
  return eventsOf(outreach, prospect_id);
};
const inbound = (prospect_id: string) =>
  rail.query<Json>(sql`
    select t.purpose, t.body_text, t.reply_kind, t.confidence, t.needs_review, t.language_code, t.named, t.thread_id, t.inbox_id, t.rfc_message_id
    from recruitment.message t where t.prospect_id = ${prospect_id} and t.direction = 'inbound' order by t.id`);
const sequence = async (id: string) =>
  (await rail.query<Json>(sql`select t.state, t.paused_until from recruitment.sequence t where t.id = ${id}`))[0];
const threadOf = async ({ thread_id }: Mailed) =>
  (
    await rail.query<Json>(
      sql`select t.messages, t.needs_review, t.reply_kind from recruitment.thread t where t.id = ${thread_id}`,
    )
  )[0];
const setAsideIn = ({ inbox_id }: Pick<ReadOutreach, 'inbox_id'>) =>
  rail.query<Json>(
    sql`select a.folder, a.uid, a.tries from recruitment.mail_set_aside a where a.inbox_id = ${inbox_id}`,
  );
/** Has what was set aside read or left out now, which the next connection begins with. */
const readAgain = ({ inbox_id, server }: ReadOutreach) => {
  server.drop();
  return eventually(async () => {
    // A connection that is dropped amid reading it has another one try it again.
    await rail.query(sql`update recruitment.mail_set_aside set next_try_at = now() where inbox_id = ${inbox_id}`);
    return (await setAsideIn({ inbox_id })).length === 0;
  }, 'nothing to be set aside');
};
const messagesIn = async ({ inbox_id }: ReadOutreach): Promise<number> =>
  (
    await rail.query<{ count: number }>(
      sql`select count(*)::int as count from recruitment.message t where t.inbox_id = ${inbox_id} and t.direction = 'inbound'`,
    )
  )[0]?.count as number;
const readUpTo = (outreach: ReadOutreach, uid: number, folder = 'INBOX') =>
  eventually(async () => {
    const [row] = await rail.query<{ last_uid: number }>(sql`
      select t.last_uid from recruitment.inbox_folder t where t.inbox_id = ${outreach.inbox_id} and t.folder = ${folder}`);
    return row !== undefined && row.last_uid >= uid;
  }, `UID ${uid} of ${folder}`);
const isDisconnected = async ({ inbox_id }: ReadOutreach): Promise<boolean> =>
  (await rail.query(sql`select from recruitment.inbox t where t.id = ${inbox_id} and t.status = 'disconnected'`))
    .length > 0;
/** Its next connections do not wait. */
const untilDisconnected = (outreach: ReadOutreach) =>
  eventually(async () => {
    await rail.query(
      sql`update recruitment.inbox_reader set next_try_at = now() where inbox_id = ${outreach.inbox_id} and worker_id is null`,
    );
    return isDisconnected(outreach);
  }, 'the inbox to be disconnected');
/** Writes to a message which address it went to. */
const holdAddress = (message_id: string, email: string) =>
  rail.query(sql`
    update recruitment.message t set email_address_id = a.id
    from recruitment.email_address a
    where t.id = ${message_id} and a.prospect_id = t.prospect_id and a.address_hmac = t.address_hmac and ${email} <> ''`);

t.test('tells of a reply, its kind and its stage, and ends the sequence', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const to = await answered(
    rail,
    outreach,
    'Yes, that sounds great. Please send me the details!\n\nOn Friday Grace wrote:\n> Hi\n',
  );
  const events = await cameIn(outreach, to.prospect_id, 2);
  const { brand_id, inbox_id, campaign_id, caller } = outreach;
  t.match(events, [
    {
      type: 'reply.received',
      data: { brand_id, inbox_id, campaign_id, sequence_id: to.sequence_id, reply_kind: 'positive' },
    },
    {
      type: 'affiliate.stage_changed',
      data: { from: 'contacted', to: 'interested', by_user_id: null, reason: 'reply_received' },
    },
  ]);
  t.match(await inbound(to.prospect_id), [
    {
      purpose: 'reply',
      body_text: 'Yes, that sounds great. Please send me the details!',
      reply_kind: 'positive',
      language_code: 'en',
      thread_id: to.thread_id,
      needs_review: false,
    },
  ]);
  t.match(await sequence(to.sequence_id), { state: 'replied' });
  t.match(await caller.get(`${v1}/prospects/${to.prospect_id}?include[]=stats`), {
    stage: 'interested',
    stats: { replies: 1 },
  });
  const [thread] = await rail.query<Json>(
    sql`select t.messages, t.reply_kind from recruitment.thread t where t.id = ${to.thread_id}`,
  );
  t.same(thread, { messages: 2, reply_kind: 'positive' });
});

t.test('neither stores nor tells mail that answers none of ours', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const { user } = outreach;
  server.deliver(
    user,
    source({ From: 'friend@private.example.com', 'Message-ID': '<1@private.example.com>' }, 'Lunch?'),
  );
  server.deliver(user, 'no mail at all');
  const uid = server.deliver(user, '');
  await readUpTo(outreach, uid);
  t.equal(await messagesIn(outreach), 0);
});

t.test('reads each kind of reply for what it asks', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  for (const [text, kind, stage, more] of [
    ['How much commission do you pay, and how long does the cookie last?', 'question', 'interested', {}],
    ['We are not interested, thank you.', 'negative', 'lost', {}],
    ['Not right now, please ask me again in January.', 'not_now', 'replied', {}],
    [
      'I am not in charge of this. Please contact my colleague Bob Miller, bob@elsewhere.example.com.',
      'wrong_person',
      'replied',
      { named: { name: 'Bob Miller', email: 'bob@elsewhere.example.com' } },
    ],
  ] as const) {
    const to = await answered(rail, outreach, text);
    const [received, moved] = await cameIn(outreach, to.prospect_id, 2);
    t.match(received, { type: 'reply.received', data: { reply_kind: kind } }, text);
    t.match(moved, { type: 'affiliate.stage_changed', data: { from: 'contacted', to: stage } }, text);
    t.match(await inbound(to.prospect_id), [{ purpose: 'reply', reply_kind: kind, ...more }], text);
    t.match(await sequence(to.sequence_id), { state: 'replied' });
  }
  t.match((await metricsText()).text, /^rail_replies_total\{kind="wrong_person"\} [1-9]/m);
});

t.test('marks whoever is angry, after telling the reply', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const to = await answered(
    rail,
    outreach,
    'You idiots, stop sending me this fucking spam! Remove me from your list or I will sue you!',
  );
  const events = await cameIn(outreach, to.prospect_id, 3);
  t.match(events, [
    { type: 'reply.received', data: { reply_kind: 'angry' } },
    { type: 'affiliate.stage_changed', data: { to: 'lost' } },
    { type: 'do_not_contact.added', data: { reason: 'angry_reply', by_user_id: null } },
  ]);
  t.match(await outreach.caller.get(`${v1}/prospects/${to.prospect_id}`), {
    do_not_contact: { reason: 'angry_reply' },
    unsubscribed_at: /^20/,
  });
});

t.test('keeps a reply that it does not understand, and shows it', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const to = await answered(rail, outreach, 'qwzx vrrk', { 'Content-Type': 'text/plain; charset=x-unknown' });
  await cameIn(outreach, to.prospect_id, 1);
  t.match(await inbound(to.prospect_id), [{ purpose: 'reply', needs_review: true }]);
});

t.test('takes a mail without a word for a question that somebody should look at', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const picture = { 'Content-Type': 'image/png', 'Content-Transfer-Encoding': 'base64' };
  const to = await answered(rail, outreach, 'iVBORw0KGgo=', { ...picture, Subject: 'Re: ' });
  t.match(await cameIn(outreach, to.prospect_id, 2), [
    { type: 'reply.received', data: { reply_kind: 'question' } },
    { type: 'affiliate.stage_changed', data: { to: 'replied' } },
  ]);
  t.match(await inbound(to.prospect_id), [{ reply_kind: 'question', confidence: 0, needs_review: true }]);
});

t.test('reads ids that hold NUL, and mail of a date that is none', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const [one, two] = [await mail(rail, outreach), await mail(rail, outreach)];
  const hostile = { 'Message-ID': '<answer\0@their.example.com>', References: '<a\0@b> <\0>' };
  server.deliver(outreach.user, answerTo(one, 'What do you pay?', hostile));
  server.deliver(outreach.user, answerTo(two, 'What do you pay?'), 'INBOX', new Date(8.64e15));
  for (const { prospect_id } of [one, two]) t.equal((await cameIn(outreach, prospect_id, 2)).length, 2);
});

t.test('reads the answers of two people under one Message-ID', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const sent = [await mail(rail, outreach), await mail(rail, outreach)];
  const same = { 'Message-ID': newMessageId() };
  for (const _ of [1, 2])
    for (const to of sent) server.deliver(outreach.user, answerTo(to, 'No, thank you, we are not interested.', same));
  await readUpTo(outreach, 4);
  for (const { prospect_id } of sent) t.equal((await inbound(prospect_id)).length, 1);
});

t.test('an automatic reply pauses follow-ups until the prospect is back, and tells nothing', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const back = new Date(Date.now() + 10 * 86_400_000).toISOString().slice(0, 10);
  const fields = { 'Auto-Submitted': 'auto-replied', Subject: 'Out of office' };
  const away = await answered(rail, outreach, `I am out of the office and will be back on ${back}.`, fields);
  const unsaid = await answered(rail, outreach, 'I am out of the office.', fields);
  await eventually(async () => (await inbound(unsaid.prospect_id)).length > 0, 'the automatic reply');
  const day_after = new Date(Date.parse(back) + 86_400_000).toISOString();
  t.match(await sequence(away.sequence_id), { state: 'active', paused_until: day_after });
  t.match(await sequence(unsaid.sequence_id), { state: 'active', paused_until: /^20/ });
  t.match(await inbound(away.prospect_id), [{ purpose: 'auto_reply', reply_kind: null }]);
  const after = await answered(rail, outreach, 'Yes, please send me the details.');
  await cameIn(outreach, after.prospect_id, 2);
  t.same(eventsOf(outreach, away.prospect_id), []);
});

t.test('a wish to be taken off unsubscribes, in words and by mailto', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const in_words = await answered(rail, outreach, 'Please remove me from your mailing list.');
  const by_mailto = await mail(rail, outreach);
  server.deliver(
    outreach.user,
    source(
      {
        From: 'other@elsewhere.example.com',
        'Message-ID': newMessageId(),
        Subject: `unsubscribe ${by_mailto.message_id}`,
      },
      '',
    ),
  );
  for (const { prospect_id, sequence_id } of [in_words, by_mailto]) {
    const events = await cameIn(outreach, prospect_id, 2);
    t.match(events, [
      { type: 'affiliate.unsubscribed', data: { sequence_id, campaign_id: outreach.campaign_id } },
      { type: 'affiliate.stage_changed', data: { to: 'lost', reason: 'unsubscribed' } },
    ]);
    t.match(await sequence(sequence_id), { state: 'unsubscribed' });
    t.match(await inbound(prospect_id), [{ purpose: 'unsubscribe' }]);
  }
});

type Written = Mailed & { email: string };

const boundary = 'report-boundary';
/** A report of RFC 3464 on what a prospect was sent. */
const bounceOf = (
  { message_id, email }: Mailed & { email: string },
  status: string,
  text: string,
  {
    from = 'MAILER-DAEMON@mx.example.com',
    returned = `Message-ID: <${message_id}@acme.example.com>`,
    ...fields
  }: Json = {},
): string =>
  source(
    {
      ...{
        From: from,
        Subject: 'Undelivered Mail Returned to Sender',
        'Message-ID': newMessageId(),
        'Auto-Submitted': 'auto-replied',
        ...fields,
      },
      'Content-Type': `multipart/report; report-type=delivery-status; boundary="${boundary}"`,
    },
    [
      ...[`--${boundary}`, 'Content-Type: text/plain', '', text],
      ...[`--${boundary}`, 'Content-Type: message/delivery-status', '', 'Reporting-MTA: dns; mx.example.com', ''],
      ...[
        `Final-Recipient: rfc822; ${email}`,
        'Action: failed',
        `Status: ${status}`,
        `Diagnostic-Code: smtp; 550 ${status} ${text}`,
        '',
      ],
      ...[
        `--${boundary}`,
        'Content-Type: message/rfc822',
        '',
        returned,
        `To: ${email}`,
        'From: grace@acme.example.com',
        'Subject: Hello',
        '',
        'Hi',
        '',
      ],
      `--${boundary}--`,
    ].join('\n'),
  );

t.test('reads a second email of a person under one Message-ID, and each of them once', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const to = await mail(rail, outreach);
  const same = { 'Message-ID': newMessageId() };
  const texts = ['What do you pay, and when?', 'And for how long does the cookie last?'];
  for (const text of [...texts, ...texts]) server.deliver(outreach.user, answerTo(to, text, same));
  await readUpTo(outreach, 4);
  t.same((await inbound(to.prospect_id)).map(({ body_text }) => body_text).sort(), texts.toSorted());
});

t.test('sets an email aside that fails, reads on, and reads it again later', async (t) => {
  const own = await openImapServer();
  const outreach = await openReadOutreach(rail, own);
  const [failing, next] = [await mail(rail, outreach), await mail(rail, outreach)];
  const trouble = `trouble_${failing.prospect_id}`;
  await rail.query(
    raw(`create function recruitment.${trouble}() returns trigger language plpgsql as
      $$ begin if new.prospect_id = '${failing.prospect_id}' and new.kind = 'replied' then raise 'trouble'; end if; return new; end $$`),
  );
  await rail.query(
    raw(
      `create trigger ${trouble} before insert on recruitment.activity for each row execute function recruitment.${trouble}()`,
    ),
  );
  const uid = own.deliver(outreach.user, answerTo(failing, 'Yes, please send me the details.'));
  own.deliver(outreach.user, answerTo(next, 'What do you pay?'));
  t.equal((await cameIn(outreach, next.prospect_id, 2)).length, 2, 'the next one is read');
  t.match(await inbound(failing.prospect_id), [
    { purpose: 'reply', needs_review: true, body_text: 'Yes, please send me the details.', confidence: 0 },
  ]);
  t.match(await sequence(failing.sequence_id), { state: 'active', paused_until: /^20/ });
  t.match(await threadOf(failing), { messages: 2, needs_review: true });
  t.match(await setAsideIn(outreach), [{ folder: 'INBOX', uid, tries: 1 }]);
  t.same(eventsOf(outreach, failing.prospect_id), []);
  await rail.query(raw(`drop function recruitment.${trouble} cascade`));
  await readAgain(outreach);
  t.match(await cameIn(outreach, failing.prospect_id, 2), [
    { type: 'reply.received', data: { reply_kind: 'positive' } },
    { type: 'affiliate.stage_changed', data: { to: 'interested' } },
  ]);
  t.match(await inbound(failing.prospect_id), [{ reply_kind: 'positive', needs_review: false }]);
  t.match(await threadOf(failing), { messages: 2, needs_review: false, reply_kind: 'positive' });
});

t.test('sets an email aside at which the connection is lost three times', async (t) => {
  const own = await openImapServer();
  const outreach = await openReadOutreach(rail, own);
  const [lost, next] = [await mail(rail, outreach), await mail(rail, outreach)];
  own.faults.drops_fetches = 3;
  own.deliver(outreach.user, answerTo(lost, 'What do you pay?'));
  await eventually(async () => (await setAsideIn(outreach)).length === 1, 'the email to be set aside');
  own.deliver(outreach.user, answerTo(next, 'What do you pay?'));
  await cameIn(outreach, next.prospect_id, 2);
  t.same(await inbound(lost.prospect_id), []);
  await readAgain(outreach);
  await cameIn(outreach, lost.prospect_id, 2);
});

t.test('leaves an email out after ten tries, and one that was deleted', async (t) => {
  const own = await openImapServer();
  const outreach = await openReadOutreach(rail, own);
  for (const uid of [901, 902])
    await rail.query(sql`
      insert into recruitment.mail_set_aside (organization_id, inbox_id, folder, uid_validity, uid, tries, next_try_at)
      values (${outreach.caller.organization_id}, ${outreach.inbox_id}, 'INBOX', 1000, ${uid}, ${uid === 901 ? 10 : 1}, now())`);
  await readAgain(outreach);
  t.equal(await messagesIn(outreach), 0);
});

t.test('reads an answer whose header has more than 4 MB', async (t) => {
  const own = await openImapServer();
  const outreach = await openReadOutreach(rail, own);
  const [long, next] = [await mail(rail, outreach), await mail(rail, outreach)];
  const filling = `x\r\n ${'filling '.repeat(8)}`.repeat(70_000);
  own.deliver(outreach.user, answerTo(long, 'What do you pay?', { 'X-Filling': filling }));
  own.deliver(outreach.user, answerTo(next, 'What do you pay?'));
  await cameIn(outreach, next.prospect_id, 2);
  t.match(await inbound(long.prospect_id), [{ purpose: 'reply', needs_review: true }]);
  t.same(await setAsideIn(outreach), []);
});

t.test(
  'each email that is returned for good bounces and ends its sequence; a dead address alone is barred',
  async (t) => {
    const outreach = await openReadOutreach(rail, server);
    const [hard, soft] = [await mail(rail, outreach), await mail(rail, outreach)];
    for (const { message_id, email } of [hard, soft]) await holdAddress(message_id, email);
    server.deliver(outreach.user, bounceOf(soft, '5.2.2', 'mailbox full'));
    server.deliver(outreach.user, bounceOf(hard, '5.1.1', 'user unknown'), 'Junk');
    server.deliver(outreach.user, bounceOf(hard, '5.1.1', 'user unknown'));
    const events = await cameIn(outreach, hard.prospect_id, 1);
    t.match(events, [
      { type: 'message.bounced', data: { message_id: hard.message_id, sequence_id: hard.sequence_id } },
    ]);
    // The one in Junk may be read first.
    await readUpTo(outreach, 2);
    t.match(await sequence(hard.sequence_id), { state: 'bounced' });
    t.match(await outreach.caller.get(`${v1}/prospects/${hard.prospect_id}`), { email_status: 'bounced' });
    t.match(await inbound(soft.prospect_id), [{ purpose: 'bounce' }]);
    t.match(await sequence(soft.sequence_id), { state: 'bounced' });
    t.match(await cameIn(outreach, soft.prospect_id, 1), [{ type: 'message.bounced' }]);
    t.match(await outreach.caller.get(`${v1}/prospects/${soft.prospect_id}`), { email_status: 'found' });
    t.match(await outreach.caller.get(`${v1}/messages/${soft.message_id}`), {
      state: 'bounced',
      bounce_reason: 'undelivered',
    });
    t.match(await outreach.caller.get(`${v1}/messages/${hard.message_id}`), {
      state: 'bounced',
      bounce_reason: 'dead',
    });
  },
);

t.test('says why an email bounced, and changes nothing while a server still tries', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const cases: [status: string, text: string, reason: string | null, action?: string][] = [
    ['5.0.0', 'retry timeout exceeded', 'undelivered'],
    ['4.4.7', 'message expired', 'undelivered'],
    ['5.2.1', 'The account is suspended', 'undelivered'],
    ['5.7.1', 'likely unsolicited mail, blocked', 'blocked'],
    ['5.7.26', 'unauthenticated, DMARC policy', 'blocked'],
    ['5.7.1', 'zxcv', 'blocked'],
    ['5.1.2', 'Host unknown', 'dead'],
    ['4.4.1', 'connection timed out', null, 'delayed'],
    ['2.1.5', 'delivered', null, 'delivered'],
    ['2.1.9', 'relayed', null, 'relayed'],
  ];
  const sent: Written[] = [];
  for (const [status, text, , action = 'failed'] of cases) {
    const to = await mail(rail, outreach);
    await holdAddress(to.message_id, to.email);
    server.deliver(outreach.user, bounceOf(to, status, text).replace('Action: failed', `Action: ${action}`));
    sent.push(to);
  }
  await readUpTo(outreach, cases.length);
  for (const [index, { message_id, prospect_id, sequence_id }] of sent.entries()) {
    const [status, text, reason] = cases[index] as (typeof cases)[number];
    const state = reason === null ? 'sent' : 'bounced';
    t.match(await outreach.caller.get(`${v1}/messages/${message_id}`), { state, bounce_reason: reason }, text);
    t.match(await sequence(sequence_id), { state: reason === null ? 'active' : 'bounced' }, text);
    const email_status = reason === 'dead' ? 'bounced' : 'found';
    t.match(await outreach.caller.get(`${v1}/prospects/${prospect_id}`), { email_status }, `${status} ${text}`);
    t.equal((await inbound(prospect_id)).length, 1, 'each report is kept');
  }
  const { caller, campaign_id, inbox_id } = outreach;
  t.match(await caller.get(`${v1}/campaigns/${campaign_id}/stats`), {
    steps: [{ sent: 10, bounced: 7, delivered: 3 }],
  });
  t.match(await caller.get(`${v1}/inboxes/${inbox_id}/health`), { bounce_bps_28d: 7_000, blocked_28d: 3 });
});

t.test('blocks pause a campaign as dead addresses do, full mailboxes and timeouts do not', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const sent: Written[] = [];
  for (let nth = 0; nth < 20; nth++) sent.push(await mail(rail, outreach));
  for (const to of sent.slice(0, 18)) server.deliver(outreach.user, bounceOf(to, '5.2.2', 'mailbox full'));
  await readUpTo(outreach, 18);
  const { caller, campaign_id } = outreach;
  t.match(await caller.get(`${v1}/campaigns/${campaign_id}`), { state: 'sending' });
  for (const to of sent.slice(18)) server.deliver(outreach.user, bounceOf(to, '5.7.1', 'message blocked as spam'));
  await readUpTo(outreach, 20);
  t.match(await caller.get(`${v1}/campaigns/${campaign_id}`), { state: 'paused', pause_reason: 'bounce_rate' });
  const paused = () => outreach.receiver.events().find(({ type }) => type === 'campaign.paused');
  await eventually(() => paused() !== undefined, 'campaign.paused');
  t.match(paused()?.data, { reason: 'bounce_rate', sent: 20, bounced: 2 });
});

t.test('a report is about the email whose Message-ID it names, wherever it stands', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const sent = [];
  for (let nth = 0; nth < 5; nth++) sent.push(await mail(rail, outreach));
  const [answered, worded, unbracketed, escaped, renamed] = sent as [Written, Written, Written, Written, Written];
  const from = 'postmaster@relay.example.net';
  const id = ({ message_id }: Written) => `${message_id}@acme.example.com`;
  const hidden = { from, returned: 'X-Any: 1' };
  const report = (to: Written, text: string, fields: Json = {}) =>
    server.deliver(outreach.user, bounceOf(to, '5.4.7', text, { ...hidden, ...fields }));
  report(answered, 'Given up.', { References: `<any@example.net> <${id(answered)}>` });
  report(worded, `Given up.\n\nOriginal message id (Message-ID): <${id(worded)}>`);
  report(unbracketed, `Given up on Message-Id=${id(unbracketed)}, for good.`);
  report(renamed, 'Given up.', { returned: `Message-ID: <1@relay.example.net>\r\nX-Rail-Message: ${id(renamed)}` });
  report(escaped, `Given up. X-Original-Message-ID: &lt;${id(escaped)}&gt;`);
  for (const { prospect_id, sequence_id } of sent) {
    t.match(await cameIn(outreach, prospect_id, 1), [{ type: 'message.bounced' }]);
    t.match(await sequence(sequence_id), { state: 'bounced' });
  }
});

t.test('two reports without a Message-ID that say the same are two bounces', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const sent = [await mail(rail, outreach), await mail(rail, outreach)];
  for (const { message_id, email } of sent) await holdAddress(message_id, email);
  for (const to of sent)
    server.deliver(outreach.user, bounceOf(to, '5.1.1', 'user unknown').replace(/^Message-ID: .*\r?\n/m, ''));
  for (const { prospect_id } of sent) t.match(await cameIn(outreach, prospect_id, 1), [{ type: 'message.bounced' }]);
});

type Ten = [Written, Written, Written, Written, Written, Written, Written, Written, Written, Written];

/** A report of RFC 5965, with a field of it, and one of the email that it returns. */
const complaintOf = (field: string, returned: string): string =>
  source(
    {
      From: 'feedback@provider.example.com',
      'Message-ID': newMessageId(),
      'Content-Type': `multipart/report; report-type=feedback-report; boundary="${boundary}"`,
    },
    [
      ...[`--${boundary}`, 'Content-Type: text/plain', '', 'This is an abuse report.'],
      ...[`--${boundary}`, 'Content-Type: message/feedback-report', '', 'Feedback-Type: abuse'],
      ...['User-Agent: Yahoo/1.0', field, ''],
      ...[`--${boundary}`, 'Content-Type: message/rfc822', '', returned, 'Subject: Hello', '', 'Hi', ''],
      `--${boundary}--`,
    ].join('\n'),
  );

t.test(
  "a report that does not name the email stops nobody, unless the inbox's server found that it comes from a server that sent or refused it",
  async (t) => {
    const outreach = await openReadOutreach(rail, server);
    const sent = [];
    for (let count = 0; count < 10; count++) sent.push(await mail(rail, outreach));
    for (const { message_id, email } of sent) await holdAddress(message_id, email);
    await rail.query(
      sql`update recruitment.message set sent_at = now() - interval '1 day' where inbox_id = ${outreach.inbox_id}`,
    );
    const [stranger, unsigned, failed, soft, other, not_ours, old, of_ours, of_theirs, planted] =
      sent as Written[] as Ten;
    await rail.query(
      sql`update recruitment.message set sent_at = now() - interval '8 days' where id = ${old.message_id}`,
    );
    const unknown = '5.1.1';
    const unnamed = (to: Written, from: string, fields: Json = {}) =>
      server.deliver(outreach.user, bounceOf(to, unknown, 'user unknown', { from, returned: 'X-Any: 1', ...fields }));
    const found = (results: string, by = 'mx.acme.example.com') => ({ 'Authentication-Results': `${by}; ${results}` });
    const pass = (domain: string) =>
      `spf=pass smtp.mailfrom=${domain}; dkim=pass header.d=${domain}; dmarc=pass header.from=${domain}`;
    const domainOf = ({ email }: Written) => email.split('@')[1] as string;
    const postmaster = (to: Written) => `postmaster@mx.${domainOf(to)}`;
    // Nothing says that the server of the inbox writes results: a sender may have planted them.
    unnamed(planted, postmaster(planted), found(pass(domainOf(planted))));
    await readUpTo(outreach, 1);
    const authserv_id = 'acme.example.com';
    await outreach.caller.patch(`${v1}/inboxes/${outreach.inbox_id}`, { authserv_id });
    unnamed(stranger, 'mailer-daemon@elsewhere.example.org', found(pass('elsewhere.example.org')));
    unnamed(unsigned, postmaster(unsigned));
    unnamed(failed, postmaster(failed), found('dmarc=fail'));
    unnamed(soft, postmaster(soft), found(`spf=softfail smtp.mailfrom=${domainOf(soft)}`));
    unnamed(other, postmaster(other), found(`${pass('attacker.example.net')}; dmarc=none`));
    unnamed(not_ours, postmaster(not_ours), found(pass(domainOf(not_ours)), 'mx.attacker.example.net'));
    unnamed(old, 'mailer-daemon@acme.example.com', found(pass('acme.example.com')));
    unnamed(of_ours, 'MAILER-DAEMON@acme.example.com', found(pass('acme.example.com')));
    unnamed(of_theirs, postmaster(of_theirs), found(pass(domainOf(of_theirs))));
    await readUpTo(outreach, 10);
    const unproven = [planted, stranger, unsigned, failed, soft, other, not_ours, old];
    for (const { prospect_id, sequence_id } of unproven) {
      t.match(await inbound(prospect_id), [{ purpose: 'bounce', needs_review: true }]);
      t.match(await sequence(sequence_id), { state: 'active' });
    }
    for (const { prospect_id, sequence_id } of [of_ours, of_theirs]) {
      t.match(await inbound(prospect_id), [{ purpose: 'bounce', needs_review: false }]);
      t.match(await sequence(sequence_id), { state: 'bounced' });
      t.match(await cameIn(outreach, prospect_id, 1), [{ type: 'message.bounced' }]);
    }
    for (const { prospect_id } of unproven) t.same(eventsOf(outreach, prospect_id), []);
  },
);

t.test('a feedback report that does not name the email is kept, and changes nothing', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const to = await mail(rail, outreach);
  server.deliver(outreach.user, complaintOf(`Original-Rcpt-To: ${to.email}`, 'X-Any: 1'));
  await eventually(async () => (await inbound(to.prospect_id)).length > 0, 'the report');
  t.match(await inbound(to.prospect_id), [{ purpose: 'complaint', needs_review: true }]);
  t.match(await sequence(to.sequence_id), { state: 'active' });
  const { caller, inbox_id, campaign_id } = outreach;
  t.match(await caller.get(`${v1}/prospects/${to.prospect_id}`), { do_not_contact: null });
  t.match(await caller.get(`${v1}/campaigns/${campaign_id}`), { state: 'sending' });
  t.match(await caller.get(`${v1}/inboxes/${inbox_id}/health`), { complaints_28d: 0 });
});

t.test('a feedback report marks the prospect, then pauses the campaign', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const to = await mail(rail, outreach);
  server.deliver(outreach.user, complaintOf('Version: 1', `Message-ID: <${to.message_id}@acme.example.com>`));
  const { receiver, campaign_id } = outreach;
  await eventually(() => receiver.events().some(({ type }) => type === 'campaign.paused'), 'campaign.paused');
  const told = receiver.events().filter(({ type }) => ['do_not_contact.added', 'campaign.paused'].includes(type));
  t.match(told, [
    { type: 'do_not_contact.added', data: { prospect_id: to.prospect_id, reason: 'complaint', by_user_id: null } },
    { type: 'campaign.paused', data: { campaign_id, reason: 'spam_complaint', fix: /\w/ } },
  ]);
});

t.test('an answer proves that an email was sent of which nobody could tell', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const to = await mail(rail, outreach);
  await rail.query(sql`update recruitment.message set state = 'unknown', sent_at = null where id = ${to.message_id}`);
  server.deliver(outreach.user, answerTo(to, 'Yes, please send me the details.'));
  const events = await cameIn(outreach, to.prospect_id, 3);
  t.same(
    events.map(({ type }) => type),
    ['message.sent', 'reply.received', 'affiliate.stage_changed'],
  );
});

t.test('knows an answer by its sender where it names no email, but not what came before', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const to = await mail(rail, outreach);
  const loose = { 'In-Reply-To': undefined, Subject: 'Your offer' };
  server.deliver(
    outreach.user,
    answerTo(to, 'Yes, please send me the details.', loose),
    'INBOX',
    new Date('2026-11-19T09:00:00Z'),
  );
  server.deliver(outreach.user, answerTo(to, 'What do you pay?', loose));
  await cameIn(outreach, to.prospect_id, 2);
  t.match(await inbound(to.prospect_id), [{ body_text: 'What do you pay?' }]);
});

t.test('when one of a company answers, its others stop', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const [one, other] = [await mail(rail, outreach), await mail(rail, outreach)];
  await rail.query(sql`
    update recruitment.sequence s set company_hmac = (select o.company_hmac from recruitment.sequence o where o.id = ${one.sequence_id}) where s.id = ${other.sequence_id}`);
  const stranger = await mail(rail, outreach);
  server.deliver(outreach.user, answerTo(one, 'We are not interested, thank you.'));
  await cameIn(outreach, one.prospect_id, 2);
  t.match(await sequence(one.sequence_id), { state: 'replied' });
  t.match(await sequence(other.sequence_id), { state: 'stopped' });
  t.match(await sequence(stranger.sequence_id), { state: 'active' });
});

t.test('tells a late reply, and out of lost moves whoever wants to go on', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const to = await mail(rail, outreach);
  await rail.query(
    sql`update recruitment.sequence set state = 'completed', ended_at = now() where id = ${to.sequence_id}`,
  );
  await rail.query(sql`update recruitment.prospect set stage = 'lost' where id = ${to.prospect_id}`);
  server.deliver(outreach.user, answerTo(to, 'Yes, please send me the details.'));
  t.match(await cameIn(outreach, to.prospect_id, 2), [
    { type: 'reply.received' },
    { data: { from: 'lost', to: 'interested' } },
  ]);
  t.match(await sequence(to.sequence_id), { state: 'completed' });
});

t.test('a reply to an answer of a person is one to the campaign of the thread', async (t) => {
  const outreach = await openReadOutreach(rail, server);
  const { caller, campaign_id } = outreach;
  const to = await mail(rail, outreach);
  const answer = await caller.post(`${v1}/prospects/${to.prospect_id}/reply`, { text: 'We pay 20 %.' });
  outreach.server.deliver(outreach.user, answerTo({ ...to, message_id: answer.id }, 'Great, sign me up.'));
  await cameIn(outreach, to.prospect_id, 2);
  const told = outreach.receiver.events().find(({ type }) => type === 'reply.received');
  t.match(told?.data, { campaign_id, sequence_id: to.sequence_id, prospect_id: to.prospect_id });
});

t.test('loses nothing and tells nothing twice over lost connections, new numbers and copies', async (t) => {
  const own = await openImapServer();
  const outreach = await openReadOutreach(rail, own);
  const sent = [];
  for (let count = 0; count < 4; count++) sent.push(await mail(rail, outreach));
  const [first, second, third, fourth] = sent as [
    Mailed & { email: string },
    Mailed & { email: string },
    Mailed & { email: string },
    Mailed & { email: string },
  ];
  own.faults.drops_fetches = 1;
  own.deliver(outreach.user, answerTo(first, 'Yes, please send me the details.'));
  own.deliver(outreach.user, answerTo(second, 'What do you pay?', { 'Message-ID': undefined }));
  await cameIn(outreach, second.prospect_id, 2);
  own.renumber(outreach.user, 'INBOX', 7);
  own.drop();
  own.deliver(outreach.user, answerTo(third, 'We are not interested, thank you.'));
  await cameIn(outreach, third.prospect_id, 2);
  const copy = own.folder(outreach.user).mails.at(-1)?.source as Buffer;
  own.deliver(outreach.user, copy, 'Junk');
  own.deliver(outreach.user, copy);
  own.deliver(outreach.user, answerTo(fourth, 'Yes, please send me the details.'));
  await cameIn(outreach, fourth.prospect_id, 2);
  for (const { prospect_id } of sent) {
    t.same(
      eventsOf(outreach, prospect_id).map(({ type }) => type),
      ['reply.received', 'affiliate.stage_changed'],
    );
    t.equal((await inbound(prospect_id)).length, 1);
  }
});

t.test('reads on behind a mail of 50 MB, whose own text it keeps', async (t) => {
  const own = await openImapServer();
  own.faults.ignores_partial = true;
  const outreach = await openReadOutreach(rail, own);
  const [big, small] = [await mail(rail, outreach), await mail(rail, outreach)];
  const parts = `--${boundary}\r\nContent-Type: text/plain\r\n\r\nYes, please send me the details.\r\n--${boundary}\r\nContent-Type: application/zip\r\nContent-Transfer-Encoding: base64\r\n\r\n`;
  const head = answerTo(big, '', { 'Content-Type': `multipart/mixed; boundary="${boundary}"` });
  const line = `${'A'.repeat(76)}\r\n`;
  own.deliver(
    outreach.user,
    Buffer.concat([
      Buffer.from(head + parts),
      Buffer.from(line.repeat(Math.ceil((50 << 20) / line.length))),
      Buffer.from(`--${boundary}--\r\n`),
    ]),
  );
  own.deliver(outreach.user, answerTo(small, 'What do you pay?'));
  await cameIn(outreach, small.prospect_id, 2);
  t.match(await inbound(big.prospect_id), [{ purpose: 'reply', body_text: 'Yes, please send me the details.' }]);
});

t.test('reads each mail alone that a server gives empty among others', async (t) => {
  const own = await openImapServer();
  const outreach = await openReadOutreach(rail, own);
  own.faults.empties_others = true;
  const sent = [await mail(rail, outreach), await mail(rail, outreach), await mail(rail, outreach)];
  own.drop();
  for (const each of sent) own.deliver(outreach.user, answerTo(each, 'Yes, please send me the details.'));
  for (const { prospect_id } of sent) {
    await cameIn(outreach, prospect_id, 2);
    t.match(await inbound(prospect_id), [{ purpose: 'reply', reply_kind: 'positive' }]);
  }
  t.same(await setAsideIn(outreach), []);
});

t.test('three refused logins disconnect the inbox, and so do 15 minutes without any', async (t) => {
  const own = await openImapServer();
  const [refused, away] = [await openReadOutreach(rail, own), await openReadOutreach(rail, await openImapServer())];
  own.faults.refuses_logins = true;
  own.drop();
  away.server.faults.refuses_connections = true;
  away.server.drop();
  await untilDisconnected(refused);
  t.equal(own.refused, 3);
  await eventually(async () => {
    await rail.query(
      sql`update recruitment.inbox_reader set unreachable_since = now() - interval '16 minutes' where inbox_id = ${away.inbox_id} and unreachable_since is not null`,
    );
    return isDisconnected(away);
  }, 'the inbox to be disconnected');
  const reasons = () =>
    [refused, away].flatMap(({ receiver }) =>
      receiver
        .events()
        .filter(({ type }) => type === 'inbox.disconnected')
        .map(({ data }) => data.reason),
    );
  await eventually(() => reasons().length === 2, 'both to be told');
  t.same(reasons(), ['auth_failed', 'connection_failed']);
});

t.test('reads at once what came while a login was revoked, when the inbox is reconnected', async (t) => {
  const own = await openImapServer();
  const outreach = await openReadOutreach(rail, own);
  const [before, meanwhile] = [await mail(rail, outreach), await mail(rail, outreach)];
  own.deliver(outreach.user, answerTo(before, 'Yes, please send me the details.'));
  await cameIn(outreach, before.prospect_id, 2);
  own.faults.refuses_logins = true;
  own.drop();
  own.deliver(outreach.user, answerTo(meanwhile, 'What do you pay?'));
  await untilDisconnected(outreach);
  own.faults.refuses_logins = false;
  await rail.query(
    sql`update recruitment.inbox_reader set next_try_at = now() + interval '1 hour', failed = 9 where inbox_id = ${outreach.inbox_id}`,
  );
  await within(rail, outreach, (tx) => reconnectInbox(tx, { id: outreach.inbox_id }));
  await cameIn(outreach, meanwhile.prospect_id, 2);
  const told = () =>
    outreach.receiver
      .events()
      .map(({ type, data }) => [type, data.reason])
      .filter(([type]) => /^inbox|reply.received|campaign.(?:paused|resumed)/.test(type));
  t.same(told(), [
    ['reply.received', undefined],
    ['inbox.disconnected', 'auth_failed'],
    ['campaign.paused', 'no_inbox'],
    ['inbox.connected', undefined],
    ['campaign.resumed', undefined],
    ['reply.received', undefined],
  ]);
});

t.test('reads another mailbox from its beginning', async (t) => {
  const own = await openImapServer();
  const { smtp } = await startMailbox();
  const outreach = await openReadOutreach(rail, own);
  for (let nth = 0; nth < 3; nth++) own.deliver(outreach.user, source({ From: 'bob@elsewhere.example.com' }, 'Hello'));
  await readUpTo(outreach, 3);
  const to = await mail(rail, outreach);
  const username = `${outreach.user}-moved`;
  own.deliver(username, answerTo(to, 'What do you pay?'));
  const imap = { host: 'localhost', port: own.port, security: 'tls', username, password };
  await outreach.caller.patch(`${v1}/inboxes/${outreach.inbox_id}`, { smtp, imap });
  await cameIn(outreach, to.prospect_id, 2);
  t.match(await inbound(to.prospect_id), [{ purpose: 'reply' }]);
});

t.test('waits for a server that is slow to answer, while other inboxes are read', async (t) => {
  const own = await openImapServer();
  const [slow, other] = [await openReadOutreach(rail, own), await openReadOutreach(rail, server)];
  await eventually(() => own.idling() === 1, 'the inbox to be watched');
  const late = await mail(rail, slow);
  let answers = () => {};
  own.faults.holds_answers = new Promise((resolve) => {
    answers = resolve;
  });
  own.deliver(slow.user, answerTo(late, 'What do you pay?'));
  const prompt = await answered(rail, other, 'What do you pay?');
  await cameIn(other, prompt.prospect_id, 2);
  t.same(await inbound(late.prospect_id), []);
  answers();
  await cameIn(slow, late.prospect_id, 2);
  t.equal(own.logins.length, 1, 'over the same connection');
});

t.test('asks a server without IDLE, and leaves one that is silent for too long', async (t) => {
  const unread = await startRail({ worker: false });
  const own = await openImapServer();
  own.faults.lacks_idle = true;
  const outreach = await openUnread(unread, own);
  const [asked, late] = [await mail(unread, outreach), await mail(unread, outreach)];
  const { inbox_id } = outreach;
  const { organization_id } = outreach.caller;
  const stop = new AbortController();
  const begin = async (silence_ms: number) => {
    await unread.query(sql`
      insert into recruitment.inbox_reader (organization_id, inbox_id, worker_id) values (${organization_id}, ${inbox_id}, 'wrk_test')
      on conflict (organization_id, inbox_id) do update set worker_id = excluded.worker_id`);
    const { signal } = stop;
    const context = { ...unread, log, worker_id: 'wrk_test', stopping: signal, cut_off: signal };
    const limited = limitConcurrency(1);
    const sharing = {
      limitConnecting: limited,
      limitReading: limited,
      classifier: openClassifier(),
      opened: () => {},
      seen: () => {},
    };
    const pace = { poll_ms: 20, other_folders_ms: 20, silence_ms };
    return { ended: readInbox({ organization_id, inbox_id }, context, sharing, signal, pace) };
  };
  const isKept = ({ prospect_id }: Mailed) =>
    eventually(
      async () =>
        (
          await unread.query(
            sql`select from recruitment.message t where t.prospect_id = ${prospect_id} and t.direction = 'inbound'`,
          )
        ).length === 1,
      'the reply',
    );

  const polling = await begin(60_000);
  await eventually(() => own.logins.length === 1, 'a login');
  own.deliver(outreach.user, answerTo(asked, 'What do you pay?'));
  await isKept(asked);
  own.drop();
  await polling.ended;

  own.faults.holds_answers = new Promise(() => {});
  own.deliver(outreach.user, answerTo(late, 'What do you pay?'));
  await (await begin(1_500)).ended;
  const [reader] = await unread.query<Json>(
    sql`select r.worker_id, r.failed from recruitment.inbox_reader r where r.inbox_id = ${inbox_id}`,
  );
  t.match(reader, { worker_id: null, failed: 2 });
  own.faults.holds_answers = undefined;
  const again = await begin(60_000);
  await isKept(late);
  stop.abort();
  await again.ended;
});

// Alone: it counts the inboxes of every case.
t.test('each worker reads its share, and one takes over what another leaves', { buffered: false }, async (t) => {
  const own = await openImapServer();
  const all = [await openReadOutreach(rail, own), await openReadOutreach(rail, own), await openReadOutreach(rail, own)];
  const other = startWorker({ url: rail.url, store: rail.store, services: rail.services, concurrency: 2, log });
  await other.ready;
  const readers = async () =>
    (
      await rail.query<{ count: number }>(sql`
      select count(*)::int as count from recruitment.inbox_reader r join recruitment.inbox i on i.id = r.inbox_id
      where i.status = 'connected' and r.worker_id is not null group by r.worker_id order by 1`)
    ).map(({ count }) => count);
  await eventually(async () => {
    const counts = await readers();
    return counts.length === 2 && (counts[1] as number) - (counts[0] as number) <= 1;
  }, 'two workers that read as much');
  await other.stop();
  const sent = await Promise.all(all.map((outreach) => answered(rail, outreach, 'Yes, please send me the details.')));
  for (const [index, outreach] of all.entries()) {
    const { prospect_id } = sent[index] as Mailed;
    t.same(
      (await cameIn(outreach, prospect_id, 2)).map(({ type }) => type),
      ['reply.received', 'affiliate.stage_changed'],
    );
  }
  await eventually(async () => (await readers()).length === 1, 'one worker that reads all');
});
