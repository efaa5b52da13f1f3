/** Sequences, messages and threads over REST, and what a person does with them. */
import fc from 'fast-check';
import { raw } from 'sql-template-tag';
import t from 'tap';
import { newId } from '../../../src/core/values/id.ts';
import { stage_names } from '../../../src/recruitment/events/fields.ts';
import { type ReplyKind, reply_kinds } from '../../../src/recruitment/sequences/message.ts';
import { stageAfterCorrection } from '../../../src/recruitment/threads/reclassify.ts';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { startMailbox } from '../mailbox.ts';
import { mail, type Outreach, openCampaign, openOutreach, replyTo, sendTo } from './mailed.ts';
import { startSink } from './sink.ts';

const rail = await startRail();
const sink = await startSink();
const mailbox = await startMailbox({ ...sink.handlers, secure: true });
const v1 = '/recruitment/v1';

const told = ({ receiver }: Outreach, of: RegExp): [string, Json][] =>
  receiver
    .events()
    .filter(({ type }) => of.test(type))
    .map(({ type, data }) => [type, data]);
const codeOf = async ({ caller }: Outreach, path: string, body: Json = {}): Promise<[number, string]> => {
  const answer = await caller.request('POST', `${v1}${path}`, body);
  return [answer.status, answer.body.error?.code];
};

t.test('pauses, resumes and stops a sequence', async (t) => {
  const outreach = await openOutreach(rail);
  const { caller } = outreach;
  const { sequence_id, prospect_id } = await mail(rail, outreach);
  const path = `${v1}/sequences/${sequence_id}`;
  t.match(await caller.get(path), {
    object: 'sequence',
    state: 'active',
    pause_causes: [],
    next_step: 1,
    due_at: /^2030/,
  });
  for (const _ of [1, 2]) t.match(await caller.post(`${path}/pause`), { state: 'paused', pause_causes: ['user'] });
  t.equal((await caller.get(`${v1}/sequences?state=paused`)).total_count, 1);
  await rail.query(
    sql`update recruitment.sequence set paused_until = now() + interval '3 days' where id = ${sequence_id}`,
  );
  t.match(await caller.get(path), { pause_causes: ['auto_reply', 'user'] });
  for (const _ of [1, 2])
    t.match(await caller.post(`${path}/resume`), { state: 'active', pause_causes: [], paused_until: null });
  for (const _ of [1, 2])
    t.match(await caller.post(`${path}/stop`), { state: 'stopped', due_at: null, ended_at: /^20/ });
  await eventually(() => told(outreach, /^campaign/).length > 0, 'the end of the campaign');
  t.same(
    told(outreach, /^campaign/).map(([type]) => type),
    ['campaign.finished'],
  );
  for (const action of ['pause', 'resume'])
    t.same(await codeOf(outreach, `/sequences/${sequence_id}/${action}`), [409, 'invalid_state_transition']);
  const { data } = await caller.get(`${v1}/prospects/${prospect_id}/activity`);
  t.same(
    data.map(({ kind }: Json) => kind).filter((kind: string) => kind.startsWith('sequence_')),
    ['sequence_stopped', 'sequence_resumed', 'sequence_paused'],
  );
  t.match(data[0], { by_user_id: /^usr_/, data: { sequence_id } });
});

t.test('keeps a sequence paused while its campaign or its inbox is', async (t) => {
  const outreach = await openOutreach(rail);
  const { sequence_id } = await mail(rail, outreach);
  await rail.query(sql`
    update recruitment.campaign set state = 'paused', pause_causes = '{user}', paused_at = now() where id = ${outreach.campaign_id}`);
  await rail.query(sql`
    update recruitment.inbox set status = 'disconnected', disconnected_reason = 'disabled', disconnected_at = now() where id = ${outreach.inbox_id}`);
  await outreach.caller.post(`${v1}/sequences/${sequence_id}/pause`);
  t.match(await outreach.caller.post(`${v1}/sequences/${sequence_id}/resume`), {
    ...{ state: 'paused', pause_causes: ['campaign', 'inbox'] },
  });
});

