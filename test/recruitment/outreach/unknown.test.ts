/** Emails of which nobody can tell whether they left, and what the mailbox says of them. */
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { idGivenBy } from '../../../src/recruitment/composing/message_ids.ts';
import { sendMessage } from '../../../src/recruitment/sending/send_message.ts';
import { type Caller, eventually, type Json, sql, startRail, startReceiver } from '../../harness.ts';
import { all_but_scans } from '../event_types.ts';
import { startMailbox } from '../mailbox.ts';
import { type Asked, openSender, type Sender, step, wake } from './outreach.ts';
import { openImapServer, source } from './read_inbox.ts';
import { startSink } from './sink.ts';

const rail = await startRail();
const sink = await startSink();
const mailbox = await startMailbox({ ...sink.handlers, secure: true });
const server = await openImapServer();
const v1 = '/recruitment/v1';

interface Opened extends Sender {
  caller: Caller;
  user: string;
  events(): Json[];
}

async function open(user: string, asked: Partial<Asked> = {}): Promise<Opened> {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  await caller.post(`${v1}/webhook_endpoints`, { url: receiver.url, event_types: all_but_scans });
  const imap = { host: 'localhost', port: server.port, security: 'tls', username: user, password: 'app-password' };
  const sender = await openSender(rail, caller.organization_id, { mailbox: { smtp: mailbox.smtp, imap }, ...asked });
  return { ...sender, caller, user, events: () => receiver.events() };
}

const messagesOf = ({ organization_id }: Sender): Promise<Json[]> =>
  rail.query(sql`
    select t.* from recruitment.message t
    where t.organization_id = ${organization_id} and t.direction = 'outbound' order by t.id`);
const until = (opened: Sender, ...states: string[]) =>
  eventually(
    async () => (await messagesOf(opened)).map(({ state }) => state).join() === states.join(),
    states.join(', '),
  );
/** The server takes the email and is gone; or has it, too. */
const loseAt = (to: string, kept: (text: string) => void = () => {}) => {
  let is_lost = false;
  sink.script.set(to, {
    end(session) {
      if (is_lost) return;
      is_lost = true;
      sink.sessions.get(session.id)?.destroy();
      throw new Error('It was not accepted.');
    },
    accepted: () => kept(sink.acceptedBy(to).at(-1)?.text ?? ''),
  });
};
/** A report that the address is dead. */
const returned = (to: string, rfc_message_id: string): string => {
  const report = {
    From: 'mailer-daemon@mx.example.com',
    Subject: 'Undelivered mail',
    'Message-ID': `<returned.${rfc_message_id}>`,
  };
  const status = `Final-Recipient: rfc822; ${to}\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 user unknown`;
  const text = [
    '--b\n\nNot delivered.\n',
    `--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example.com\n\n${status}\n`,
    `--b\nContent-Type: text/rfc822-headers\n\nMessage-ID: <${rfc_message_id}>\n`,
    '--b--',
  ].join('\n');
  return source({ ...report, 'Content-Type': 'multipart/report; report-type=delivery-status; boundary=b' }, text);
};
const dueNow = ({ organization_id }: Sender) =>
  rail.query(
    sql`update recruitment.sequence set due_at = now() where organization_id = ${organization_id} and ended_at is null`,
  );

