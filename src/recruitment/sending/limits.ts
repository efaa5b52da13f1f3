/**
 * The limits that hold the emails of a queue back, read for a claim: its gap and cap, the limits of its campaigns and of the plan. An email counts towards them
 * when it is claimed, and is given back when it turns out that it was not sent: so no number of workers passes a limit.
 */
import sql, { type Sql } from 'sql-template-tag';
import { LostRace } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Schedule } from '../campaigns/window.ts';
import { dayIn, isOpen, knownZone, nextMidnight } from '../campaigns/window.ts';
import { dailyLimit, daysThatSent } from '../inboxes/inbox.ts';
import { included } from '../plan/limits.ts';
import { planName } from '../plan/plan.ts';

export interface Queue {
  id: string;
  email: string;
  from_name: string;
  daily_limit: number;
  ramp: { start: number; step: number } | null;
  min_gap_s: number;
  max_gap_s: number;
  timezone: string;
  /** It is deleted, and a worker has died amid an email of it. */
  is_deleted: boolean;
  /** The time from which its sent emails are to be looked for first: see `look_back.ts`. Null: none are. */
  looks_back_to: string | null;
  /** The earliest time of its next email. */
  free_at: string | null;
  /** Today in its zone. */
  day: string;
  sent_today: number;
  days_that_sent: number;
  /** The message that is being sent from it. */
  sending: { id: string; phase: 'claimed' | 'data'; claimed_by: string | null; sequence_id: string | null } | null;
  /** The first of those emails outside of campaigns that wait for it. */
  planned: string | null;
}

const is_left_behind = sql`t.deleted_at is not null and exists (
  select from recruitment.message m where m.organization_id = t.organization_id and m.inbox_id = t.id and m.state = 'sending')`;

/** Locks those of the inboxes that are connected, or deleted amid an email, and that nobody else has locked. */
export async function lockQueues(tx: Tx, inbox_ids: string[]): Promise<Queue[]> {
  const [locked, queues] = await Promise.all([
    tx.all<{ id: string }>(sql`
      select t.id from recruitment.inbox t
      where ${tenant(tx)} and t.id = any(${inbox_ids}) and (t.status = 'connected' and t.deleted_at is null or ${is_left_behind})
      order by t.id
      for no key update skip locked`),
    readQueues(tx, inbox_ids),
  ]);
  const ids = new Set(locked.map(({ id }) => id));
  return queues.filter(({ id }) => ids.has(id));
}

/** Reads what the lock before it protects: a statement of its own, so that it sees what was committed until then. */
const readQueues = (tx: Tx, inbox_ids: string[]): Promise<Queue[]> =>
  tx.all<Queue>(sql`
    select t.id, t.email, t.from_name, t.daily_limit, t.ramp, t.min_gap_s, t.max_gap_s, local.zone as timezone, t.deleted_at is not null as is_deleted,
      t.looks_back_to,
      greatest(t.next_slot_at, t.waits_until) as free_at, local.day::text as day, coalesce(d.sent, 0) as sent_today,
      ${daysThatSent(sql`local.day`)} as days_that_sent,
      (
        select json_build_object('id', m.id, 'phase', m.phase, 'claimed_by', m.claimed_by, 'sequence_id', m.sequence_id)
        from recruitment.message m
        where m.organization_id = t.organization_id and m.inbox_id = t.id and m.state = 'sending'
      ) as sending,
      (
        select m.id from recruitment.message m
        where m.organization_id = t.organization_id and m.inbox_id = t.id and m.state = 'planned' and m.sequence_id is null
          and (m.due_at is null or m.due_at <= ${tx.now}::timestamptz)
        order by m.id
        limit 1
      ) as planned
    from recruitment.inbox t
    cross join lateral (select core.zone(t.timezone) as zone) as own
    -- Worked out first: behind row-level security no index is used for what a function gives.
    cross join lateral (select own.zone, (${tx.now}::timestamptz at time zone own.zone)::date as day offset 0) as local
    left join recruitment.inbox_day d on d.organization_id = t.organization_id and d.inbox_id = t.id and d.day = local.day
    where ${tenant(tx)} and t.id = any(${inbox_ids})`);

/** The time until which a queue may send nothing of campaigns; undefined: it may. */
export function heldUntil(queue: Queue, now: Date): { until: Date; reason: 'gap' | 'cap' } | undefined {
  if (queue.free_at !== null && new Date(queue.free_at) > now) return { until: new Date(queue.free_at), reason: 'gap' };
  if (queue.sent_today < dailyLimit(queue, queue.days_that_sent)) return undefined;
  return { until: nextMidnight(knownZone(queue.timezone), now), reason: 'cap' };
}

/** A campaign as far as its limits go. */
export interface Sending {
  id: string;
  schedule: Schedule;
  daily_new_limit: number | null;
  default_timezone: string;
  steps: number;
  begun: number;
  /** Today in its zone: the brand's, where the schedule is by each recipient. */
  day: string;
  zone: string;
}