t.test('lists what was written and answered', async (t) => {
  const outreach = await openOutreach(rail);
  const { caller, brand_id, campaign_id, inbox_id } = outreach;
  const [one, two] = [await mail(rail, outreach), await mail(rail, outreach)];
  const reply = await replyTo(rail, outreach, one, one.email, { needs_review: true, text: 'Who are you?' });
  const ids = async (path: string) => (await caller.get(`${v1}${path}`)).data.map(({ id }: Json) => id);
  t.same(await ids(`/threads?brand_id=${brand_id}`), [two.thread_id, one.thread_id]);
  for (const filter of ['needs_review=true', 'reply_kind=question', `prospect_id=${one.prospect_id}`])
    t.same(await ids(`/threads?brand_id=${brand_id}&${filter}`), [one.thread_id], filter);
  t.same(await ids(`/threads?brand_id=${brand_id}&needs_review=false`), [two.thread_id]);
  t.equal((await ids(`/threads?brand_id=${brand_id}&campaign_id=${campaign_id}&inbox_id=${inbox_id}`)).length, 2);
  t.match(await caller.get(`${v1}/threads/${one.thread_id}`), {
    ...{ object: 'thread', messages: 2, reply_kind: 'question', needs_review: true, subject: 'Hello' },
  });
  for (const path of [`/threads/${one.thread_id}/messages`, `/prospects/${one.prospect_id}/messages`])
    t.same(await ids(path), [reply, one.message_id], path);
  t.same(await ids(`/messages?brand_id=${brand_id}&direction=inbound`), [reply]);
  t.equal((await ids('/messages')).length, 3);
  t.match(await caller.get(`${v1}/messages/${reply}`), {
    ...{ direction: 'inbound', purpose: 'reply', body_text: 'Who are you?', reply_kind: 'question', confidence: 0.5 },
  });
  t.same((await caller.request('GET', `${v1}/prospects/sample_fdi_01/messages`)).status, 409);
  t.match((await caller.request('GET', `${v1}/messages?format=csv`)).text, 'Who are you?');
});

t.test('corrects the kind of a reply: the stage follows, and no event is told again', async (t) => {
  const outreach = await openOutreach(rail);
  const { caller } = outreach;
  const one = await mail(rail, outreach);
  const first = await replyTo(rail, outreach, one, one.email, { reply_kind: 'not_now', needs_review: true });
  const reply = await replyTo(rail, outreach, one, one.email, { reply_kind: 'negative', needs_review: true });
  const reclassify = (id: string, reply_kind: ReplyKind) =>
    caller.post(`${v1}/messages/${id}/reclassify`, { reply_kind });
  for (const _ of [1, 2])
    t.match(await reclassify(reply, 'positive'), { reply_kind: 'positive', confidence: 1, needs_review: false });
  const prospect = () => caller.get(`${v1}/prospects/${one.prospect_id}`);
  const thread = () => caller.get(`${v1}/threads/${one.thread_id}`);
  t.match(await prospect(), { stage: 'interested' });
  t.match(await thread(), { reply_kind: 'positive', needs_review: true });
  t.match(await reclassify(first, 'negative'), { reply_kind: 'negative' }, 'an earlier reply');
  t.match(await prospect(), { stage: 'interested' });
  t.match(await thread(), { reply_kind: 'positive', needs_review: false });
  await reclassify(reply, 'angry');
  t.match(await prospect(), { stage: 'lost', do_not_contact: null });
  const moves = () => told(outreach, /^(reply|do_not|affiliate\.stage)/);
  await eventually(() => moves().length >= 2, 'two moves');
  t.same(
    moves().map(([type, { from, to, reason }]) => [type, from, to, reason]),
    [
      ['affiliate.stage_changed', 'contacted', 'interested', 'reply_received'],
      ['affiliate.stage_changed', 'interested', 'lost', 'reply_received'],
    ],
  );
  t.same(await codeOf(outreach, `/messages/${one.message_id}/reclassify`, { reply_kind: 'angry' }), [
    409,
    'invalid_state_transition',
  ]);
  t.same(await codeOf(outreach, `/messages/${reply}/reclassify`, { reply_kind: 'happy' }), [400, 'invalid_parameter']);
});

const sentBy = async ({ caller }: Outreach, message_id: string): Promise<Json> => {
  let message: Json = {};
  const isSent = async () => {
    message = await caller.get(`${v1}/messages/${message_id}`);
    return message.state === 'sent';
  };
  await eventually(isSent, 'the email to be sent');
  return message;
};

