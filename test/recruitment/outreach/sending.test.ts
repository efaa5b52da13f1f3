/** Outreach email over real SMTP: sent once, or known not to be. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import tls from 'node:tls';
import type { SMTPServerOptions } from 'smtp-server';
import t from 'tap';
import { run } from '../../../src/core/postgres/database.ts';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { connectTo, handOver } from '../../../src/recruitment/sending/hand_over.ts';
import { sendMessage } from '../../../src/recruitment/sending/send_message.ts';
import { wakeInbox } from '../../../src/recruitment/sequences/wake_inbox.ts';
import {
  awayFromMidnight,
  type Caller,
  eventually,
  type Json,
  log,
  sql,
  startRail,
  startReceiver,
} from '../../harness.ts';
import { all_but_scans } from '../event_types.ts';
import { identity, startMailbox } from '../mailbox.ts';
import { type Asked, openSender, type Sender, step, wake } from './outreach.ts';
import { startSentFolder } from './sent_folder.ts';
import { refusal, type Script, startSink } from './sink.ts';

const rail = await startRail();
const sink = await startSink();
/** The connections to the server, by their session. */
const { sessions } = sink;
const mailbox = await startMailbox({ ...sink.handlers, secure: true });

interface Opened extends Sender {
  caller: Caller;
  told(count: number): Promise<[string, Json][]>;
}

async function open(asked: Partial<Asked> = {}): Promise<Opened> {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  await caller.post('/recruitment/v1/webhook_endpoints', { url: receiver.url, event_types: all_but_scans });
  const sender = await openSender(rail, caller.organization_id, { mailbox, ...asked });
  return {
    ...sender,
    caller,
    async told(count) {
      await eventually(() => receiver.events().length >= count, `${count} events`);
      return receiver.events().map(({ type, data }) => [type, data]);
    },
  };
}

const messagesOf = ({ organization_id }: Sender): Promise<Json[]> =>
  rail.query(sql`select t.* from recruitment.message t where t.organization_id = ${organization_id} order by t.id`);
const outcomesOf = (opened: Sender, count: number): Promise<void> =>
  eventually(async () => {
    const messages = await messagesOf(opened);
    return messages.length === count && messages.every(({ state }) => state !== 'sending');
  }, 'all outcomes');
const inboxOf = async ({ organization_id }: Sender): Promise<Json> =>
  (
    await rail.query<Json>(
      sql`select t.* from recruitment.inbox t where t.organization_id = ${organization_id} order by t.id`,
    )
  )[0] as Json;
const sequencesOf = ({ organization_id }: Sender): Promise<Json[]> =>
  rail.query(sql`select t.* from recruitment.sequence t where t.organization_id = ${organization_id} order by t.id`);
/** Jobs that wait for the inbox's next slot, or for a worker. */
const jobsOf = async ({ inbox_ids }: Sender, key: 'outreach' | 'outreach_now'): Promise<number> =>
  (await rail.query(sql`select from graphile_worker.jobs j where j.key = ${`${key}:${inbox_ids[0]}`}`)).length;
/** Has an invitation sent to the first prospect. */
async function inviteFirst({ organization_id, brand_id, inbox_ids, prospect_ids, caller }: Opened): Promise<Json> {
  const [address] = (await caller.get(`/recruitment/v1/prospects/${prospect_ids[0]}/emails`)).data;
  return transaction(rail.store, { organization_id, request_id: null }, (tx) =>
    sendMessage(tx, rail.services.vault, {
      ...{ purpose: 'invitation', brand_id, inbox_id: inbox_ids[0] as string, prospect_id: prospect_ids[0] as string },
      ...{ email_address_id: address.id, thread_id: null, subject: 'Join us', body_text: 'Join us.', body_html: null },
    }),
  );
}

t.test('sends the first email, tells it, and moves the prospect', async (t) => {
  const to = 'ada@first.example.com';
  const opened = await open({ address: () => to, steps: [step(), step({ delay_days: 3 })] });
  await wake(rail);
  const told = await opened.told(2);
  const [message] = await messagesOf(opened);
  const [sequence] = await sequencesOf(opened);
  t.same(
    told.map(([type]) => type),
    ['message.sent', 'affiliate.stage_changed'],
  );
  t.match(told[0]?.[1], {
    ...{
      brand_id: opened.brand_id,
      campaign_id: opened.campaign_id,
      prospect_id: opened.prospect_ids[0],
      step_index: 0,
    },
    ...{ sequence_id: opened.sequence_ids[0], inbox_id: opened.inbox_ids[0], message_id: message?.id },
  });
  t.match(told[1]?.[1], { from: 'found', to: 'contacted', by_user_id: null, reason: 'message_sent' });
  t.match(message, {
    state: 'sent',
    phase: null,
    attempts: 1,
    subject: 'Hello Blog 0',
    thread_id: sequence?.thread_id,
  });
  t.match(sequence, { state: 'active', next_step: 1 });
  t.equal(sink.acceptedBy(to).length, 1);
  t.match(sink.acceptedBy(to)[0]?.text, new RegExp(`Message-ID: <${message?.id}@acme.example.com>`, 'i'));
  t.match(await opened.caller.get(`/recruitment/v1/prospects/${opened.prospect_ids[0]}?include[]=stats`), {
    stage: 'contacted',
    stats: { sent: 1 },
  });
});

