/**
 * Pauses and resumes campaigns. Causes are a set: `user`, `guard`, `plan`, `inbox`. What turns `sending` into `paused` emits `campaign.paused`; a further cause
 * is kept and emits nothing. `pause_reason` is that of the guard, else of the plan, else of the inboxes.
 *
 * - `/resume` ends `user`, `guard` and `plan`, and `inbox` where an inbox is connected; where an inbox is all that is missing it answers 409. It needs a plan
 *   with outreach (402).
 * - A downgrade adds `plan` to paused campaigns too, so that a reconnected inbox does not let them send.
 * - `guard`: too many emails bounced, or a recipient reported spam. Bounces are counted from the launch or the last pause, among emails sent since: dead addresses,
 *   and blocks. A full mailbox or a timeout is no reason to pause. An address that the server refuses counts as sent and bounced. Checked at each bounce, and by
 *   the sweep where the 20th email comes after the second bounce.
 */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { allows, transition } from '../../core/resource/states.ts';
import { Problem } from '../../core/values/problem.ts';
import { base_path } from '../events/base_path.ts';
import { fixes } from '../events/campaigns.ts';
import { event } from '../events/event.ts';
import { requireFeature } from '../plan/plan.ts';
import { wakeInbox } from '../sequences/wake_inbox.ts';
import { type Campaign, campaigns, lockCampaign, type PauseCause, type PauseReason, transitions } from './campaign.ts';
import { requestSchedule } from './reschedule.ts';

export const pauseOperations: Operation[] = [
  operation({
    name: 'campaigns.pause',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/pause`,
    scope: 'campaigns:write',
    summary: 'Pauses a campaign that is sending.',
    doc: 'Emits `campaign.paused`. If the campaign is already paused, the cause `user` is added to `pause_causes`, and no event is emitted.',
    params: idParams,
    reply: campaigns.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const { state } = await lockCampaign(tx, params.id);
      transition(transitions, state, 'pause');
      return pauseCampaign(tx, params.id, 'user', null);
    },
  }),
  operation({
    name: 'campaigns.resume',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/resume`,
    scope: 'campaigns:write',
    summary: 'Resumes a campaign that is paused.',
    doc: 'Removes every cause from `pause_causes` except `inbox`, which is removed once an inbox of the campaign is connected. Emits `campaign.resumed` if no cause is left; otherwise the campaign stays paused. A campaign that is sending stays as it is.',
    params: idParams,
    reply: campaigns.schema,
    errors: ['invalid_state_transition', 'feature_not_in_plan'],
    async run({ tx, params }) {
      const campaign = await lockCampaign(tx, params.id);
      if (campaign.state === 'sending') return campaign;
      transition(transitions, campaign.state, 'resume');
      return resumeCampaign(tx, campaign);
    },
  }),
];

/** Emails that a guard counted since the last pause. */
interface Counted {
  sent: number;
  bounced: number;
}

/**
 * Adds a cause to those of a campaign that sends or is paused. The first one stops it from sending and emits `campaign.paused`; a further one is kept and
 * emits nothing. In other states nothing happens. Locks the campaign.
 * @param reason null: a person pauses it
 */
export async function pauseCampaign(
  tx: Tx,
  campaign_id: string,
  cause: PauseCause,
  reason: PauseReason | null,
  counted: Counted | null = null,
): Promise<Campaign> {
  const before = await lockCampaign(tx, campaign_id);
  if (!allows(transitions, before.state, 'pause') || before.pause_causes.includes(cause)) return before;
  const pause_causes = withCause(before.pause_causes, cause);
  const stops = before.state === 'sending';
  const known = cause === 'guard' ? reason : before.pause_reason;
  const paused = await campaigns.update(tx, campaign_id, {
    ...{ state: 'paused', pause_causes, pause_reason: reasonOf(pause_causes, known) },
    ...(stops
      ? { paused_at: tx.now, counted_since: tx.now, counted_to: null, counted_sent: 0, counted_bounced: 0 }
      : {}),
  });
  if (stops) emitPaused(tx, before, reason, counted);
  return paused as Campaign;
}

function emitPaused(tx: Tx, { id, brand_id }: Campaign, reason: PauseReason | null, counted: Counted | null): void {
  const { sent = null, bounced = null } = counted ?? {};
  const about = { brand_id, campaign_id: id, occurred_at: tx.now };
  const fix = reason === null ? null : fixes[reason];
  tx.emit(event('campaign.paused', tx.organization_id, { ...about, reason, fix, sent, bounced }));
}

/** "A downgrade below outreach pauses each sending campaign." Those that are paused do not send again before they are resumed. */
export async function pauseForPlan(tx: Tx): Promise<void> {
  const open = await tx.all<{ id: string }>(sql`
    select t.id from recruitment.campaign t
    where ${tenant(tx)} and t.state in ('sending', 'paused')
    order by t.id
    for no key update of t`);
  for (const { id } of open) await pauseCampaign(tx, id, 'plan', 'not_entitled');
}

