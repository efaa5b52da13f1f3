import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { answered, openImapServer, openReadOutreach, type ReadOutreach, source } from './read_inbox.ts';

const rail = await startRail();
const v1 = '/recruitment/v1';

/** The events of a prospect, without those of adding it, in their order. */
const eventsOf = ({ receiver }: ReadOutreach, prospect_id: string): Json[] =>
  receiver.received
    .map(({ body }) => body)
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
t.test('tells of a reply, its kind and its stage, and ends the sequence', async (t) => {
  const outreach = await openReadOutreach(rail, await openImapServer());
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
  const outreach = await openReadOutreach(rail, await openImapServer());
  const { server, user } = outreach;
  server.deliver(
    user,
    source({ From: 'friend@private.example.com', 'Message-ID': '<1@private.example.com>' }, 'Lunch?'),
  );
  server.deliver(user, 'no mail at all');
  const uid = server.deliver(user, '');
  await readUpTo(outreach, uid);
  t.equal(await messagesIn(outreach), 0);
});