t.test(
  'sends an invitation before everything else, whatever the caps, and refuses one to a suppressed prospect',
  async (t) => {
    await awayFromMidnight();
    const to = 'ada@invited.example.com';
    const opened = await open({ address: () => to, inbox: { daily_limit: 1, min_gap_s: 3_600, max_gap_s: 3_600 } });
    const { organization_id, caller } = opened;
    await wake(rail);
    await opened.told(2);
    const invite = () => inviteFirst(opened);
    const { id } = await invite();
    await eventually(
      async () => (await messagesOf(opened)).find((one) => one.id === id)?.state === 'sent',
      'the invitation',
    );
    const text = sink.acceptedBy(to)[1]?.text;
    t.match(text, /^Subject: Join us\r$/m);
    t.match(text, /^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m);
    const [day] = await rail.query(
      sql`select sent from recruitment.inbox_day where organization_id = ${organization_id}`,
    );
    t.same(day, { sent: 2 });
    await caller.post('/recruitment/v1/do_not_contact', { kind: 'address', email: to, reason: 'manual' });
    await t.rejects(invite(), { code: 'suppressed' });
  },
);

t.test('sends what comes while an inbox that has sent writes down when it is to send again', async () => {
  const opened = await open({ inbox: { min_gap_s: 3_600, max_gap_s: 3_600 } });
  const { organization_id, inbox_ids } = opened;
  const [inbox_id = ''] = inbox_ids;
  const client = await rail.store.database.connect();
  await client.query('begin');
  const job = JSON.stringify({ organization_id, inbox_id });
  await run(
    client,
    sql`select graphile_worker.add_job('recruitment/send_from_inbox', ${job}::json, job_key => ${`outreach:${inbox_id}`}) is null as lost`,
  );
  await transaction(rail.store, { organization_id, request_id: null }, async (tx) => wakeInbox(tx, inbox_id));
  await eventually(async () => (await rail.waiting()) > 0, 'the inbox to write when it is to send again');
  const { id } = await inviteFirst(opened);
  await eventually(async () => (await jobsOf(opened, 'outreach_now')) === 0, 'the job of the invitation');
  await client.query('rollback');
  client.release();
  const isSent = async () => (await messagesOf(opened)).find((one) => one.id === id)?.state === 'sent';
  await eventually(isSent, 'the invitation');
});

t.test('looks for an email whose connection was lost after the final dot, and makes copies', async (t) => {
  const folder = await startSentFolder();
  const [found, missing, plain] = ['found', 'missing', 'plain'].map((name) => `ada@${name}-blog.com`) as [
    string,
    string,
    string,
  ];
  const drop = ({ id }: { id: string }): void => void sessions.get(id)?.destroy();
  sink.script.set(found, {
    accepted(session) {
      folder.put(sink.acceptedBy(found)[0]?.text ?? '');
      drop(session);
    },
  });
  sink.script.set(missing, {
    end(session) {
      drop(session);
      throw new Error('It was not accepted.');
    },
  });
  const opened = await open({
    ...{
      mailbox: { smtp: mailbox.smtp, imap: folder.imap },
      prospects: 3,
      inboxes: 3,
      address: (nth) => [found, missing, plain][nth] as string,
    },
    steps: [step(), step({ delay_days: 3 })],
  });
  await wake(rail);
  await outcomesOf(opened, 3);
  const messages = new Map((await messagesOf(opened)).map((one) => [one.sequence_id, one]));
  t.same(
    opened.sequence_ids.map((id) => messages.get(id)?.state),
    ['sent', 'unknown', 'sent'],
  );
  t.same(
    (await sequencesOf(opened)).map(({ next_step }) => next_step),
    [1, 1, 1],
    'unknown counts as sent',
  );
  t.equal((await opened.told(4)).filter(([type]) => type === 'message.sent').length, 2);
  await rail.query(sql`
    update recruitment.message set sent_at = sent_at - interval '1 minute', look_up_at = look_up_at - interval '5 minutes'
    where organization_id = ${opened.organization_id}`);
  folder.put(
    `Message-ID: <bounce@example.com>\r\n\r\n<${messages.get(opened.sequence_ids[1] as string)?.rfc_message_id}> failed`,
    'INBOX',
  );
  await wake(rail);
  const unproved = messages.get(opened.sequence_ids[1] as string)?.id;
  const isTended = ({ id, state, copied_at }: Json) => state === 'sent' && (copied_at !== null || id === unproved);
  await eventually(async () => (await messagesOf(opened)).every(isTended), 'copies and proof');
  t.match(
    (await messagesOf(opened)).map(({ state }) => state),
    ['sent', 'sent', 'sent'],
    'a bounce is proof',
  );
  t.equal(
    folder.copies().filter((text) => text.includes(messages.get(opened.sequence_ids[2] as string)?.id)).length,
    1,
  );
  t.equal(
    folder.copies().filter((text) => text.includes(messages.get(opened.sequence_ids[0] as string)?.id)).length,
    1,
  );
  t.equal(sink.acceptedBy(missing).length, 0);
});