t.test('holds a sequence whose first email may not have been sent, and sends that again by request', async (t) => {
  const to = 'ada@first-lost.com';
  loseAt(to);
  const opened = await open('first', { address: () => to, steps: [step(), step({ subject: '' })] });
  await wake(rail);
  await until(opened, 'unknown');
  await dueNow(opened);
  const [lost] = (await messagesOf(opened)) as [Json];
  const { caller, inbox_ids, sequence_ids, campaign_id } = opened;
  t.match(await caller.get(`${v1}/sequences/${sequence_ids[0]}`), {
    state: 'paused',
    pause_causes: ['unknown_email'],
    next_step: 1,
  });
  t.match(await caller.get(`${v1}/inboxes/${inbox_ids[0]}/health`), { unknown_28d: 1 });
  t.match(await caller.get(`${v1}/campaigns/${campaign_id}/stats`), { steps: [{ unknown: 1 }] });
  await wake(rail);
  const resend = () => caller.request('POST', `${v1}/messages/${lost.id}/resend`);
  t.match(await resend(), { status: 202, body: { id: lost.id } });
  await until(opened, 'sent', 'sent');
  const [first, second] = (await messagesOf(opened)) as [Json, Json];
  t.equal(first.rfc_message_id, `${lost.id}.1@acme.example.com`);
  t.same(first.other_message_ids, [lost.rfc_message_id]);
  t.match(second, { subject: /^Re: Hello/, in_reply_to: first.rfc_message_id });
  t.equal(sink.acceptedBy(to).length, 2, 'each once');
  t.match(await resend(), { status: 409, body: { error: { code: 'invalid_state_transition', message: /'sent'/ } } });
  await eventually(() => opened.events().filter(({ type }) => type === 'message.sent').length === 2, 'both told');
  t.match(
    await rail.query(
      sql`select a.* from recruitment.outreach_audit() a where a.organization_id = ${opened.organization_id}`,
    ),
    [],
  );
});

t.test('takes what answers the first copy while the second waits', async (t) => {
  for (const [user, answer] of [
    ['waiting-reply', { type: 'reply.received', state: 'cancelled' }],
    ['waiting-bounce', { type: 'message.bounced', state: 'bounced' }],
  ] as const) {
    const to = `ada@${user}.com`;
    loseAt(to);
    const opened = await open(user, { address: () => to });
    const { caller, campaign_id } = opened;
    await wake(rail);
    await until(opened, 'unknown');
    const [lost] = (await messagesOf(opened)) as [Json];
    await caller.post(`${v1}/campaigns/${campaign_id}/pause`);
    t.match(await caller.request('POST', `${v1}/messages/${lost.id}/resend`), { status: 202 });
    await until(opened, 'planned');
    const fields = { 'Message-ID': `<1@${user}.com>` };
    const mail =
      answer.type === 'reply.received'
        ? source({ From: to, Subject: 'Your offer', ...fields }, 'What do you pay?')
        : returned(to, lost.rfc_message_id);
    server.deliver(opened.user, mail);
    await eventually(() => opened.events().some(({ type }) => type === answer.type), answer.type);
    await until(opened, answer.state);
  }
});

t.test('does not send again what is barred, and goes on where a person says so', async (t) => {
  const to = 'ada@resumed-blog.com';
  loseAt(to);
  const opened = await open('resumed', { address: () => to, steps: [step(), step({ subject: '' })] });
  const { caller, sequence_ids, prospect_ids } = opened;
  await wake(rail);
  await until(opened, 'unknown');
  await caller.post(`${v1}/sequences/${sequence_ids[0]}/resume`);
  await dueNow(opened);
  await wake(rail);
  await until(opened, 'unknown', 'sent');
  const [lost, followed] = (await messagesOf(opened)) as [Json, Json];
  t.match(followed, { subject: /^Hello/, in_reply_to: null, reference_ids: [] }, 'it answers nothing');
  t.match(await caller.request('POST', `${v1}/messages/${lost.id}/resend`), { status: 409 });
  await rail.query(sql`
    update recruitment.sequence set due_at = now() where organization_id = ${opened.organization_id}`);
  await wake(rail);
  await eventually(() => opened.events().some(({ type }) => type === 'sequence.completed'), 'the end');
  t.match(opened.events().find(({ type }) => type === 'sequence.completed')?.data, { outcome: 'unknown' });
  await caller.post(`${v1}/prospects/${prospect_ids[0]}/do_not_contact`, { reason: 'manual' });
  t.match(await caller.request('POST', `${v1}/messages/${lost.id}/resend`), {
    status: 409,
    body: { error: { code: 'suppressed' } },
  });
});

