/**
 * Disconnects, reconnects and deletes inboxes, with what follows for their campaigns and sequences: each is one transaction.
 *
 * - `inbox.disconnected` counts the open sequences of campaigns that were sending from the inbox, and the campaigns that it stopped. `campaign.inbox_dropped` is
 *   emitted for campaigns that send or are paused. A paused campaign without another inbox gets the cause `inbox` silently.
 * - A deleted inbox is taken from `inbox_ids` of campaigns that have not ended. A sequence has begun when an email of it was sent, is being sent or is to be
 *   sent again.
 * - Locks: all campaigns of an inbox that have not ended, drafts too, before its sequences and itself. What begins meanwhile waits.
 */
import sql from 'sql-template-tag';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker, deletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import { connect, disconnect } from '../inboxes/connection.ts';
import { type DisconnectedReason, type Inbox, inboxes } from '../inboxes/inbox.ts';
import { keepTokens, login_errors, tryStored } from '../inboxes/stored_login.ts';
import { not_resting, wakeInbox } from '../sequences/wake_inbox.ts';
import { type Campaign, campaigns } from './campaign.ts';
import { failSequences, finishCampaigns } from './end.ts';
import { endCauses, pauseCampaign } from './pause.ts';
import { has_begun, requestSchedule } from './reschedule.ts';

const events_of_campaigns =
  'and `campaign.inbox_dropped` for each of its campaigns with another inbox that is connected, or `campaign.paused` for each without';

export const inboxConnectionOperations: Operation[] = [
  operation({
    name: 'inboxes.delete',
    method: 'DELETE',
    path: `${base_path}/inboxes/{id}`,
    scope: 'inboxes:write',
    summary: 'Deletes an inbox and its login.',
    doc: `Sequences that have not begun move to another inbox of their campaign; those that have begun fail with \`inbox_removed\` (\`campaign.send_failed\`); beyond some hundred, a worker fails the others. Invitations, answers and tests that wait for it are cancelled. If it was connected, emits \`inbox.disconnected\` with the reason \`removed\`, ${events_of_campaigns}.`,
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      await deleteInbox(tx, params);
      return deletedMarker('inbox', params.id);
    },
  }),
  operation({
    name: 'inboxes.disconnect',
    method: 'POST',
    path: `${base_path}/inboxes/{id}/disconnect`,
    scope: 'inboxes:write',
    summary: 'Disconnects an inbox, until it is reconnected.',
    doc: `Sequences that send from it are paused. Emits \`inbox.disconnected\` with the reason \`disabled\`, ${events_of_campaigns}. An inbox that is disconnected stays as it is.`,
    params: idParams,
    reply: inboxes.schema,
    run: ({ tx, params }) => disconnectInbox(tx, params, 'disabled'),
  }),
  operation({
    name: 'inboxes.reconnect',
    method: 'POST',
    path: `${base_path}/inboxes/{id}/reconnect`,
    scope: 'inboxes:write',
    summary: 'Reconnects an inbox.',
    doc: 'Both logins are tried first. If one is refused, the inbox stays disconnected. Its sequences continue. Emits `inbox.connected`, and `campaign.resumed` for each campaign that was paused only because it had no connected inbox. An inbox that is connected stays as it is.',
    params: idParams,
    reply: inboxes.schema,
    errors: login_errors,
    ask: ({ params, services, read }) => tryStored(params.id, services, read),
    async run({ tx, params, services, asked }) {
      await lockCampaignsOf(tx, params.id);
      await keepTokens(tx, params.id, asked, services);
      return reconnectInbox(tx, params);
    },
  }),
];

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
  // Sequences of a deleted inbox move to another one or fail: none waits for it.
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
    if (one.state === 'paused') await endCauses(tx, one, ['inbox']);
    if (one.state === 'sending') requestSchedule(tx, one.id);
  }
  return connected;
}

/**
 * Deletes an inbox with its login: "sequences not begun move to another, begun ones fail (inbox_removed)". Of many a job
 * moves and fails those that are left: nothing is sent from the inbox meanwhile.
 */
async function deleteInbox(tx: Tx, { id }: { id: string }): Promise<void> {
  const open = await lockCampaignsOf(tx, id);
  const leaving = await lockSequencesOf(tx, id);
  await disconnectInbox(tx, { id }, 'removed');
  await tx.all(sql`
    update recruitment.campaign t set inbox_ids = array_remove(t.inbox_ids, ${id}), updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${open.map((one) => one.id)})`);
  await inboxes.update(tx, id, { deleted_at: tx.now, secrets: Buffer.alloc(0) });
  const cancelled = await cancelPlanned(tx, id);
  await moveFromInbox(tx, leaving);
  if (leaving.length < most_at_once && cancelled < most_at_once) return;
  const { organization_id, request_id } = tx;
  tx.enqueue('recruitment/fail_sequences', { organization_id, request_id, id }, { job_key: `fail_sequences:${id}` });
}

/** Moves and fails sequences of an inbox that is deleted, and cancels its other emails, at most so many as a transaction does. @returns how many */
export async function failSequencesOf(tx: Tx, inbox_id: string): Promise<number> {
  const leaving = await lockSequencesOf(tx, inbox_id);
  await moveFromInbox(tx, leaving);
  return Math.max(leaving.length, await cancelPlanned(tx, inbox_id));
}

interface Leaving {
  id: string;
  campaign_id: string;
  has_begun: boolean;
}

/** Fails those that have begun, which finishes campaigns that are over by that; has the others scheduled anew. */
async function moveFromInbox(tx: Tx, leaving: Leaving[]): Promise<void> {
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
const lockCampaignsOf = (tx: Tx, inbox_id: string): Promise<Campaign[]> =>
  tx.all<Campaign>(sql`
    select ${campaigns.columns} from ${campaigns.from}
    where ${tenant(tx)} and t.inbox_ids @> array[${inbox_id}] and t.state not in ('stopped', 'finished')
    order by t.id
    for no key update of t`);

/** Finds those of the campaigns that have no other inbox that is connected. */
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