t.test('an email amid which its worker died has an outcome, although its inbox is deleted', async (t) => {
  const opened = await open({ steps: [step(), step({ delay_days: 3 })] });
  await wake(rail);
  await outcomesOf(opened, 1);
  await opened.caller.delete(`/recruitment/v1/inboxes/${opened.inbox_ids[0]}`);
  for (const [phase, state] of Object.entries({ claimed: 'cancelled', data: 'unknown' })) {
    await rail.query(sql`
      update recruitment.message set state = 'sending', phase = ${phase}, claimed_by = 'gone'
      where organization_id = ${opened.organization_id}`);
    await wake(rail);
    await outcomesOf(opened, 1);
    t.match(await messagesOf(opened), [{ state, phase: null, claimed_by: null }], phase);
  }
});

t.test('what servers answer', async (t) => {
  const cases: Record<string, { script: Script; message: Json; sequence: Json }> = {
    greylisted: {
      script: {
        rcpt: () => {
          throw refusal(451, '4.7.1 Greylisted, come back later');
        },
      },
      message: { state: 'planned', attempts: 1, server_answer: /4\.7\.1/ },
      sequence: { state: 'waiting', next_step: 0 },
    },
    full: {
      script: {
        rcpt: () => {
          throw refusal(552, '5.2.2 Mailbox full');
        },
      },
      message: { state: 'failed', failed_reason: 'recipient_refused', bounced_at: null },
      sequence: { state: 'failed', failed_reason: 'recipient_refused' },
    },
    nobody: {
      script: {
        rcpt: () => {
          throw refusal(550, '5.1.1 User unknown');
        },
      },
      message: { state: 'failed', failed_reason: 'recipient_refused', bounced_at: /^20/, bounce_reason: 'dead' },
      sequence: { state: 'bounced' },
    },
    quota: {
      script: {
        end: () => {
          throw refusal(550, '5.4.5 Daily user sending limit exceeded');
        },
      },
      message: { state: 'planned', attempts: 1 },
      sequence: { state: 'waiting', next_step: 0 },
    },
    spam: {
      script: {
        end: () => {
          throw refusal(554, '5.7.1 Message rejected as spam');
        },
      },
      message: { state: 'failed', failed_reason: 'content_refused', bounced_at: /^20/, bounce_reason: 'blocked' },
      sequence: { state: 'failed', failed_reason: 'content_refused' },
    },
    dropped: {
      script: {
        rcpt: () => {},
        begun: (session) => {
          sessions.get(session.id)?.destroy();
        },
      },
      message: { state: 'planned', attempts: 1 },
      sequence: { state: 'waiting', next_step: 0 },
    },
  };
  const names = Object.keys(cases);
  const address = (nth: number) => `ada@${names[nth]}-blog.com`;
  for (const [nth, name] of names.entries()) sink.script.set(address(nth), (cases[name] as { script: Script }).script);
  const opened = await open({
    prospects: names.length,
    inboxes: names.length,
    address,
    steps: [step(), step({ delay_days: 3 })],
  });
  await wake(rail);
  await outcomesOf(opened, names.length);
  const messages = new Map((await messagesOf(opened)).map((one) => [one.sequence_id, one]));
  const sequences = new Map((await sequencesOf(opened)).map((one) => [one.id, one]));
  for (const [nth, name] of names.entries()) {
    const sequence_id = opened.sequence_ids[nth] as string;
    const { message, sequence } = cases[name] as { message: Json; sequence: Json };
    t.match(messages.get(sequence_id), message, name);
    t.match(sequences.get(sequence_id), sequence, name);
  }
  const inboxes = await rail.query<Json>(sql`
    select i.id, i.wait_s, i.waits_until > now() + interval '59 minutes' as waits, i.unreachable_since is not null as lost from recruitment.inbox i
    where i.organization_id = ${opened.organization_id} order by i.id`);
  t.match(inboxes[names.indexOf('quota')], { wait_s: 3_600, waits: true });
  t.match(inboxes[names.indexOf('dropped')], { lost: true });
  const counted = await rail.query<Json>(
    sql`select sum(sent)::integer as sent from recruitment.inbox_day where organization_id = ${opened.organization_id}`,
  );
  t.same(counted, [{ sent: 0 }], 'nothing that was not accepted is counted');

  // Greylisting ends, the quota too.
  for (const name of ['greylisted', 'quota', 'dropped']) sink.script.delete(`ada@${name}-blog.com`);
  await rail.query(
    sql`update recruitment.sequence set due_at = now() where organization_id = ${opened.organization_id} and open`,
  );
  await rail.query(
    sql`update recruitment.inbox set waits_until = null, next_slot_at = null where organization_id = ${opened.organization_id}`,
  );
  await wake(rail);
  await eventually(
    async () => (await messagesOf(opened)).filter(({ state }) => state === 'sent').length === 3,
    'the rest',
  );
  for (const name of ['greylisted', 'quota', 'dropped']) {
    const before = messages.get(opened.sequence_ids[names.indexOf(name)] as string);
    const [accepted, ...more] = sink.acceptedBy(`ada@${name}-blog.com`);
    t.equal(more.length, 0);
    t.equal(accepted?.message_id, before?.rfc_message_id, 'the same row, the same Message-ID');
  }
});

