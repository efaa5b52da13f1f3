/** Tests the effect of outreach's limits on the times of emails, as people, the sweep and metrics see it. */
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import type { Schedule } from '../../../src/recruitment/campaigns/window.ts';
import { nextMidnight, nextOpening } from '../../../src/recruitment/campaigns/window.ts';
import { changePlan } from '../../../src/recruitment/change_plan.ts';
import { outreachBacklog } from '../../../src/recruitment/sending/backlog.ts';
import { claim } from '../../../src/recruitment/sending/claim.ts';
import { wakeQueues } from '../../../src/recruitment/sending/queues.ts';
import { awayFromMidnight, type Json, sql, startRail } from '../../harness.ts';
import { always, openSender, type Sender } from './outreach.ts';

// Days are counted here that no email was sent on.
const rail = await startRail({ worker: false, audit: false });
const { vault, base_url } = rail.services;
const server = { host: 'localhost', port: 465, security: 'tls', username: 'grace', password: 'none' };
const mailbox = { smtp: server, imap: server };
const far = ['Pacific/Kiritimati', 'Asia/Kathmandu', 'Europe/Berlin', 'America/New_York', 'Pacific/Pago_Pago', 'UTC'];

t.test('Postgres says of a window what sending does', async (t) => {
  // Far from the nights in which clocks change.
  const days = [Date.UTC(2026, 0, 10), Date.UTC(2026, 6, 1)];
  const asked = Array.from({ length: 600 }, (_, nth) => {
    const hour = (nth * 7) % 23;
    const [from, to] = [hour, hour + 1 + (nth % (24 - hour))].map((one) => `${`${one}`.padStart(2, '0')}:00`);
    return {
      nth,
      zone: far[nth % far.length] as string,
      at: new Date((days[nth % 2] as number) + nth * 1_234_567).toISOString(),
      schedule: { timezone: 'UTC', days: [1, 2, 3, 4, 5, 6, 7].filter((day) => nth % (day + 1) !== 0), from, to },
    };
  }).filter(({ schedule }) => schedule.days.length > 0);
  const said = await rail.query<{ nth: number; opening: string }>(sql`
    select g.nth, recruitment.next_opening(g.schedule, g.zone, g.at) as opening
    from json_to_recordset(${JSON.stringify(asked)}::json) as g (nth integer, zone text, at timestamptz, schedule jsonb)
    order by g.nth`);
  for (const [place, { schedule, zone, at }] of asked.entries()) {
    const opening = nextOpening(schedule as Schedule, zone, new Date(at)).toISOString();
    if (new Date(said[place]?.opening as string).toISOString() !== opening)
      t.equal(said[place]?.opening, opening, JSON.stringify({ schedule, zone, at }));
  }
  t.equal(said.length, asked.length);
});

const claiming = { worker_id: 'worker_waits', vault, base_url, random: () => 0 };
const sweep = () => transaction(rail.store, { organization_id: null, request_id: null }, (tx) => wakeQueues(tx));
const claimFrom = ({ organization_id, inbox_ids }: Sender) =>
  transaction(rail.store, { organization_id, request_id: null }, (tx) => claim(tx, inbox_ids.slice(0, 1), claiming));
const queuesOf = ({ campaign_id }: Sender): Promise<Json[]> =>
  rail.query(sql`select l.* from recruitment.outreach_queue l where l.campaign_id = ${campaign_id}`);
const jobsOf = ({ inbox_ids }: Sender): Promise<Json[]> =>
  rail.query(sql`
    select j.key, j.run_at > j.created_at + interval '5 seconds' as is_later from graphile_worker.jobs j
    where j.key = any(${inbox_ids.flatMap((id) => [`outreach:${id}`, `outreach_now:${id}`])})`);

/** In which nothing is open for another hour, whatever the time. */
const closed = (): { schedule: Schedule; opening: Date } => {
  const now = new Date();
  const hour = (now.getUTCHours() + 3) % 24;
  const from = `${`${hour}`.padStart(2, '0')}:00`;
  const schedule = { ...always, from, to: `${from.slice(0, 3)}30` } as Schedule;
  return { schedule, opening: nextOpening(schedule, 'UTC', now) };
};

