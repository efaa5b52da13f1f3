/** What campaigns and sequences do when an inbox of theirs is disconnected, reconnected or deleted: each is one transaction. */
import sql from 'sql-template-tag';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { event } from '../events/event.ts';
import { connect, disconnect } from '../inboxes/connection.ts';
import { type DisconnectedReason, type Inbox, inboxes } from '../inboxes/inbox.ts';
import { not_resting, wakeInbox } from '../sequences/wake_inbox.ts';
import { type Campaign, campaigns } from './campaign.ts';
import { failSequences } from './fail_sequences.ts';
import { finishCampaigns } from './finish.ts';
import { pauseCampaign } from './pause.ts';
import { requestSchedule } from './request_schedule.ts';
import { takeCauses } from './resume.ts';
import { has_begun } from './unschedule.ts';

/**
 * Disconnects an inbox, unless it is: "inbox.disconnected; for each campaign with another inbox campaign.inbox_dropped; for each without,
 * campaign.paused (no_inbox)". Locks its campaigns, then the inbox.
 */
export async function disconnectInbox(tx: Tx, { id }: { id: string }, reason: DisconnectedReason): Promise<Inbox> {
  const open = await lockCampaignsOf(tx, id);
  const inbox = await inboxes.get(tx, id, { lock: true });
  if (inbox.status !== 'connected') return inbox;
  const without = await withoutOther(tx, open, id);
  const paused_campaigns = open.filter((one) => without.has(one.id) && one.state === 'sending').length;
  // Those of a deleted inbox move to another one or fail: none waits for it.
  const paused_sequences = reason === 'removed' ? 0 : await countSequences(tx, id);
  const disconnected = await disconnect(tx, inbox, reason, { paused_sequences, paused_campaigns });
  const started = open.filter(({ state }) => state === 'sending' || state === 'paused');
  for (const { id: campaign_id, brand_id } of started.filter((one) => !without.has(one.id))) {
    const about = { brand_id, campaign_id, occurred_at: tx.now };
    tx.emit(event('campaign.inbox_dropped', tx.organization_id, { ...about, inbox_id: id, reason }));
  }
  for (const one of started.filter((each) => without.has(each.id))) {
    await pauseCampaign(tx, one.id, 'inbox', 'no_inbox');
  }
  return disconnected;
}

/**
 * Connects an inbox whose login was tried, unless it is: "inbox.connected, its sequences go on, those campaigns are resumed", as far as nothing
 * else pauses them. Locks its campaigns, then the inbox.
 */
export async function reconnectInbox(tx: Tx, { id }: { id: string }): Promise<Inbox> {
  const open = await lockCampaignsOf(tx, id);
  const inbox = await inboxes.get(tx, id, { lock: true });
  if (inbox.status === 'connected') return inbox;
  const connected = await connect(tx, inbox, { auth_failures: 0, unreachable_since: null, ...not_resting });
  wakeInbox(tx, id);
  for (const one of open) {
    if (one.state === 'paused') await takeCauses(tx, one, ['inbox']);
    if (one.state === 'sending') requestSchedule(tx, one.id);
  }
  return connected;
}

/**
 * Deletes an inbox with its login: "sequences not begun move to another, begun ones fail (inbox_removed)". Of many a job
 * moves and fails those that are left: nothing is sent from the inbox meanwhile.
 */
export async function deleteInbox(tx: Tx, { id }: { id: string }): Promise<void> {
  const open = await lockCampaignsOf(tx, id);
  const leaving = await lockSequencesOf(tx, id);
  await disconnectInbox(tx, { id }, 'removed');
  await tx.all(sql`
    update recruitment.campaign t set inbox_ids = array_remove(t.inbox_ids, ${id}), updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${open.map((one) => one.id)})`);
  await inboxes.update(tx, id, { deleted_at: tx.now, secrets: Buffer.alloc(0) });
  const cancelled = await cancelPlanned(tx, id);
  await takeFromInbox(tx, leaving);
  if (leaving.length < most_at_once && cancelled < most_at_once) return;
  const { organization_id, request_id } = tx;
  tx.enqueue('recruitment/fail_sequences', { organization_id, request_id, id }, { job_key: `fail_sequences:${id}` });
}