t.test('what a server refuses as a block counts for the guard, and bars nobody', async (t) => {
  type At = keyof Pick<Script, 'rcpt' | 'end'>;
  const refusals: [at: At, code: number, text: string, is: string][] = [
    ['rcpt', 550, '5.7.1 Message blocked: the sender is on a blocklist', 'content_refused blocked'],
    ['rcpt', 550, 'Rejected: local policy does not accept mail from you', 'content_refused blocked'],
    ['rcpt', 554, '5.7.1 Service unavailable; client host blocked using zen.example.org', 'content_refused blocked'],
    ['rcpt', 550, '5.1.1 Blocked: poor reputation of the sending IP', 'content_refused blocked'],
    ['end', 550, '5.7.26 This mail is unauthenticated', 'content_refused blocked'],
    ['end', 554, 'Transaction failed: spam', 'content_refused blocked'],
    ['end', 554, 'Message rejected', 'content_refused blocked'],
    ['end', 571, 'No', 'content_refused blocked'],
    ['rcpt', 552, '5.2.2 Mailbox full', 'recipient_refused null'],
    ['end', 552, '5.3.4 Message too large', 'too_large null'],
    ['end', 554, '5.3.0 Internal server error', 'content_refused null'],
    ['rcpt', 550, '5.1.1 <ada@blog.com>: no such user', 'recipient_refused dead'],
    ['rcpt', 550, 'User unknown', 'recipient_refused dead'],
  ];
  /** So many are accepted before: the last refusal that counts is the one that passes the limit. */
  const accepted = 11;
  const address = (nth: number) => `ada@refused${nth - accepted}.com`;
  for (const [nth, [at, code, text]] of refusals.entries())
    sink.script.set(address(nth + accepted), {
      [at]: () => {
        throw refusal(code, text);
      },
    });
  const prospects = accepted + refusals.length;
  const opened = await open({ prospects, address, campaign: { bounce_pause_bps: 4_600 } });
  await wake(rail);
  await eventually(
    async () => (await opened.caller.get(`/recruitment/v1/campaigns/${opened.campaign_id}`)).state === 'paused',
    'the pause',
  );
  t.match(await opened.caller.get(`/recruitment/v1/campaigns/${opened.campaign_id}`), {
    pause_causes: ['guard'],
  });
  const messages = new Map((await messagesOf(opened)).map((one) => [one.sequence_id, one]));
  for (const [nth, [at, code, text, is]] of refusals.entries()) {
    const { state, failed_reason, bounce_reason, bounced_at } = messages.get(
      opened.sequence_ids[nth + accepted],
    ) as Json;
    t.same([state, `${failed_reason} ${bounce_reason}`], ['failed', is], `${at} ${code} ${text}`);
    t.equal(bounced_at !== null, bounce_reason !== null);
  }
  const barred = sql`select from recruitment.suppression s where s.organization_id = ${opened.organization_id}`;
  t.equal((await rail.query(barred)).length, 2, 'the dead addresses alone');
  t.match(await opened.caller.get(`/recruitment/v1/inboxes/${opened.inbox_ids[0]}/health`), { blocked_28d: 8 });
});

