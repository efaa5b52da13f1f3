/** Outreach email over real SMTP: sent once, or known not to be. */
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { sendMessage } from '../../../src/recruitment/outreach/sending/lanes/send_message.ts';
import { type Caller, eventually, type Json, sql, startRail, startReceiver } from '../../harness.ts';
import { all_but_scans } from '../event_types.ts';
import { startMailbox } from '../mailbox.ts';
import { type Asked, openSender, type Sender, step, wake } from './outreach.ts';
import { startSink } from './sink.ts';

const rail = await startRail();
const sink = await startSink();
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
      await eventually(() => receiver.received.length >= count, `${count} events`);
      return receiver.received.map(({ body }) => [body.type, body.data]);
    },
  };
}

const messagesOf = ({ organization_id }: Sender): Promise<Json[]> =>
  rail.query(sql`select t.* from recruitment.message t where t.organization_id = ${organization_id} order by t.id`);
const sequencesOf = ({ organization_id }: Sender): Promise<Json[]> =>
  rail.query(sql`select t.* from recruitment.sequence t where t.organization_id = ${organization_id} order by t.id`);

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
    const to = 'ada@invited.example.com';
    const opened = await open({ address: () => to, inbox: { daily_limit: 1, min_gap_s: 3_600, max_gap_s: 3_600 } });
    const { organization_id, brand_id, inbox_ids, prospect_ids, caller } = opened;
    await wake(rail);
    await opened.told(2);
    const [address] = (await caller.get(`/recruitment/v1/prospects/${prospect_ids[0]}/emails`)).data;
    const invite = () =>
      transaction(rail.store, { organization_id, request_id: null }, (tx) =>
        sendMessage(tx, rail.services.vault, {
          ...{
            purpose: 'invitation',
            inbox_id: inbox_ids[0] as string,
            brand_id,
            prospect_id: prospect_ids[0] as string,
          },
          ...{
            email_address_id: address.id,
            thread_id: null,
            subject: 'Join us',
            body_text: 'Join us.',
            body_html: null,
          },
        }),
      );
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