t.test("sends a person's answer in the thread, without a footer", async (t) => {
  const outreach = await openOutreach(rail, mailbox);
  const { caller } = outreach;
  const one = await mail(rail, outreach);
  const reply = await replyTo(rail, outreach, one, one.email);
  const path = `${v1}/prospects/${one.prospect_id}/reply`;
  const answered = await caller.request('POST', path, {
    text: 'We pay 20 %.',
    html: '<p>We pay <b>20 %</b>.</p><script>x</script>',
  });
  t.equal(answered.status, 202);
  t.match(answered.body, { purpose: 'answer', direction: 'outbound', thread_id: one.thread_id, campaign_id: null });
  t.match(await sentBy(outreach, answered.body.id), { subject: 'Re: Hello', sent_at: /^20/ });
  const [accepted] = sink.acceptedBy(one.email);
  t.match(accepted?.text, new RegExp(`In-Reply-To: <${reply}@their.example.com>`, 'i'));
  t.match(accepted?.text, `${one.message_id}@acme.example.com`);
  t.match(accepted?.text, '<b>20 %</b>');
  t.notMatch(accepted?.text, /List-Unsubscribe|recruitment\/u\/|<script/i);
  t.match(await caller.get(`${v1}/threads/${one.thread_id}`), { messages: 3 });
  t.same(told(outreach, /^message/), []);
  t.same(await codeOf(outreach, `/prospects/${one.prospect_id}/reply`, { text: ' ' }), [400, 'invalid_parameter']);
  const other = await mail(rail, outreach);
  t.same(await codeOf(outreach, `/prospects/${one.prospect_id}/reply`, { text: 'x', thread_id: other.thread_id }), [
    404,
    'resource_not_found',
  ]);
});

t.test('answers in the thread with the last message, though one that came before was read later', async (t) => {
  const outreach = await openOutreach(rail);
  const { caller, brand_id, inbox_id } = outreach;
  const one = await mail(rail, outreach);
  await replyTo(rail, outreach, one, one.email);
  const { organization_id } = caller;
  const campaign_id = await openCampaign(rail, { organization_id, brand_id, inbox_id });
  const other = await sendTo(rail, { ...outreach, campaign_id }, one.prospect_id, one.email);
  await replyTo(rail, outreach, other, one.email);
  const late = await replyTo(rail, outreach, one, one.email);
  const before = sql`now() - interval '2 days'`;
  await rail.query(sql`update recruitment.message set received_at = ${before} where id = ${late}`);
  await rail.query(sql`update recruitment.thread set last_message_at = ${before} where id = ${one.thread_id}`);
  const path = `${v1}/prospects/${one.prospect_id}/reply`;
  t.match(await caller.post(path, { text: 'We pay 20 %.' }), { thread_id: other.thread_id });
});

t.test('answers nobody who is barred, and says what to do', async (t) => {
  const outreach = await openOutreach(rail);
  const { caller, brand_id, inbox_id } = outreach;
  const answer = async (prospect_id: string) => {
    const { status, body } = await caller.request('POST', `${v1}/prospects/${prospect_id}/reply`, { text: 'Hi' });
    return [status, body.error?.code, body.error?.message];
  };
  const marked = await mail(rail, outreach);
  const unsubscribed = await mail(rail, outreach);
  const without = await mail(rail, outreach);
  const disconnected = await mail(rail, outreach);
  await caller.post(`${v1}/do_not_contact`, { kind: 'domain', domain: marked.email.split('@')[1], reason: 'manual' });
  t.match(await answer(marked.prospect_id), [409, 'suppressed', /do_not_contact\/lift/]);
  await caller.post(`${v1}/do_not_contact`, { kind: 'address', email: unsubscribed.email, reason: 'unsubscribed' });
  t.match(await answer(unsubscribed.prospect_id), [409, 'suppressed', /own mail program/]);
  const { data } = await caller.get(`${v1}/prospects/${without.prospect_id}/emails`);
  await caller.delete(`${v1}/emails/${data[0].id}`);
  t.match(await answer(without.prospect_id), [409, 'invalid_state_transition', /Add one: POST/]);
  const fresh = await caller.post(`${v1}/prospects`, { brand_id, channel: 'website', key: 'nothread.com' });
  t.match(await answer(fresh.id), [409, 'invalid_state_transition', /no thread/]);
  await rail.query(sql`
    update recruitment.inbox set status = 'disconnected', disconnected_reason = 'disabled', disconnected_at = now() where id = ${inbox_id}`);
  t.match(await answer(disconnected.prospect_id), [409, 'invalid_state_transition', /[Rr]econnect/]);
  await caller.delete(`${v1}/inboxes/${inbox_id}`);
  t.match(await answer(disconnected.prospect_id), [409, 'invalid_state_transition', /was deleted/]);
  t.equal((await caller.get(`${v1}/messages?purpose=answer`)).total_count, 0);
});

