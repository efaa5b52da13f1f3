/** Emails of which nobody can tell whether they left, and what the mailbox says of them. */
import t from 'tap';
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
    const report = {
      ...{ From: `mailer-daemon@${user}.com`, Subject: 'Undelivered mail' },
      'Content-Type': 'multipart/report; report-type=delivery-status; boundary=b',
    };
    const status = `Final-Recipient: rfc822; ${to}\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 user unknown`;
    const text = [
      '--b\n\nNot delivered.\n',
      `--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.${user}.com\n\n${status}\n`,
      `--b\nContent-Type: text/rfc822-headers\n\nMessage-ID: <${lost.rfc_message_id}>\n`,
      '--b--',
    ].join('\n');
    const mail =
      answer.type === 'reply.received'
        ? source({ From: to, Subject: 'Your offer', ...fields }, 'What do you pay?')
        : source({ ...report, ...fields }, text);
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