t.test(
  'finds an email by the Message-ID that it was given, and knows it by the one that the provider wrote',
  async (t) => {
    const to = 'ada@rewritten-blog.com';
    const opened = await open('rewritten', { address: () => to });
    sink.script.set(to, {
      accepted(session) {
        const text = sink.acceptedBy(to)[0]?.text ?? '';
        server.deliver(
          opened.user,
          text.replace(/^Message-ID: .*$/im, 'Message-ID: <other-1@provider.example.net>'),
          'Sent',
        );
        sink.sessions.get(session.id)?.destroy();
      },
    });
    await wake(rail);
    await until(opened, 'sent');
    await eventually(async () => (await messagesOf(opened))[0]?.other_message_ids.length > 0, 'the other id');
    await rail.query(
      sql`update recruitment.message set sent_at = sent_at - interval '1 minute' where organization_id = ${opened.organization_id}`,
    );
    await wake(rail);
    await eventually(async () => (await messagesOf(opened))[0]?.copied_at !== null, 'the copy');
    t.equal(server.folder(opened.user, 'Sent').mails.length, 1, 'one copy');
    const fields = { From: 'Bob <bob@elsewhere.example.com>', 'In-Reply-To': '<other-1@provider.example.net>' };
    server.deliver(
      opened.user,
      source({ ...fields, 'Message-ID': '<reply-1@elsewhere.example.com>' }, 'What do you pay?'),
    );
    await eventually(() => opened.events().some(({ type }) => type === 'reply.received'), 'the reply');
  },
);

t.test('knows an email by the Message-ID that its server names as it accepts it', async (t) => {
  const ses = (nth: number) => `0100019000000${nth}aa-0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f-000000`;
  const given = [
    [`Ok ${ses(1)}`, `${ses(1)}@email.amazonses.com`, `${ses(1)}@eu-west-1.amazonses.com`],
    [`Ok ${ses(2)}`, `${ses(2)}@email.amazonses.com`, `${ses(2)}@email.amazonses.com`],
    [
      '2.6.0 <AM0P1@AM0P1.prod.example.net> [InternalId=1, Hostname=x]',
      'AM0P1@AM0P1.prod.example.net',
      'AM0P1@AM0P1.prod.example.net',
    ],
    ['2.0.0 Ok: queued as 4F2A1', undefined, undefined],
  ] as const;
  const address = (nth: number) => `ada@named${nth}.com`;
  for (const [nth, [text]] of given.entries()) sink.script.set(address(nth), { accepted: () => text });
  const opened = await open('named', { prospects: given.length, address });
  await wake(rail);
  await until(opened, ...given.map(() => 'sent'));
  const messages = new Map((await messagesOf(opened)).map((one) => [one.prospect_id, one]));
  for (const [nth, [text, stored, named]] of given.entries()) {
    const prospect_id = opened.prospect_ids[nth] as string;
    t.same(messages.get(prospect_id)?.other_message_ids, stored ? [stored] : [], text);
    if (!named) continue;
    const isTold = (type: string) =>
      eventually(
        () => opened.events().some((event) => event.type === type && event.data.prospect_id === prospect_id),
        `${type} of ${text}`,
      );
    if (nth === 1) {
      server.deliver(opened.user, returned(address(nth), named));
      await isTold('message.bounced');
    } else {
      const fields = { From: `Bob <bob${nth}@elsewhere.example.com>`, 'In-Reply-To': `<${named}>` };
      server.deliver(
        opened.user,
        source({ ...fields, 'Message-ID': `<named-${nth}@elsewhere.example.com>` }, 'What do you pay?'),
      );
      await isTold('reply.received');
    }
  }
  t.equal(idGivenBy(`250 Ok ${ses(1)}`, 'email-smtp.eu-west-1.amazonaws.com'), `${ses(1)}@eu-west-1.amazonses.com`);
  t.equal(idGivenBy(`250 Ok ${ses(1)}`, 'email-smtp.us-east-1.amazonaws.com'), `${ses(1)}@email.amazonses.com`);
});