t.test('invites by email, once, with the footer and a link to join', async (t) => {
  const outreach = await openOutreach(rail, mailbox);
  const { caller, brand_id, inbox_id } = outreach;
  const email = 'ada@invited.example.com';
  const prospect = await caller.post(`${v1}/prospects`, {
    ...{ brand_id, channel: 'website', key: 'invited.com', name: 'Ada', language_code: 'de', email },
  });
  const path = `/prospects/${prospect.id}/invite`;
  const asked = { via: 'email', inbox_id, join_url: 'https://join.example.com/?ref=1' };
  t.same(await codeOf(outreach, path, { via: 'email' }), [400, 'missing_parameter']);
  t.same(await codeOf(outreach, path, { via: 'mark', inbox_id }), [400, 'invalid_parameter']);
  t.same(await codeOf(outreach, path, { via: 'email', inbox_id }), [400, 'missing_parameter'], 'no program');
  t.same(await codeOf(outreach, path, { ...asked, inbox_id: newId('fin') }), [404, 'resource_not_found']);
  const invited = await caller.post(`${v1}${path}`, asked);
  t.match(invited, { invited_at: /^20/, invitation_token: /^[0-9a-f]{32}$/ });
  t.match(await caller.post(`${v1}${path}`, asked), { invited_at: invited.invited_at });
  const { data, total_count } = await caller.get(`${v1}/messages?purpose=invitation`);
  t.equal(total_count, 1);
  t.match(await sentBy(outreach, data[0].id), {
    subject: 'Einladung zum Partnerprogramm von Acme',
    thread_id: /^fth_/,
  });
  const text = data[0].body_text;
  t.match(text, `Guten Tag Ada,`);
  t.match(text, `https://join.example.com/?ref=1&rail_invitation=${invited.invitation_token}`);
  const [accepted, ...more] = sink.acceptedBy(email);
  t.same(more, []);
  t.match(accepted?.text, /List-Unsubscribe-Post: List-Unsubscribe=One-Click/i);
  await eventually(() => told(outreach, /^affiliate\.(invited|stage)/).length >= 2, 'two events');
  t.match(told(outreach, /^(affiliate\.(invited|stage)|message)/), [
    ['affiliate.invited', { prospect_id: prospect.id, brand_id, by_member_id: /^tm_/ }],
    ['affiliate.stage_changed', { from: 'found', to: 'contacted', reason: 'message_sent' }],
  ]);
  const other = await caller.post(`${v1}/prospects`, {
    brand_id,
    channel: 'website',
    key: 'own.com',
    email: 'b@own.example.com',
  });
  await caller.post(`${v1}/prospects/${other.id}/invite`, {
    ...{ ...asked, subject: 'Join us', text: 'See {{ join_url }} today.' },
  });
  t.match((await caller.get(`${v1}/prospects/${other.id}/messages`)).data, [
    { subject: 'Join us', body_text: /^See https:\/\/join\.example\.com\/\S+rail_invitation=[0-9a-f]{32} today\.$/ },
  ]);
});