/** Ends causes of a paused campaign, whose row the caller has locked. Once none is left it sends again, and emits `campaign.resumed`. */
export async function endCauses(tx: Tx, before: Campaign, removed: PauseCause[]): Promise<Campaign> {
  const pause_causes = withoutCauses(before.pause_causes, removed);
  if (pause_causes.length === before.pause_causes.length) return before;
  const { id: campaign_id, brand_id } = before;
  if (pause_causes.length > 0) {
    const pause_reason = reasonOf(pause_causes, before.pause_reason);
    return (await campaigns.update(tx, campaign_id, { pause_causes, pause_reason })) as Campaign;
  }
  const sending = { state: 'sending', pause_causes, pause_reason: null, paused_at: null };
  const resumed = await campaigns.update(tx, campaign_id, sending);
  tx.emit(event('campaign.resumed', tx.organization_id, { brand_id, campaign_id, occurred_at: tx.now }));
  requestSchedule(tx, campaign_id);
  return resumed as Campaign;
}

/**
 * "Guards and the plan end by /resume alone", and so does a person's pause. A campaign without a connected inbox stays paused.
 * @throws Problem feature_not_in_plan; invalid_state_transition where only a connected inbox is missing
 */
async function resumeCampaign(tx: Tx, before: Campaign): Promise<Campaign> {
  await requireFeature(tx, 'outreach');
  if (!(await hasConnectedInbox(tx, before.inbox_ids))) return waitForInbox(tx, before);
  const resumed = await endCauses(tx, before, ['user', 'guard', 'plan', 'inbox']);
  if (resumed !== before) for (const inbox_id of new Set(resumed.inbox_ids)) wakeInbox(tx, inbox_id);
  return resumed;
}

/** Ends the causes that a person may end; that no inbox is connected becomes the cause, also where `inbox_ids` was changed to none that is. */
async function waitForInbox(tx: Tx, { id, pause_causes }: Campaign): Promise<Campaign> {
  if (pause_causes.every((cause) => cause === 'inbox'))
    throw new Problem(
      'invalid_state_transition',
      'No inbox of the campaign is connected. Reconnect one, or set `inbox_ids` to one that is connected, then resume.',
    );
  return (await campaigns.update(tx, id, { pause_causes: ['inbox'], pause_reason: 'no_inbox' })) as Campaign;
}

export async function hasConnectedInbox(tx: Tx, inbox_ids: string[]): Promise<boolean> {
  const found = await tx.maybe(sql`
    select from recruitment.inbox t
    where ${tenant(tx)} and t.id = any(${inbox_ids}) and t.status = 'connected' and t.deleted_at is null
    limit 1`);
  return found !== undefined;
}

const causes_in_order: PauseCause[] = ['user', 'guard', 'plan', 'inbox'];
const guard_reasons: PauseReason[] = ['bounce_rate', 'spam_complaint'];

/** Adds a cause. Causes are a set, always in the same order. */
export const withCause = (causes: PauseCause[], added: PauseCause): PauseCause[] =>
  causes_in_order.filter((cause) => cause === added || causes.includes(cause));

export const withoutCauses = (causes: PauseCause[], removed: PauseCause[]): PauseCause[] =>
  causes.filter((cause) => !removed.includes(cause));

/** The reason that is shown: that of the guard, which only a person takes away, before those of the plan and the inboxes. Null: a person's pause. */
export function reasonOf(causes: PauseCause[], known: PauseReason | null): PauseReason | null {
  if (causes.includes('guard') && known !== null && guard_reasons.includes(known)) return known;
  if (causes.includes('plan')) return 'not_entitled';
  return causes.includes('inbox') ? 'no_inbox' : null;
}

/**
 * Pauses a campaign too many of whose emails bounced. To be called when one has, and where `is_over_limit`. Locks the campaign: before prospects and sequences, if they are
 * to be locked as well.
 * @param message_id a message that bounced in this transaction, whose row does not say so yet
 */
export async function guardBounces(tx: Tx, campaign_id: string, message_id: string | null = null): Promise<void> {
  const { state, bounce_pause_bps } = await lockCampaign(tx, campaign_id);
  if (state !== 'sending') return;
  const counted = await countSince(tx, campaign_id, message_id);
  if (isOverLimit(counted, bounce_pause_bps)) await pauseCampaign(tx, campaign_id, 'guard', 'bounce_rate', counted);
}

/** "A feedback report": a campaign that a recipient reported as spam is paused. */
export const pauseForComplaint = (tx: Tx, campaign_id: string): Promise<object> =>
  pauseCampaign(tx, campaign_id, 'guard', 'spam_complaint');