/** Moves and fails sequences of an inbox that is deleted, and cancels its other emails, at most so many as a transaction does. @returns how many */
export async function failSequencesOf(tx: Tx, inbox_id: string): Promise<number> {
  const leaving = await lockSequencesOf(tx, inbox_id);
  await takeFromInbox(tx, leaving);
  return Math.max(leaving.length, await cancelPlanned(tx, inbox_id));
}

interface Leaving {
  id: string;
  campaign_id: string;
  has_begun: boolean;
}

/** Those that have begun fail, which finishes campaigns that are over by that; the others are scheduled anew. */
async function takeFromInbox(tx: Tx, leaving: Leaving[]): Promise<void> {
  const begun = leaving.filter((one) => one.has_begun);
  const others = leaving.filter((one) => !one.has_begun);
  await tx.all(sql`
    update recruitment.sequence t set inbox_id = null, due_at = null, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${others.map(({ id }) => id)})`);
  await failSequences(
    tx,
    begun.map(({ id }) => ({ id, reason: 'inbox_removed' })),
  );
  for (const campaign_id of campaignsOf(others)) requestSchedule(tx, campaign_id);
  await finishCampaigns(tx, campaignsOf(begun));
}

const campaignsOf = (sequences: Leaving[]): string[] => [
  ...new Set(sequences.map(({ campaign_id }) => campaign_id).sort()),
];

/** Emails outside of sequences that wait for an inbox that is gone: nobody would send them. @returns how many, at most so many as a transaction does */
async function cancelPlanned(tx: Tx, inbox_id: string): Promise<number> {
  const cancelled = await tx.all(sql`
    with waiting as materialized (
      select t.id from recruitment.message t
      where ${tenant(tx)} and t.inbox_id = ${inbox_id} and t.state = 'planned' and t.sequence_id is null
      order by t.id
      limit ${most_at_once}
      for no key update of t
    )
    update recruitment.message t set state = 'cancelled', due_at = null, updated_at = ${tx.now}::timestamptz
    from waiting where ${tenant(tx)} and t.id = waiting.id
    returning t.id`);
  return cancelled.length;
}

/** The campaigns that an inbox belongs to and that have not ended, also those that begin meanwhile: they are locked before inboxes. */
export const lockCampaignsOf = (tx: Tx, inbox_id: string): Promise<Campaign[]> =>
  tx.all<Campaign>(sql`
    select ${campaigns.columns} from ${campaigns.from}
    where ${tenant(tx)} and t.inbox_ids @> array[${inbox_id}] and t.state not in ('stopped', 'finished')
    order by t.id
    for no key update of t`);

/** Those of the campaigns that have no other inbox that is connected. */
async function withoutOther(tx: Tx, open: Campaign[], inbox_id: string): Promise<Set<string>> {
  const without = await tx.all<{ id: string }>(sql`
    select t.id from recruitment.campaign t
    where ${tenant(tx)} and t.id = any(${open.map(({ id }) => id)}) and not exists (
      select from recruitment.inbox i
      where i.organization_id = t.organization_id and i.id = any(t.inbox_ids) and i.id <> ${inbox_id}
        and i.status = 'connected' and i.deleted_at is null)`);
  return new Set(without.map(({ id }) => id));
}

/** The sequences that send from an inbox and are not paused otherwise. */
async function countSequences(tx: Tx, inbox_id: string): Promise<number> {
  const { count } = await tx.one<{ count: number }>(sql`
    select count(*)::integer as count
    from recruitment.sequence t
    join recruitment.campaign c on c.organization_id = t.organization_id and c.id = t.campaign_id and c.state = 'sending'
    where ${tenant(tx)} and t.inbox_id = ${inbox_id} and t.open`);
  return count;
}

const lockSequencesOf = (tx: Tx, inbox_id: string): Promise<Leaving[]> =>
  tx.all<Leaving>(sql`
    select t.id, t.campaign_id, ${has_begun} as has_begun from recruitment.sequence t
    where ${tenant(tx)} and t.inbox_id = ${inbox_id} and t.open
    order by t.id
    limit ${most_at_once}
    for no key update of t`);