t.test('keeps what a person wrote while its inbox is disconnected, and cancels it when that is deleted', async (t) => {
  const outreach = await openOutreach(rail, mailbox);
  const { caller, brand_id, inbox_id } = outreach;
  const email = 'ada@waits.example.com';
  sink.script.set(email, { rcpt: async () => void (await caller.post(`${v1}/inboxes/${inbox_id}/disconnect`)) });
  const prospect = await caller.post(`${v1}/prospects`, { brand_id, channel: 'website', key: 'waits.com', email });
  const asked = { via: 'email', inbox_id, join_url: 'https://join.example.com/' };
  await caller.post(`${v1}/prospects/${prospect.id}/invite`, asked);
  const messages = async () => (await caller.get(`${v1}/prospects/${prospect.id}/messages`)).data;
  const tried = sql`select from recruitment.message where prospect_id = ${prospect.id} and attempts = 1 and state <> 'sending'`;
  await eventually(async () => (await rail.query(tried)).length === 1, 'the email to be held before its final dot');
  t.match(await messages(), [{ state: 'planned' }]);
  await caller.delete(`${v1}/inboxes/${inbox_id}`);
  t.match(await messages(), [{ state: 'cancelled' }]);
});

t.test('exports the mails of a prospect, and keeps none of their texts once erased', async (t) => {
  const outreach = await openOutreach(rail);
  const { caller } = outreach;
  const one = await mail(rail, outreach);
  const reply = await replyTo(rail, outreach, one, one.email, { needs_review: true, text: 'I am Ada of Analytical.' });
  const exported = await caller.get(`${v1}/prospects/${one.prospect_id}/export`);
  t.match(exported, {
    sequences: [{ id: one.sequence_id }],
    threads: [{ id: one.thread_id }],
    messages: [
      { id: one.message_id, body_text: 'Hi' },
      { id: reply, body_text: 'I am Ada of Analytical.' },
    ],
  });
  t.match((await caller.get(`${v1}/prospects/${one.prospect_id}?include[]=stats`)).stats, { sent: 1, replies: 1 });
  const waiting = newId('fms');
  await rail.query(sql`
    insert into recruitment.message (organization_id, id, thread_id, brand_id, prospect_id, inbox_id, direction, purpose, state, subject, body_text,
      rfc_message_id)
    select organization_id, ${waiting}, thread_id, brand_id, prospect_id, inbox_id, 'outbound', 'answer', 'planned', 'Re: Hello', 'Dear Ada', ${waiting}
    from recruitment.message where id = ${one.message_id}`);
  await caller.delete(`${v1}/prospects/${one.prospect_id}`);
  const tables = ['message', 'thread', 'sequence'] as const;
  for (const table of tables) {
    const rows = await rail.query<{ row: object }>(sql`
      select to_jsonb(t) as row from ${raw(`recruitment.${table}`)} t where t.organization_id = ${caller.organization_id}`);
    t.ok(rows.length > 0, `${table} stays`);
    t.notMatch(JSON.stringify(rows), /Ada|ada@|Hello|Hi|their\.example|fea_/, table);
  }
  t.match(await caller.get(`${v1}/messages/${reply}`), {
    ...{ prospect_id: null, subject: null, body_text: null, reply_kind: 'question', needs_review: false },
  });
  t.match(await caller.get(`${v1}/messages/${waiting}`), { state: 'cancelled' });
  t.match(await caller.get(`${v1}/sequences/${one.sequence_id}`), { prospect_id: null, state: 'replied' });
  t.match(await caller.get(`${v1}/threads/${one.thread_id}`), { prospect_id: null, subject: null, messages: 2 });
});

t.test(
  'a corrected kind moves nobody out of agreed or active, and back only where the wrong kind had moved them',
  (t) => {
    const kind = fc.constantFrom(...(Object.keys(reply_kinds) as ReplyKind[]));
    fc.assert(
      fc.property(fc.constantFrom(...stage_names), kind, kind, (stage, before, after) => {
        const to = stageAfterCorrection(stage, { purpose: 'reply', reply_kind: before, confidence: 1 }, after);
        if (stage === 'agreed' || stage === 'active') return to === stage;
        if (after === 'negative' || after === 'angry') return to === 'lost';
        if (after === 'positive' || after === 'question')
          return to === (stage === 'negotiating' ? stage : 'interested');
        const wrongly = { positive: 'interested', question: 'interested', negative: 'lost', angry: 'lost' }[
          before as 'angry'
        ];
        return to === (['found', 'contacted', wrongly].includes(stage) ? 'replied' : stage);
      }),
    );
    t.end();
  },
);