t.test('sends an invitation and an answer again that may not have left', async (t) => {
  const to = 'ada@by-hand.com';
  const opened = await open('by-hand', { address: () => to, campaign: { bounce_pause_bps: 300 } });
  const { caller, campaign_id, organization_id, brand_id, inbox_ids, prospect_ids } = opened;
  await caller.post(`${v1}/campaigns/${campaign_id}/pause`);
  const [prospect_id, inbox_id] = [prospect_ids[0] as string, inbox_ids[0] as string];
  const [address] = (await caller.get(`${v1}/prospects/${prospect_id}/emails`)).data;
  const invite = () =>
    transaction(rail.store, { organization_id, request_id: null }, (tx) =>
      sendMessage(tx, rail.services.vault, {
        ...{ purpose: 'invitation', brand_id, inbox_id, prospect_id, email_address_id: address.id, thread_id: null },
        ...{ subject: 'Join us', body_text: 'Join us.', body_html: null },
      }),
    );
  const resent = async (states: string[]) => {
    await until(opened, ...states.slice(1), 'unknown');
    const lost = (await messagesOf(opened)).at(-1) as Json;
    for (const _ of [1, 2])
      t.match(await caller.request('POST', `${v1}/messages/${lost.id}/resend`), { status: 202, body: { id: lost.id } });
    await until(opened, ...states);
    const sent = (await messagesOf(opened)).at(-1) as Json;
    t.match(sent, { rfc_message_id: `${lost.id}.1@acme.example.com`, other_message_ids: [lost.rfc_message_id] });
    t.match(await caller.get(`${v1}/threads/${sent.thread_id}`), { messages: states.length });
    t.equal(sink.acceptedBy(to).length, states.length, 'each once');
    return sent;
  };
  loseAt(to);
  await invite();
  const invitation = await resent(['sent']);
  loseAt(to);
  await caller.request('POST', `${v1}/prospects/${prospect_id}/reply`, { text: 'Any questions?' });
  const answer = await resent(['sent', 'sent']);
  t.match(answer, { purpose: 'answer', in_reply_to: invitation.rfc_message_id, thread_id: invitation.thread_id });
  t.match(await caller.get(`${v1}/prospects/${prospect_id}`), { stage: 'contacted' });
  loseAt(to);
  await caller.request('POST', `${v1}/prospects/${prospect_id}/reply`, { text: 'Hello?' });
  await until(opened, 'sent', 'sent', 'unknown');
  await caller.post(`${v1}/prospects/${prospect_id}/do_not_contact`, { reason: 'manual' });
  const [, , last] = (await messagesOf(opened)) as [Json, Json, Json];
  t.match(await caller.request('POST', `${v1}/messages/${last.id}/resend`), {
    body: { error: { code: 'suppressed' } },
  });
});

t.test('a mailbox is tended by one job at a time, however long that takes', async (t) => {
  const [slow, other] = [await open('slow', { prospects: 3 }), await open('other')];
  await wake(rail);
  await until(slow, 'sent', 'sent', 'sent');
  await until(other, 'sent');
  const old = ({ organization_id }: Sender) =>
    rail.query(
      sql`update recruitment.message set sent_at = sent_at - interval '1 minute' where organization_id = ${organization_id}`,
    );
  await old(slow);
  let takes = () => {};
  server.faults.holds_appends = new Promise((resolve) => {
    takes = resolve;
  });
  const before = server.appends;
  await wake(rail);
  await eventually(() => server.appends === before + 1, 'an APPEND');
  await old(other);
  await rail.tick('recruitment/send_due', new Date(Date.now() + 60_000).toISOString());
  await eventually(() => server.appends >= before + 2, 'the APPEND of another mailbox');
  const [waiting] = await rail.query<Json>(sql`
    select count(*)::integer as jobs from graphile_worker.jobs j where j.key = ${`mailbox:${slow.inbox_ids[0]}`} and j.locked_at is null`);
  t.same(waiting, { jobs: 1 }, 'the second job waits');
  t.equal(server.appends, before + 2);
  takes();
  await eventually(async () => (await messagesOf(slow)).every(({ copied_at }) => copied_at !== null), 'the copies');
  t.equal(server.folder(slow.user, 'Sent').mails.length, 3, 'each once');
});