/** The campaigns of the organization that send. */
export async function sendingCampaigns(tx: Tx, now: Date): Promise<Sending[]> {
  const zone = sql`core.zone(case when c.schedule ->> 'timezone' = 'recipient' then b.default_timezone else c.schedule ->> 'timezone' end)`;
  const rows = await tx.all<Omit<Sending, 'day'>>(sql`
    select c.id, c.schedule, c.daily_new_limit, b.default_timezone, jsonb_array_length(c.steps) as steps, ${zone} as zone,
      coalesce((
        select d.begun from recruitment.campaign_day d
        where d.organization_id = c.organization_id and d.campaign_id = c.id and d.day = (${tx.now}::timestamptz at time zone ${zone})::date
      ), 0) as begun
    from recruitment.campaign c
    join recruitment.brand b on b.organization_id = c.organization_id and b.id = c.brand_id
    where c.organization_id = ${tx.organization_id} and c.state = 'sending' and not c.is_unscheduling and b.deleted_at is null`);
  return rows.map((row) => ({ ...row, zone: knownZone(row.zone), day: dayIn(knownZone(row.zone), now) }));
}

/** Returns whether anybody can be sent an email of it now. */
export const canBeOpen = ({ schedule, zone }: Sending, now: Date): boolean =>
  schedule.timezone === 'recipient' || isOpen(schedule, zone, now);

/** The number of first emails of it that there can be today. */
export const newLeft = ({ daily_new_limit, begun }: Sending): number =>
  daily_new_limit === null ? Number.POSITIVE_INFINITY : Math.max(0, daily_new_limit - begun);

/** Reads what the plan still allows: emails of campaigns today (UTC), and how many there can be in a day. Null: any number. */
export async function planLeft(tx: Tx): Promise<{ left: number; daily_sends: number | null }> {
  const [name, day] = await Promise.all([
    planName(tx),
    tx.maybe<{ sent: number }>(sql`
      select t.sent from recruitment.organization_day t
      where ${tenant(tx)} and t.day = (${tx.now}::timestamptz at time zone 'UTC')::date`),
  ]);
  const { features, limits } = included[name];
  if (!features.outreach) return { left: 0, daily_sends: 0 };
  const { daily_sends } = limits;
  return {
    daily_sends,
    left: daily_sends === null ? Number.POSITIVE_INFINITY : Math.max(0, daily_sends - (day?.sent ?? 0)),
  };
}

/** The counters that an email counts towards. */
export interface Counted {
  inbox_id: string;
  /** The day of the inbox. */
  day: string;
  /** Null: an email outside of campaigns. */
  campaign: {
    campaign_id: string;
    /** The day of the campaign. */
    day: string;
    is_first: boolean;
    daily_new_limit: number | null;
    /** In hexadecimal. Null: of no company. */
    company: string | null;
    max_per_domain_day: number;
    /** The limit of the plan for a day (UTC). */
    daily_sends: number | null;
  } | null;
}

/**
 * Counts emails. Each statement waits for others that count the same, and counts nothing over a limit.
 * @throws LostRace where others have reached a limit since it was read: the transaction is run again, and finds it reached
 */
export async function reserve(tx: Tx, emails: Counted[]): Promise<void> {
  const inboxes = summed(emails, ({ inbox_id, day }) => ({ inbox_id, day }));
  const of_campaigns = emails.flatMap(({ campaign }) => (campaign ? [campaign] : []));
  const firsts = summed(
    of_campaigns.filter(({ is_first }) => is_first),
    ({ campaign_id, day, daily_new_limit }) => ({ campaign_id, day, most: daily_new_limit }),
  );
  const companies = summed(
    of_campaigns.filter(({ company }) => company !== null),
    ({ campaign_id, day, company, max_per_domain_day }) => ({ campaign_id, day, company, most: max_per_domain_day }),
  );
  const [daily_sends] = of_campaigns.flatMap(({ daily_sends: most }) => (most === null ? [] : [most]));
  const counted = await Promise.all([
    inboxes.length === 0 ? [] : tx.all(inboxDays(tx, inboxes)),
    firsts.length === 0 ? [] : tx.all(campaignDays(tx, firsts)),
    companies.length === 0 ? [] : tx.all(companyDays(tx, companies)),
    daily_sends === undefined ? [undefined] : tx.all(organizationDay(tx, of_campaigns.length, daily_sends)),
  ]);
  const wanted = [inboxes.length, firsts.length, companies.length, 1];
  if (counted.some((rows, nth) => rows.length < (wanted[nth] as number)))
    throw new LostRace('A limit was reached by another worker.');
}

const inboxDays = (tx: Tx, rows: object[]): Sql => sql`
  insert into recruitment.inbox_day as d (organization_id, inbox_id, day, sent)
  select ${tx.organization_id}, g.inbox_id, g.day, g.count
  from ${given(rows, sql`inbox_id text, day date, count integer`)}
  order by g.inbox_id
  on conflict (organization_id, inbox_id, day) do update set sent = d.sent + excluded.sent
  returning 1`;

