/**
 * Gives sequences what they need to be sent: an address, an inbox and a time. A job does so for 1,000 at a time: at the launch, when prospects are added to a
 * campaign that sends, and when it is resumed.
 *
 * - If an open sequence has the address, this one fails `in_another_campaign`: another address of the same person is not tried.
 * - Parts of an organization are scheduled one after another (an advisory lock behind that of suppressions), so that no race is left for the unique index.
 * - The inbox is the connected one with the fewest open sequences for its daily limit, up to those of a month. It sticks once the first email is being sent.
 * - `due_at` is the first opening of the schedule; caps, gaps and `daily_new_limit` are checked when it is sent. After the last email it is `reply_wait_days`
 *   times 24 hours behind it. Without a connected inbox nothing is scheduled.
 */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { endOf, type Reason } from '../contact/suppression.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { type End, endEach } from '../sequences/stop.ts';
import { wakeInbox } from '../sequences/wake_inbox.ts';
import { bestAddresses, type ChosenAddress, type Reached } from './best_address.ts';
import { type Campaign, campaigns } from './campaign.ts';
import { type FailedSequence, failSequences, finishCampaigns } from './end.ts';
import { has_begun, requestSchedule } from './reschedule.ts';
import { day_ms, dueAfter, nextOpening, zoneOf } from './window.ts';

/** Sequences of one transaction, for whose end marks of Do not contact wait. */
const most = 1000;

interface Payload {
  organization_id: string;
  campaign_id: string;
}

/** The job: ends when nothing is left to schedule. A worker that is killed leaves a part that is done, and the sweep begins anew behind it. */
export async function scheduleSequences(payload: Payload, context: TaskContext): Promise<void> {
  const { store, services, stopping } = context;
  const opening = { organization_id: payload.organization_id, request_id: null };
  let loads: InboxLoads | undefined;
  let failed = 0;
  for (let count = most; count === most && !stopping.aborted; ) {
    const done = await transaction(store, opening, async (tx) => {
      const step = await scheduleSome(tx, services.vault, payload.campaign_id, loads);
      if (step.count === most && stopping.aborted) requestSchedule(tx, payload.campaign_id);
      return step;
    });
    ({ count, loads } = done);
    failed += done.failed;
  }
  if (failed > 0) await transaction(store, opening, (tx) => finishCampaigns(tx, [payload.campaign_id]));
}

interface Unscheduled {
  id: string;
  prospect_id: string;
  has_begun: boolean;
  inbox_id: string | null;
  next_step: number;
  last_sent_at: string | null;
}

interface Scheduled extends Partial<ChosenAddress> {
  id: string;
  inbox_id: string;
  due_at: Date;
}

interface Step {
  /** Sequences that were taken up: none where the campaign does not send, or has no connected inbox. */
  count: number;
  failed: number;
  loads: InboxLoads | undefined;
}

async function scheduleSome(tx: Tx, vault: Vault, campaign_id: string, known: InboxLoads | undefined): Promise<Step> {
  await holdSuppressions(tx);
  await lockScheduling(tx);
  const campaign = (await campaigns.find(
    tx,
    sql`${tenant(tx)} and t.id = ${campaign_id} and not t.is_unscheduling`,
    sql`for share of t`,
  )) as Campaign | undefined;
  if (campaign?.state !== 'sending') return { count: 0, failed: 0, loads: known };
  const rows = await unscheduledOf(tx, campaign_id);
  const loads = known ?? (await loadsOf(tx, campaign.inbox_ids));
  const reached = await bestAddresses(tx, vault, prospectsOf(rows), campaign.allow_risky);
  const begun = rows.filter((row) => row.has_begun);
  const waiting = loads.isEmpty ? [] : rows.filter((row) => !row.has_begun);
  const { failed: unfit, addresses } = await chooseAddresses(tx, waiting, reached);
  const over = await beingBarred(tx, unfit);
  const failed = unfit.filter(({ id }) => !over.some((one) => one.id === id));
  const timezone = await brandTimezone(tx, campaign.brand_id);
  const now = new Date(tx.now);
  const firstOf = firstDueAt(campaign, timezone, now);
  const scheduled = [
    ...begun.map((row) => {
      const prospect = reached.get(row.prospect_id) as Reached;
      const last_sent_at = row.last_sent_at === null ? null : new Date(row.last_sent_at);
      const due_at = nextDueAt(campaign, timezone, prospect, { ...row, last_sent_at }, now);
      return { id: row.id, inbox_id: row.inbox_id as string, due_at };
    }),
    ...[...addresses].map(([row, address]) => {
      const due_at = firstOf(reached.get(row.prospect_id) as Reached);
      return { id: row.id, inbox_id: loads.next(), due_at, ...address };
    }),
  ];
  await write(tx, scheduled);
  const due = scheduled.filter(({ due_at }) => due_at <= now);
  for (const inbox_id of new Set(due.map((sequence) => sequence.inbox_id))) wakeInbox(tx, inbox_id);
  await failSequences(tx, failed);
  await endEach(tx, over);
  return { count: loads.isEmpty ? 0 : rows.length, failed: unfit.length, loads };
}