t.test('a sequence is due when the limit that holds its email is over', async (t) => {
  await awayFromMidnight();
  const caller = await rail.organization();
  const { organization_id } = caller;
  const sender = await openSender(rail, organization_id, { mailbox, inbox: { timezone: 'Asia/Kathmandu' } });
  const { campaign_id, inbox_ids, sequence_ids } = sender;
  const dueAt = async () => (await caller.get(`/recruitment/v1/sequences/${sequence_ids[0]}`)).due_at;
  const holds = async (reason: string | null, until: Date | string | null) => {
    const [queue] = await queuesOf(sender);
    t.equal(queue?.waits_for, reason);
    if (until === null) return;
    t.same(new Date(queue?.goes_at), new Date(until), `${reason}`);
    t.equal(await dueAt(), new Date(until).toISOString(), `${reason}`);
    t.ok(new Date(await dueAt()) > new Date());
  };
  const set = (values: Json) =>
    rail.query(sql`
      update recruitment.inbox i set next_slot_at = g.next_slot_at, waits_until = g.waits_until, rests_until = g.rests_until, rests_for = g.rests_for
      from json_to_record(${JSON.stringify(values)}::json) as g (next_slot_at timestamptz, waits_until timestamptz, rests_until timestamptz, rests_for text)
      where i.id = ${inbox_ids[0]}`);
  await holds(null, null);
  const in_an_hour = new Date(Date.now() + 3_600_000);
  await set({ next_slot_at: in_an_hour });
  await holds('gap', in_an_hour);
  await set({ waits_until: in_an_hour });
  await holds('provider', in_an_hour);
  await set({});

  const { schedule, opening } = closed();
  const change = (values: Json) =>
    rail.query(sql`
      update recruitment.campaign c set schedule = coalesce(g.schedule, c.schedule), daily_new_limit = g.daily_new_limit
      from json_to_record(${JSON.stringify(values)}::json) as g (schedule jsonb, daily_new_limit integer) where c.id = ${campaign_id}`);
  await change({ schedule });
  await holds('window', opening);
  await change({ schedule: always, daily_new_limit: 1 });
  await rail.query(sql`
    insert into recruitment.campaign_day (organization_id, campaign_id, day, begun)
    values (${organization_id}, ${campaign_id}, (now() at time zone 'UTC')::date, 1)`);
  await holds('daily_new_limit', nextMidnight('UTC', new Date()));
  await change({});
  await rail.query(sql`
    insert into recruitment.company_day (organization_id, campaign_id, day, company_hmac, sent)
    select s.organization_id, s.campaign_id, (now() at time zone 'UTC')::date, s.company_hmac, 3
    from recruitment.sequence s where s.id = ${sequence_ids[0]}`);
  await claimFrom(sender);
  await holds('company_limit', nextMidnight('UTC', new Date()));
});

t.test('an inbox at its cap rests until its midnight, and looks again when that is raised', async (t) => {
  const zone = 'Asia/Kathmandu';
  await awayFromMidnight(zone);
  const caller = await rail.organization();
  const sender = await openSender(rail, caller.organization_id, {
    ...{ mailbox, prospects: 2, inbox: { timezone: zone, daily_limit: 1 } },
  });
  const [inbox_id] = sender.inbox_ids;
  await rail.query(sql`
    insert into recruitment.inbox_day (organization_id, inbox_id, day, sent)
    values (${caller.organization_id}, ${inbox_id}, (now() at time zone ${zone})::date, 1)`);
  const midnight = nextMidnight(zone, new Date()).toISOString();
  t.match(await claimFrom(sender), [{ is: 'rest', reason: 'cap', until: midnight }]);
  t.match(await queuesOf(sender), [{ waits_for: 'cap' }]);
  const { data } = await caller.get(`/recruitment/v1/sequences?campaign_id=${sender.campaign_id}`);
  t.same(
    data.map(({ due_at }: Json) => due_at),
    [midnight, midnight],
  );
  await sweep();
  t.same(await jobsOf(sender), [], 'nobody looks before');
  await transaction(rail.store, { organization_id: null, request_id: null }, async (tx) => {
    await tx.all(sql`update recruitment.inbox set rests_until = now() + interval '40 seconds' where id = ${inbox_id}`);
    await wakeQueues(tx);
  });
  t.same(await jobsOf(sender), [{ key: `outreach:${inbox_id}`, is_later: true }], 'and at that moment');
  await rail.query(sql`select graphile_worker.remove_job(${`outreach:${inbox_id}`})`);

  await caller.patch(`/recruitment/v1/inboxes/${inbox_id}`, { daily_limit: 50 });
  t.same(await jobsOf(sender), [{ key: `outreach_now:${inbox_id}`, is_later: false }]);
  t.match(await claimFrom(sender), [{ is: 'send' }]);
});