t.test('a refusal of the moment is tried again, and says nothing of the login or the recipient', async (t) => {
  const later: [at: 'rcpt' | 'end', code: number, text: string][] = [
    ['rcpt', 421, '4.7.0 Try again later, closing connection'],
    ['rcpt', 450, '4.2.1 The user is receiving mail too quickly'],
    ['rcpt', 451, '4.7.1 Greylisting in action, please come back later'],
    ['rcpt', 452, '4.5.3 Too many recipients'],
    ['rcpt', 454, '4.7.0 TLS is not available'],
    ['rcpt', 450, 'User unknown, for now'],
    ['end', 421, '4.3.2 System going down'],
    ['end', 451, '4.7.650 The mail server has been temporarily rate limited due to IP reputation'],
    ['end', 452, '4.3.1 Insufficient system storage'],
  ];
  const address = (nth: number) => `ada@later${nth}.com`;
  for (const [nth, [at, code, text]] of later.entries())
    sink.script.set(address(nth), {
      [at]: () => {
        throw refusal(code, text);
      },
    });
  const opened = await open({ prospects: later.length + 1, address });
  await wake(rail);
  await outcomesOf(opened, later.length + 1);
  const messages = new Map((await messagesOf(opened)).map((one) => [one.sequence_id, one]));
  for (const [nth, [at, code, text]] of later.entries())
    t.match(
      messages.get(opened.sequence_ids[nth] as string),
      { state: 'planned', attempts: 1, failed_reason: null, bounced_at: null, server_answer: `${code} ${text}` },
      `${at} ${code}`,
    );
  t.equal(sink.acceptedBy(address(later.length)).length, 1, 'the next one goes, over another connection if need be');
  const healthy = { status: 'connected', auth_failures: 0, wait_s: null, unreachable_since: null };
  t.match(await inboxOf(opened), healthy);

  const asDo =
    <Arguments extends unknown[]>(code: number, text: string) =>
    (...args: [...Arguments, (error: Error) => void]) =>
      (args.at(-1) as (error: Error) => void)(refusal(code, text));
  const provided: [name: string, options: SMTPServerOptions, attempts: Json][] = [
    ['421 as greeting', { onConnect: asDo(421, '4.3.2 Too many connections') }, { unreachable_since: /^20/ }],
    ['454 to AUTH', { onAuth: asDo(454, '4.7.0 Temporary authentication failure') }, { unreachable_since: /^20/ }],
    ['421 to AUTH', { onAuth: asDo(421, '4.7.0 Too many logins') }, { unreachable_since: /^20/ }],
    [
      '535 to AUTH that is temporary',
      { onAuth: asDo(535, '5.7.0 Temporary server error. Try again later') },
      { unreachable_since: /^20/ },
    ],
    ['451 to MAIL', { onMailFrom: asDo(451, '4.7.1 Try again later') }, { unreachable_since: null }],
    ['454 to MAIL', { onMailFrom: asDo(454, '4.7.0 TLS required for now') }, { unreachable_since: null }],
    ['421 to MAIL', { onMailFrom: asDo(421, '4.7.28 Rate limited') }, { unreachable_since: null }],
  ];
  const no_tls = createServer((socket) => {
    socket.on('error', () => {}).write('220 ready\r\n');
    socket.on('data', (line) =>
      socket.write(`${line}`.startsWith('EHLO') ? '250-hello\r\n250 STARTTLS\r\n' : '454 4.7.0 TLS not available\r\n'),
    );
  }).listen(0, '127.0.0.1');
  t.teardown(() => no_tls.close());
  await once(no_tls, 'listening');
  const { port } = no_tls.address() as AddressInfo;
  provided.push(['454 to STARTTLS', {}, { unreachable_since: /^20/ }]);
  for (const [name, options, expected] of provided) {
    const provider = await startMailbox({ ...sink.handlers, ...options });
    const smtp = name.endsWith('STARTTLS') ? { ...provider.smtp, port, security: 'starttls' } : provider.smtp;
    const one = await open({
      mailbox: { smtp, imap: mailbox.imap },
      address: () => `ada@${name.replaceAll(' ', '-')}.com`,
    });
    for (let nth = 1; nth <= 4; nth++) {
      await wake(rail);
      await eventually(async () => {
        const [message] = await messagesOf(one);
        return message?.state === 'planned' && message.attempts >= nth;
      }, `attempt ${nth} of ${name}`);
      await rail.query(
        sql`update recruitment.inbox set next_slot_at = null where organization_id = ${one.organization_id}`,
      );
      await rail.query(
        sql`update recruitment.sequence set due_at = now() where organization_id = ${one.organization_id}`,
      );
    }
    t.match(await inboxOf(one), { status: 'connected', auth_failures: 0, ...expected }, name);
    t.match(await messagesOf(one), [{ failed_reason: null, bounced_at: null }], name);
  }
});

t.test('an email that was held before its final dot goes from the inbox that it has by then', async (t) => {
  const to = 'ada@moved-blog.com';
  const opened = await open({ inboxes: 2, address: () => to });
  const { organization_id, caller, campaign_id } = opened;
  const [first, other] = opened.inbox_ids;
  const path = `/recruitment/v1/campaigns/${campaign_id}`;
  sink.script.set(to, { rcpt: async () => void (await caller.post(`${path}/pause`)) });
  await wake(rail);
  await outcomesOf(opened, 1);
  t.match(await messagesOf(opened), [{ state: 'cancelled', inbox_id: first }]);
  t.match(await messagesOf(opened), [{ first_attempt_at: null }], 'the time for retries has not begun');
  sink.script.set(to, {
    rcpt: () => {
      throw refusal(451, '4.7.1 Greylisted, come back later');
    },
  });
  const steps = [{ subject: 'Hello again', body_text: 'We like you.' }];
  await caller.patch(path, { inbox_ids: [other], steps });
  await caller.post(`${path}/resume`);
  await eventually(async () => (await messagesOf(opened))[0]?.state === 'planned', 'the server to ask to wait');
  sink.script.delete(to);
  await rail.query(sql`update recruitment.sequence set due_at = now() where organization_id = ${organization_id}`);
  await wake(rail);
  await eventually(async () => (await messagesOf(opened))[0]?.state === 'sent', 'the email to be sent');
  const [message] = await messagesOf(opened);
  t.match(message, { inbox_id: other, attempts: 3, subject: 'Hello again' });
  t.equal(sink.acceptedBy(to).length, 1);
  t.match(sink.acceptedBy(to)[0]?.text, /^From: Grace <grace1@acme\.example\.com>\r$/m);
});