/** Each email is written within this time from when it was sent or came back, which is when its transaction began. */
const slowest_write = '1 hour';

/**
 * "Sent and bounced restart at each pause, and bounces count only for mails sent since." An address that a server refuses counts as both. What is older than
 * an hour is counted once, and added to the campaign's row (`counted_to`). To be called with the campaign locked.
 * @param message_id a message that bounced just now: if its row has no `sent_at`, the bounce proves that it was sent
 */
const countSince = (tx: Tx, campaign_id: string, message_id: string | null): Promise<Counted> =>
  tx.one<Counted>(sql`
    with campaign as (
      select c.counted_since as since, greatest(c.counted_since, c.counted_to) as counted_to, c.counted_sent as sent, c.counted_bounced as bounced,
        greatest(c.counted_since, c.counted_to, ${tx.now}::timestamptz - ${slowest_write}::interval) as next
      from recruitment.campaign c
      where c.organization_id = ${tx.organization_id} and c.id = ${campaign_id}
    ), own as (
      select count(*) as bounced, count(*) filter (where m.sent_at is null) as proved
      from recruitment.message m, campaign
      where m.organization_id = ${tx.organization_id} and m.id = ${message_id} and m.campaign_id = ${campaign_id} and m.purpose = 'sequence'
        and coalesce(m.sent_at, campaign.since) >= campaign.since
    ), returned as (
      select
        count(*) as bounced, count(*) filter (where m.bounced_at < campaign.next) as bounced_before,
        count(*) filter (where m.sent_at is null) as refused, count(*) filter (where m.sent_at is null and m.bounced_at < campaign.next) as refused_before
      from recruitment.message m, campaign
      where m.organization_id = ${tx.organization_id} and m.campaign_id = ${campaign_id} and m.purpose = 'sequence'
        and m.bounced_at >= (select counted_to from campaign) and coalesce(m.sent_at, campaign.since) >= campaign.since
        and m.id is distinct from ${message_id} and ${counts_as_bounced}
    ), accepted as (
      select count(*) as sent, count(*) filter (where m.sent_at < campaign.next) as sent_before
      from recruitment.message m, campaign
      where m.organization_id = ${tx.organization_id} and m.campaign_id = ${campaign_id} and m.purpose = 'sequence'
        and m.sent_at >= (select counted_to from campaign)
    ), added as (
      update recruitment.campaign c set
        counted_to = campaign.next, counted_bounced = campaign.bounced + returned.bounced_before,
        counted_sent = campaign.sent + accepted.sent_before + returned.refused_before
      from campaign, accepted, returned
      where c.organization_id = ${tx.organization_id} and c.id = ${campaign_id} and campaign.next > campaign.counted_to
    )
    select campaign.sent + accepted.sent + returned.refused + own.proved as sent, campaign.bounced + own.bounced + returned.bounced as bounced
    from campaign, accepted, returned, own`);

const least_sent = 20;
const least_bounced = 2;

/** "≥ 20 sent and ≥ 2 bounced since the last pause, and over the limit." */
const isOverLimit = ({ sent, bounced }: Counted, bounce_pause_bps: number): boolean =>
  sent >= least_sent && bounced >= least_bounced && bounced * 10_000 > bounce_pause_bps * sent;

/** So many emails after a bounce, the rate of all is not over a limit by the one that was counted last. */
const most_counted = 1_000;

/** A condition on a message `m`. A full mailbox or a timeout says nothing of the addresses or the emails of a campaign. */
const counts_as_bounced = sql`m.bounce_reason is distinct from 'undelivered'`;

/**
 * For the sweep: a campaign `t` that is over its limit by an email that was sent, not by one that bounced. That is the 20th, and those that were
 * sent in the minute after it.
 */
export const is_over_limit = sql`(
  t.counted_sent <= ${most_counted} and exists (
    select from recruitment.message m
    where m.organization_id = t.organization_id and m.campaign_id = t.id and m.bounced_at >= t.counted_since
  ) and exists (
    select
    from (
      select count(*) as sent
      from (
        select from recruitment.message m
        where m.organization_id = t.organization_id and m.campaign_id = t.id and m.purpose = 'sequence' and m.sent_at >= t.counted_since
        limit ${most_counted}
      ) as accepted
    ) as accepted, (
      select count(*) as bounced, count(*) filter (where m.sent_at is null) as refused
      from recruitment.message m
      where m.organization_id = t.organization_id and m.campaign_id = t.id and m.purpose = 'sequence' and m.bounced_at >= t.counted_since
        and coalesce(m.sent_at, t.counted_since) >= t.counted_since and ${counts_as_bounced}
    ) as returned
    where accepted.sent + returned.refused between ${least_sent} and ${most_counted} and returned.bounced >= ${least_bounced}
      and returned.bounced * 10000 > t.bounce_pause_bps * (accepted.sent + returned.refused)
  ))`;