/** The limit is in the source again, since an excluded row has no more than the table's columns. */
const campaignDays = (tx: Tx, rows: object[]): Sql => sql`
  with g as materialized (
    select * from ${given(rows, sql`campaign_id text, day date, most integer, count integer`)}
    where g.most is null or g.count <= g.most
    order by g.campaign_id
  )
  insert into recruitment.campaign_day as d (organization_id, campaign_id, day, begun)
  select ${tx.organization_id}, g.campaign_id, g.day, g.count from g
  on conflict (organization_id, campaign_id, day) do update set begun = d.begun + excluded.begun
  where not exists (
    select from g
    where g.campaign_id = d.campaign_id and g.day = d.day and d.begun + excluded.begun > g.most
  )
  returning 1`;

const companyDays = (tx: Tx, rows: object[]): Sql => sql`
  with g as materialized (
    select * from ${given(rows, sql`campaign_id text, day date, company text, most integer, count integer`)}
    where g.count <= g.most
    order by g.campaign_id, g.company
  )
  insert into recruitment.company_day as d (organization_id, campaign_id, day, company_hmac, sent)
  select ${tx.organization_id}, g.campaign_id, g.day, decode(g.company, 'hex'), g.count from g
  on conflict (organization_id, campaign_id, day, company_hmac) do update set sent = d.sent + excluded.sent
  where not exists (
    select from g
    where g.campaign_id = d.campaign_id and g.day = d.day and decode(g.company, 'hex') = d.company_hmac and d.sent + excluded.sent > g.most
  )
  returning 1`;

const organizationDay = (tx: Tx, count: number, most: number): Sql => sql`
  insert into recruitment.organization_day as d (organization_id, day, sent)
  select ${tx.organization_id}, (${tx.now}::timestamptz at time zone 'UTC')::date, ${count}
  where ${count}::integer <= ${most}::integer
  on conflict (organization_id, day) do update set sent = d.sent + excluded.sent
  where d.sent + excluded.sent <= ${most}
  returning 1`;

const given = (rows: object[], columns: Sql): Sql =>
  sql`json_to_recordset(${JSON.stringify(rows)}::json) as g (${columns})`;

/** One row for each key, with how many there are. */
function summed<Item, Key extends object>(items: Item[], keyOf: (item: Item) => Key): (Key & { count: number })[] {
  const sums = new Map<string, Key & { count: number }>();
  for (const item of items) {
    const key = keyOf(item);
    const name = JSON.stringify(key);
    const sum = sums.get(name);
    if (sum) sum.count++;
    else sums.set(name, { ...key, count: 1 });
  }
  return [...sums.values()];
}

/**
 * Gives back what messages count towards, and takes the days off them: they were not sent. The caller holds their rows, and has not yet
 * changed what they are counted on.
 */
export async function giveBack(tx: Tx, message_ids: string[]): Promise<void> {
  if (message_ids.length === 0) return;
  const messages = sql`recruitment.message m where m.organization_id = ${tx.organization_id} and m.id = any(${message_ids})`;
  await Promise.all([
    tx.all(sql`
      update recruitment.inbox_day d set sent = d.sent - g.count
      from (select m.inbox_id, m.counted_on as day, count(*)::integer as count from ${messages} and m.counted_on is not null group by 1, 2 order by 1, 2) as g
      where d.organization_id = ${tx.organization_id} and d.inbox_id = g.inbox_id and d.day = g.day`),
    tx.all(sql`
      update recruitment.campaign_day d set begun = d.begun - g.count
      from (
        select m.campaign_id, m.campaign_counted_on as day, count(*)::integer as count from ${messages} and m.campaign_counted_on is not null
          and m.step_index = 0
        group by 1, 2 order by 1, 2
      ) as g
      where d.organization_id = ${tx.organization_id} and d.campaign_id = g.campaign_id and d.day = g.day`),
    tx.all(sql`
      update recruitment.company_day d set sent = d.sent - g.count
      from (
        select s.campaign_id, m.campaign_counted_on as day, s.company_hmac, count(*)::integer as count
        from recruitment.message m
        join recruitment.sequence s on s.organization_id = m.organization_id and s.id = m.sequence_id
        where m.organization_id = ${tx.organization_id} and m.id = any(${message_ids}) and m.campaign_counted_on is not null
          and s.company_hmac is not null
        group by 1, 2, 3 order by 1, 2, 3
      ) as g
      where d.organization_id = ${tx.organization_id} and d.campaign_id = g.campaign_id and d.day = g.day and d.company_hmac = g.company_hmac`),
    tx.all(sql`
      update recruitment.organization_day d set sent = d.sent - g.count
      from (
        select m.organization_counted_on as day, count(*)::integer as count from ${messages} and m.organization_counted_on is not null group by 1
      ) as g
      where d.organization_id = ${tx.organization_id} and d.day = g.day`),
    tx.all(sql`
      update recruitment.message m set counted_on = null, campaign_counted_on = null, organization_counted_on = null
      where m.organization_id = ${tx.organization_id} and m.id = any(${message_ids})`),
  ]);
}