t.test('writes to another address of a prospect whose address was deleted before the first email', async (t) => {
  const opened = await open({ prospects: 2, address: (nth) => `ada@typo${nth}-blog.com` });
  const { caller } = opened;
  for (const prospect_id of opened.prospect_ids) {
    const { data } = await caller.get(`/recruitment/v1/prospects/${prospect_id}/emails`);
    await caller.delete(`/recruitment/v1/emails/${data[0].id}`);
  }
  const to = 'ada@right-blog.com';
  await caller.post(`/recruitment/v1/prospects/${opened.prospect_ids[0]}/emails`, { email: to });
  await wake(rail);
  await eventually(async () => {
    const sequences = await sequencesOf(opened);
    return sequences.every(({ state }) => state !== 'waiting');
  }, 'both to be written to, or not');
  t.match(await sequencesOf(opened), [{ state: 'active' }, { state: 'failed', failed_reason: 'no_address' }]);
  t.equal(sink.acceptedBy(to).length, 1);
});

t.test('a follow-up needs no value for a subject that it does not have', async (t) => {
  const to = 'ada@variant-blog.com';
  const subject = 'Hello {{ prospect.first_name }}';
  const variants = [{ weight: 1, subject: 'Hi', body_text: 'We like you.', body_html: null }];
  const opened = await open({
    address: () => to,
    steps: [step({ subject, weight: 0, variants }), step({ subject, body_text: 'Again.' })],
  });
  await wake(rail);
  await eventually(() => sink.acceptedBy(to).length === 2, 'the follow-up');
  await outcomesOf(opened, 2);
  t.match(await messagesOf(opened), [
    { subject: 'Hi', variant: 1 },
    { subject: 'Re: Hi', variant: 0 },
  ]);
});

t.test('a refused recipient spoils no other email of the same connection', async (t) => {
  const address = (nth: number) => `reader${nth}@in-a-row.example.com`;
  for (const nth of [0, 2]) {
    const answer = nth === 0 ? refusal(550, '5.1.1 User unknown') : refusal(451, '4.7.1 Greylisted, come back later');
    sink.script.set(address(nth), {
      rcpt: () => {
        throw answer;
      },
    });
  }
  const opened = await open({ prospects: 4, address, campaign: { max_per_domain_day: 10 } });
  const connections = mailbox.logins.length;
  await wake(rail);
  await outcomesOf(opened, 4);
  const messages = new Map((await messagesOf(opened)).map((one) => [one.sequence_id, one]));
  t.same(
    opened.sequence_ids.map((id) => messages.get(id)?.state),
    ['failed', 'sent', 'planned', 'sent'],
  );
  t.equal(mailbox.logins.length, connections + 1, 'over one connection');
});

t.test('an email at which the server drops the connection holds up no other, and fails after a day', async (t) => {
  const address = (nth: number) => `ada@poison${nth}-blog.com`;
  sink.script.set(address(0), { begun: ({ id }) => void sessions.get(id)?.destroy() });
  const opened = await open({ prospects: 2, address });
  const { organization_id } = opened;
  const poison = async () =>
    (await messagesOf(opened)).find(({ sequence_id }) => sequence_id === opened.sequence_ids[0]) ?? {};
  await wake(rail);
  await eventually(async () => (await poison()).state === 'planned', 'the connection to be lost');
  await rail.query(sql`update recruitment.inbox set next_slot_at = null where organization_id = ${organization_id}`);
  await wake(rail);
  await eventually(() => sink.acceptedBy(address(1)).length === 1, 'the other email');
  await outcomesOf(opened, 2);
  await rail.query(sql`
    update recruitment.message set first_attempt_at = first_attempt_at - interval '1 day' where organization_id = ${organization_id}`);
  await rail.query(sql`update recruitment.sequence set due_at = now() where organization_id = ${organization_id}`);
  await wake(rail);
  await eventually(async () => (await poison()).state === 'failed', 'the email to fail');
  t.match(await poison(), { failed_reason: 'timeout', attempts: 2, server_answer: null });
  t.equal(sink.acceptedBy(address(0)).length, 0);
});