t.test('a limit of the plan holds until midnight in UTC, and ends with the plan', async (t) => {
  await awayFromMidnight();
  const caller = await rail.organization();
  const { organization_id } = caller;
  const plan = (name: 'grow' | 'enterprise') =>
    transaction(rail.store, { organization_id, request_id: null }, (tx) => changePlan(tx, name));
  const sender = await openSender(rail, organization_id, { mailbox });
  await plan('grow');
  await rail.query(sql`
    insert into recruitment.organization_day (organization_id, day, sent) values (${organization_id}, (now() at time zone 'UTC')::date, 500)`);
  t.match(await claimFrom(sender), [
    { is: 'rest', reason: 'plan', until: nextMidnight('UTC', new Date()).toISOString() },
  ]);
  t.match(await queuesOf(sender), [{ waits_for: 'plan' }]);
  await plan('enterprise');
  t.match(await jobsOf(sender), [{ key: `outreach_now:${sender.inbox_ids[0]}` }]);
  t.match(await claimFrom(sender), [{ is: 'send' }]);
});

t.test('shows what waits, and since when', async (t) => {
  await awayFromMidnight();
  const before = await measured();
  const caller = await rail.organization();
  const { organization_id } = caller;
  const sender = await openSender(rail, organization_id, { mailbox, inboxes: 4, prospects: 8 });
  const [due, held, unread, disconnected] = sender.inbox_ids;
  await rail.query(sql`
    update recruitment.sequence set due_at = now() - interval '10 minutes' where organization_id = ${organization_id}`);
  await rail.query(
    sql`update recruitment.inbox set waits_until = now() + interval '1 hour' where id = any(${[held, unread]})`,
  );
  await rail.query(sql`
    update recruitment.inbox set imap_last_seen_at = now() - interval '1 hour', connected_at = now() - interval '2 hours' where id = ${unread}`);
  await rail.query(sql`
    update recruitment.inbox set status = 'disconnected', disconnected_reason = 'auth_failed', disconnected_at = now() where id = ${disconnected}`);
  const since = (name: string) => (after[name] ?? 0) - (before[name] ?? 0);
  // The window of a day opens at midnight, and nothing is due before.
  const open_s = Math.floor(Date.now() / 1_000) % 86_400;
  const after = await measured();
  t.equal(since('rail_outreach_emails due'), 2);
  t.equal(since('rail_outreach_emails held'), 4);
  t.equal(since('rail_inboxes connected'), 3);
  t.equal(since('rail_inboxes auth_failed'), 1);
  t.ok((after['rail_outreach_oldest_seconds due'] ?? 0) >= Math.min(600, open_s));
  t.ok((after['rail_inbox_unread_seconds '] ?? 0) >= 3_600);
  await rail.query(sql`update recruitment.inbox set rests_until = now() + interval '1 hour' where id = ${due}`);
  t.equal((await measured())['rail_outreach_emails held'], (after['rail_outreach_emails held'] ?? 0) + 2);
});

async function measured(): Promise<Record<string, number>> {
  const read = await outreachBacklog.read(rail.store.database);
  const shown = read.map(({ gauge, labels, value }) => [`${nameOf(gauge)} ${Object.values(labels).join()}`, value]);
  return Object.fromEntries(shown);
}

/** The registry alone shows names. */
const nameOf = (gauge: (typeof outreachBacklog.gauges)[number]): string =>
  ['rail_outreach_emails', 'rail_outreach_oldest_seconds', 'rail_inboxes', 'rail_inbox_unread_seconds'][
    outreachBacklog.gauges.indexOf(gauge)
  ] as string;
