/** An inbox as a lane, and the campaigns that send from it: read for a claim. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { dayIn, nextMidnight } from '../campaigns/local_time.ts';
import { isOpen } from '../campaigns/opening.ts';
import type { Schedule } from '../campaigns/schedule.ts';
import { knownZone } from '../campaigns/zone.ts';
import { dailyLimit } from '../inboxes/limits.ts';
import { included } from '../plan/limits.ts';
import { planName } from '../plan/plan.ts';

export interface Lane {
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
export async function lockLanes(tx: Tx, inbox_ids: string[]): Promise<Lane[]> {
  const [locked, lanes] = await Promise.all([
    tx.all<{ id: string }>(sql`
      select t.id from recruitment.inbox t
      where ${tenant(tx)} and t.id = any(${inbox_ids}) and (t.status = 'connected' and t.deleted_at is null or ${is_left_behind})
      order by t.id
      for no key update skip locked`),
    readLanes(tx, inbox_ids),
  ]);
  const ids = new Set(locked.map(({ id }) => id));
  return lanes.filter(({ id }) => ids.has(id));
}

/** Reads what the lock before it protects: a statement of its own, so that it sees what was committed until then. */
const readLanes = (tx: Tx, inbox_ids: string[]): Promise<Lane[]> =>
  tx.all<Lane>(sql`
    select t.id, t.email, t.from_name, t.daily_limit, t.ramp, t.min_gap_s, t.max_gap_s, local.zone as timezone, t.deleted_at is not null as is_deleted,
      greatest(t.next_slot_at, t.waits_until) as free_at, local.day::text as day, coalesce(d.sent, 0) as sent_today,
      case when t.ramp is null then 0 else (
        select count(*)::integer from recruitment.inbox_day e
        where e.organization_id = t.organization_id and e.inbox_id = t.id and e.day < local.day and e.sent > 0
      ) end as days_that_sent,
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
    cross join lateral (select own.zone, (${tx.now}::timestamptz at time zone own.zone)::date as day) as local
    left join recruitment.inbox_day d on d.organization_id = t.organization_id and d.inbox_id = t.id and d.day = local.day
    where ${tenant(tx)} and t.id = any(${inbox_ids})`);

/** Until when a lane may send nothing of campaigns; undefined: it may. */
export function heldUntil(lane: Lane, now: Date): { until: Date; reason: 'gap' | 'cap' } | undefined {
  if (lane.free_at !== null && new Date(lane.free_at) > now) return { until: new Date(lane.free_at), reason: 'gap' };
  if (lane.sent_today < dailyLimit(lane, lane.days_that_sent)) return undefined;
  return { until: nextMidnight(knownZone(lane.timezone), now), reason: 'cap' };
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

/** Whether anybody can be sent an email of it now. */
export const canBeOpen = ({ schedule, zone }: Sending, now: Date): boolean =>
  schedule.timezone === 'recipient' || isOpen(schedule, zone, now);

/** How many first emails of it there can be today. */
export const newLeft = ({ daily_new_limit, begun }: Sending): number =>
  daily_new_limit === null ? Number.POSITIVE_INFINITY : Math.max(0, daily_new_limit - begun);

/** What the plan allows: emails of campaigns today (UTC), and how many there can be in a day. Null: any number. */
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