t.test('an answer with NUL refuses like any other', async (t) => {
  const answers: [RegExp, string][] = [
    [/^EHLO/i, '250-here\r\n250 AUTH PLAIN LOGIN'],
    [/^AUTH/i, '235 2.7.0 Welcome'],
    [/^RCPT/i, '550 5.1.1 Nobody\0 here'],
  ];
  const server = tls.createServer(identity, (socket) => {
    socket.on('error', () => socket.destroy()).write('220 Hello\r\n');
    socket.on('data', (line: Buffer) => {
      const answer = answers.find(([command]) => command.test(line.toString()))?.[1] ?? '250 2.0.0 OK';
      socket.write(`${answer}\r\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const opened = await open({ mailbox: { ...mailbox, smtp: { ...mailbox.smtp, port } } });
  await wake(rail);
  await outcomesOf(opened, 1);
  t.match(await messagesOf(opened), [{ state: 'failed', failed_reason: 'recipient_refused', server_answer: /Nobody/ }]);
});

t.test('fails an email that is larger than its server takes, and leaves the inbox connected', async (t) => {
  const small = await startMailbox({ ...sink.handlers, size: 500 });
  const opened = await open({ mailbox: { smtp: small.smtp, imap: mailbox.imap } });
  await wake(rail);
  await outcomesOf(opened, 1);
  t.match(await messagesOf(opened), [{ state: 'failed', failed_reason: 'too_large', server_answer: /size/ }]);
  t.match(await opened.told(1), [['message.failed', { reason: 'too_large' }]]);
  t.match(await inboxOf(opened), { status: 'connected', unreachable_since: null });
});

t.test('disconnects an inbox whose login is refused three times', async (t) => {
  const wrong = { ...mailbox.smtp, password: 'revoked' };
  const opened = await open({ mailbox: { smtp: wrong, imap: mailbox.imap } });
  for (let nth = 0; nth < 3; nth++) {
    await wake(rail);
    await eventually(async () => (await inboxOf(opened)).auth_failures > nth, `refusal ${nth}`);
    await rail.query(
      sql`update recruitment.inbox set next_slot_at = null where organization_id = ${opened.organization_id}`,
    );
  }
  t.match(
    (await opened.told(2)).map(([type, { reason, paused_sequences }]) => [type, reason, paused_sequences]),
    [
      ['inbox.disconnected', 'auth_failed', 1],
      ['campaign.paused', 'no_inbox', undefined],
    ],
  );
});

t.test('keeps an inbox connected whose login is refused without a code that says that it is wrong', async (t) => {
  const answer = Object.assign(new Error('Die Anmeldung ist nicht moeglich'), { responseCode: 554 });
  const { smtp } = await startMailbox({ ...sink.handlers, onAuth: (_auth, _session, done) => done(answer) });
  const opened = await open({ mailbox: { smtp, imap: mailbox.imap } });
  await wake(rail);
  await eventually(async () => (await inboxOf(opened)).unreachable_since !== null, 'a refusal');
  t.match(await inboxOf(opened), { status: 'connected', auth_failures: 0 });
});

t.test(
  'disconnects an inbox whose server cannot be reached for 15 minutes, not one that fails twice a day',
  async (t) => {
    const opened = await open({ mailbox: { smtp: { ...mailbox.smtp, port: 1 }, imap: mailbox.imap } });
    const { organization_id } = opened;
    const fails = async (idle: string, unreachable: string) => {
      await rail.query(sql`
      update recruitment.inbox set next_slot_at = now() - ${idle}::interval, unreachable_since = now() - ${unreachable}::interval
      where organization_id = ${organization_id}`);
      const [before] = await messagesOf(opened);
      await wake(rail);
      await eventually(async () => {
        const [message] = await messagesOf(opened);
        return message?.state === 'planned' && message.attempts > (before?.attempts ?? 0);
      }, 'an attempt to fail');
    };
    await fails('0 s', '1 minute');
    await fails('16 hours', '16 hours');
    t.match(await inboxOf(opened), { status: 'connected', unreachable_since: /^20/ });
    await fails('0 s', '16 minutes');
    t.match(
      (await opened.told(2)).map(([type, { reason }]) => [type, reason]),
      [
        ['inbox.disconnected', 'connection_failed'],
        ['campaign.paused', 'no_inbox'],
      ],
    );
  },
);

t.test('a server that takes a minute to answer holds up its own inbox alone', async (t) => {
  const address = (nth: number) => `ada@${['slow', 'quick', 'next'][nth]}-server.com`;
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  sink.script.set(address(0), {
    end: () => {
      asked.resolve();
      return answer.promise;
    },
  });
  const opened = await open({ prospects: 3, inboxes: 2, address });
  await wake(rail);
  await asked.promise;
  await eventually(() => sink.acceptedBy(address(1)).length === 1, 'the email from the other inbox');
  t.equal(sink.acceptedBy(address(2)).length, 0, 'one email at a time from an inbox');
  await wake(rail);
  const held = (await messagesOf(opened)).find(({ sequence_id }) => sequence_id === opened.sequence_ids[0]);
  t.match(held, { state: 'sending', phase: 'data', attempts: 1 });
  answer.resolve();
  await outcomesOf(opened, 3);
  t.match(await messagesOf(opened), [{ state: 'sent' }, { state: 'sent' }, { state: 'sent' }]);
  for (const nth of [0, 1, 2]) t.equal(sink.acceptedBy(address(nth)).length, 1);

  const [inbox_id = ''] = opened.inbox_ids;
  const { organization_id } = opened;
  const attempt = async (to: string, deadlines: { start_ms: number; end_ms: number }) => {
    const connection = await connectTo(
      { organization_id, inbox_id },
      {
        ...{ store: rail.store, services: rail.services, log },
      },
    );
    const letter = { from: 'grace@acme.example.com', to, content: Buffer.from('Subject: Hello\r\n\r\nHello') };
    return handOver(connection, letter, async () => true, new AbortController().signal, deadlines);
  };
  const never = new Promise<never>(() => {});
  sink.script.set('ada@never-takes.com', { rcpt: () => never });
  sink.script.set('ada@never-answers.com', { end: () => never });
  t.same(await attempt('ada@never-takes.com', { start_ms: 50, end_ms: 60_000 }), { is: 'lost' });
  t.same(await attempt('ada@never-answers.com', { start_ms: 60_000, end_ms: 50 }), { is: 'unknown' });
});

t.test('a login that is revoked amid sending disconnects the inbox, and loses and doubles nothing', async (t) => {
  let is_revoked = false;
  const provider = await startMailbox({
    ...sink.handlers,
    onAuth: (_auth, _session, done) =>
      done(is_revoked ? refusal(535, '5.7.8 Bad credentials') : null, { user: 'grace' }),
    onMailFrom: (_address, _session, done) => done(is_revoked ? refusal(535, '5.7.8 Access was revoked') : null),
  });
  const address = (nth: number) => `ada@revoked${nth}.com`;
  sink.script.set(address(1), {
    accepted: () => {
      is_revoked = true;
    },
  });
  const opened = await open({ mailbox: { ...provider, imap: mailbox.imap }, prospects: 5, address });
  const { organization_id } = opened;
  await wake(rail);
  for (let nth = 0; nth < 3; nth++) {
    await eventually(async () => (await inboxOf(opened)).auth_failures > nth, `refusal ${nth}`);
    await rail.query(sql`update recruitment.inbox set next_slot_at = null where organization_id = ${organization_id}`);
    await wake(rail);
  }
  await eventually(async () => (await inboxOf(opened)).status === 'disconnected', 'the inbox to be disconnected');
  t.match(await inboxOf(opened), { disconnected_reason: 'auth_failed' });
  const states = (await messagesOf(opened)).map(({ state }) => state);
  t.same(states.sort(), ['planned', 'sent', 'sent'], 'what was being sent is sent later, and fails nowhere');
  t.equal((await sequencesOf(opened)).filter(({ state }) => state === 'waiting').length, 3);

  is_revoked = false;
  await opened.caller.post(`/recruitment/v1/inboxes/${opened.inbox_ids[0]}/reconnect`);
  await eventually(
    async () => (await messagesOf(opened)).filter(({ state }) => state === 'sent').length === 5,
    'the others to be sent',
  );
  for (let nth = 0; nth < 5; nth++) t.equal(sink.acceptedBy(address(nth)).length, 1, 'each once');
});

t.test('a daily limit of the provider holds up its inbox, for twice as long the next time', async (t) => {
  const address = (nth: number) => `ada@quota${nth}.com`;
  let is_full = true;
  let asked = 0;
  const full: Script = {
    rcpt: () => {
      asked++;
      if (is_full) throw refusal(452, '4.7.0 Daily message limit exceeded, try again tomorrow');
    },
  };
  for (const nth of [0, 2]) sink.script.set(address(nth), full);
  const opened = await open({ prospects: 4, inboxes: 2, address });
  const { organization_id } = opened;
  await wake(rail);
  const waits = async (wait_s: number) => {
    await eventually(async () => (await inboxOf(opened)).wait_s === wait_s, `a wait of ${wait_s} s`);
    const left = new Date((await inboxOf(opened)).waits_until).getTime() - Date.now();
    t.ok(left > (wait_s - 600) * 1_000 && left <= wait_s * 1_000);
  };
  await waits(3_600);
  await eventually(() => sink.acceptedBy(address(3)).length === 1, 'the emails from the other inbox');
  await wake(rail);
  t.equal(asked, 1, 'nothing else is tried meanwhile');
  const over = () =>
    rail.query(sql`
      update recruitment.inbox set waits_until = null where organization_id = ${organization_id} and waits_until is not null`);
  await over();
  await wake(rail);
  await waits(7_200);
  is_full = false;
  await over();
  await wake(rail);
  await outcomesOf(opened, 4);
  await eventually(async () => (await messagesOf(opened)).every(({ state }) => state === 'sent'), 'all to be sent');
  for (let nth = 0; nth < 4; nth++) t.equal(sink.acceptedBy(address(nth)).length, 1, 'each once');
  t.match(await inboxOf(opened), { wait_s: null, waits_until: null });
});