/** Sequences of an organization are scheduled one part at a time, so that no two get the same address. */
const lockScheduling = (tx: Tx): Promise<object[]> =>
  tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${`schedule ${tx.organization_id}`}, 0))`);

const unscheduledOf = (tx: Tx, campaign_id: string): Promise<Unscheduled[]> =>
  tx.all(sql`
    select t.id, t.prospect_id, t.inbox_id, t.next_step, t.last_sent_at, ${has_begun} as has_begun
    from recruitment.sequence t
    where ${tenant(tx)} and t.campaign_id = ${campaign_id} and t.open and t.due_at is null
    order by t.id
    limit ${most}
    for no key update of t`);

const prospectsOf = (rows: Unscheduled[]): string[] => rows.map(({ prospect_id }) => prospect_id);

async function brandTimezone(tx: Tx, brand_id: string): Promise<string> {
  const brand = await tx.one<{ default_timezone: string }>(sql`
    select t.default_timezone from recruitment.brand t where ${tenant(tx)} and t.id = ${brand_id}`);
  return brand.default_timezone;
}

/** Decides which sequences get which address, and which fail: "nobody in two campaigns at once". */
async function chooseAddresses(tx: Tx, rows: Unscheduled[], reached: Map<string, Reached>) {
  const failed: FailedSequence[] = [];
  const addresses = new Map<Unscheduled, ChosenAddress>();
  const taken = await takenAddresses(tx, rows, reached);
  for (const row of rows) {
    const { address = null, reason = null } = reached.get(row.prospect_id) ?? {};
    const hmac = address?.address_hmac.toString('hex') ?? '';
    if (!address) failed.push({ id: row.id, reason: reason ?? 'no_address' });
    else if ((taken.get(hmac) ?? row.id) !== row.id) failed.push({ id: row.id, reason: 'in_another_campaign' });
    else {
      addresses.set(row, address);
      taken.set(hmac, row.id);
    }
  }
  return { failed, addresses };
}

/** Finds those whose prospects have an address that an entry has barred whose job is still to end them. */
async function beingBarred(tx: Tx, failed: FailedSequence[]): Promise<{ id: string; end: End }[]> {
  const suppressed = failed.filter(({ reason }) => reason === 'suppressed').map(({ id }) => id);
  if (suppressed.length === 0) return [];
  const barred = await tx.all<{ id: string; reason: Reason }>(sql`
    select distinct on (t.id) t.id, s.reason
    from recruitment.sequence t
    join recruitment.email_address a on a.organization_id = t.organization_id and a.prospect_id = t.prospect_id
    join recruitment.suppression s on s.organization_id = t.organization_id and s.hmac in (a.address_hmac, a.domain_hmac)
    where ${tenant(tx)} and t.id = any(${suppressed}) and s.lifted_at is null and s.refresh_after is not null
    order by t.id, s.id`);
  return barred.map(({ id, reason }) => ({ id, end: endOf(reason) }));
}

/** The open sequence that each of the chosen addresses has. */
async function takenAddresses(
  tx: Tx,
  rows: Unscheduled[],
  reached: Map<string, Reached>,
): Promise<Map<string, string>> {
  const wanted = rows.flatMap(({ prospect_id }) => reached.get(prospect_id)?.address?.address_hmac ?? []);
  const taken = await tx.all<{ id: string; address_hmac: Buffer }>(sql`
    select t.id, t.address_hmac from recruitment.sequence t
    where ${tenant(tx)} and t.open and t.address_hmac = any(${wanted}::bytea[])`);
  return new Map(taken.map(({ id, address_hmac }) => [address_hmac.toString('hex'), id]));
}

async function write(tx: Tx, scheduled: Scheduled[]): Promise<void> {
  if (scheduled.length === 0) return;
  const of = <Field extends keyof Scheduled>(field: Field) => scheduled.map((row) => row[field] ?? null);
  await tx.all(sql`
    update recruitment.sequence t
    set inbox_id = given.inbox_id, due_at = given.due_at,
      email_address_id = coalesce(given.email_address_id, t.email_address_id),
      address_hmac = coalesce(given.address_hmac, t.address_hmac),
      domain_hmac = coalesce(given.domain_hmac, t.domain_hmac),
      company_hmac = case when given.email_address_id is null then t.company_hmac else given.company_hmac end,
      updated_at = ${tx.now}::timestamptz
    from unnest(
      ${of('id')}::text[], ${of('inbox_id')}::text[], ${of('due_at').map((at) => at?.toISOString())}::timestamptz[],
      ${of('email_address_id')}::text[], ${of('address_hmac')}::bytea[], ${of('domain_hmac')}::bytea[], ${of('company_hmac')}::bytea[]
    ) as given (id, inbox_id, due_at, email_address_id, address_hmac, domain_hmac, company_hmac)
    where ${tenant(tx)} and t.id = given.id`);
}

interface Load {
  id: string;
  daily_limit: number;
  open: number;
}

/** The connected inboxes of a campaign, with what they have to send: each sequence gets the one with the least to do for its limit. */
class InboxLoads {
  readonly #loads: Load[];

  constructor(loads: Load[]) {
    this.#loads = loads;
  }

  get isEmpty(): boolean {
    return this.#loads.length === 0;
  }

  /** The inbox for the next sequence. Any of those that have as little to do. */
  next(): string {
    const least = this.#loads.reduce((one, other) => (loadOf(other) < loadOf(one) ? other : one));
    least.open += 1;
    return least.id;
  }
}

const loadOf = ({ open, daily_limit }: Load): number => (open + 1) / daily_limit;

/** An inbox with as many open sequences as it sends in so many days is as full as one with more: no more are counted, and any of them is the next. */
const most_days = 30;

/** @param inbox_ids of a campaign */
async function loadsOf(tx: Tx, inbox_ids: string[]): Promise<InboxLoads> {
  const loads = await tx.all<Load>(sql`
    select i.id, i.daily_limit, (
      select count(*)::integer
      from (
        select from recruitment.sequence s
        where s.organization_id = i.organization_id and s.inbox_id = i.id and s.open and s.due_at is not null
        limit i.daily_limit * ${most_days}
      ) as counted
    ) as open
    from recruitment.inbox i
    where i.organization_id = ${tx.organization_id} and i.id = any(${inbox_ids}) and i.status = 'connected' and i.deleted_at is null
    order by random()`);
  return new InboxLoads(loads);
}

interface Prospect {
  timezone: string | null;
  country_code: string | null;
}

/** The time of the first email to a prospect, from `now` on. Most prospects share a zone: a function of the zone is asked once for each. */
function firstDueAt({ schedule, steps }: Campaign, brand_timezone: string, now: Date): (of: Prospect) => Date {
  const delay_days = steps[0]?.delay_days ?? 0;
  const known = new Map<string, Date>();
  return (prospect) => {
    const zone = zoneOf(schedule, prospect, brand_timezone);
    const due = known.get(zone) ?? dueAfter(schedule, zone, now, delay_days);
    known.set(zone, due);
    return due;
  };
}

/** The time of the next email of a sequence that has begun, or of its end after the last one. Never before `now`. */
function nextDueAt(
  { schedule, steps, reply_wait_days }: Campaign,
  brand_timezone: string,
  prospect: Prospect,
  { next_step, last_sent_at }: { next_step: number; last_sent_at: Date | null },
  now: Date,
): Date {
  const step = steps[next_step];
  if (last_sent_at && !step) return later(now, new Date(last_sent_at.getTime() + reply_wait_days * day_ms));
  const zone = zoneOf(schedule, prospect, brand_timezone);
  const due = last_sent_at && step ? dueAfter(schedule, zone, last_sent_at, step.delay_days) : now;
  return due > now ? due : nextOpening(schedule, zone, now);
}

const later = (one: Date, other: Date): Date => (one > other ? one : other);
