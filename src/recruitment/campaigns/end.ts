/**
 * Ends campaigns and their sequences.
 *
 * - Sequences that cannot be sent fail. A campaign that is sending finishes with its last sequence, in the transaction that ends it, or by the sweep of each
 *   minute, where nobody notices the end (a prospect was hidden), or where two ends raced.
 * - Stopping is for good, and silent for the sequences, beyond 500 by the job `stop_sequences`. Emits one `campaign.stopped`, also of a draft. A brand that is
 *   deleted stops all of its campaigns, beyond 500 by the job `stop_campaigns`.
 */
import sql, { type Sql } from 'sql-template-tag';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { transition } from '../../core/resource/states.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import type { SendFailure } from '../sequences/sequence.ts';
import { endSequences } from '../sequences/stop.ts';
import { type Campaign, campaigns, lockCampaign, transitions } from './campaign.ts';

/**
 * Finishes those of the campaigns that are sending and have no open sequence left, and emits `campaign.finished`. To be called when a sequence
 * has ended, last in the transaction; who loses a race leaves it to the sweep. Locks the campaigns that are over, and checks them again: prospects may
 * have been added while it waited.
 */
export async function finishCampaigns(tx: Tx, campaign_ids: string[]): Promise<void> {
  if (campaign_ids.length === 0) return;
  const over = await tx.all<{ id: string }>(sql`
    select t.id from recruitment.campaign t where ${tenant(tx)} and t.id = any(${campaign_ids}) and ${is_over}`);
  if (over.length === 0) return;
  const ids = over.map(({ id }) => id);
  await tx.all(sql`
    select from recruitment.campaign t where ${tenant(tx)} and t.id = any(${ids}) order by t.id for no key update of t`);
  const finished = await tx.all<{ id: string; brand_id: string }>(sql`
    update recruitment.campaign t
    set state = 'finished', finished_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${ids}) and ${is_over}
    returning t.id, t.brand_id`);
  finished.sort((one, other) => (one.id < other.id ? -1 : 1));
  for (const { id: campaign_id, brand_id } of finished) {
    tx.emit(event('campaign.finished', tx.organization_id, { brand_id, campaign_id, occurred_at: tx.now }));
  }
}

/** The condition that a campaign `t` is over: it sends, and nobody is left or being added. */
export const is_over = sql`(
  t.state = 'sending'
  and not exists (
    select from recruitment.sequence s
    where s.organization_id = t.organization_id and s.campaign_id = t.id and s.open)
  and not exists (
    select from recruitment.campaign_addition a
    where a.organization_id = t.organization_id and a.campaign_id = t.id and a.finished_at is null))`;

export interface FailedSequence {
  id: string;
  reason: SendFailure;
}

/**
 * Ends open sequences that cannot be sent. Emits `campaign.send_failed` for each, in the order of their
 * ids. Emails that were to be tried again are cancelled.
 */
export async function failSequences(tx: Tx, failed: FailedSequence[]): Promise<void> {
  if (failed.length === 0) return;
  type Ended = FailedSequence & { brand_id: string; campaign_id: string; prospect_id: string | null };
  const ended = await tx.all<Ended>(sql`
    with given as (
      select * from unnest(${failed.map(({ id }) => id)}::text[], ${failed.map(({ reason }) => reason)}::text[]) as given (id, reason)
    ), open as materialized (
      select t.id, given.reason from given join recruitment.sequence t on t.id = given.id
      where ${tenant(tx)} and t.open
      order by t.id
      for no key update of t
    ), cancelled as (
      update recruitment.message t set state = 'cancelled', updated_at = ${tx.now}::timestamptz
      from open where ${tenant(tx)} and t.sequence_id = open.id and t.purpose = 'sequence' and t.state = 'planned'
    )
    update recruitment.sequence t
    set state = 'failed', failed_reason = open.reason, ended_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    from open where ${tenant(tx)} and t.id = open.id
    returning t.id, open.reason, t.brand_id, t.campaign_id, t.prospect_id`);
  ended.sort((one, other) => (one.id < other.id ? -1 : 1));
  for (const { id: sequence_id, reason, brand_id, campaign_id, prospect_id } of ended) {
    // Nothing is emitted about a prospect who was erased meanwhile.
    if (prospect_id === null) continue;
    const about = { brand_id, campaign_id, occurred_at: tx.now, prospect_id, sequence_id };
    tx.emit(event('campaign.send_failed', tx.organization_id, { ...about, reason }));
  }
}

export const stopOperations: Operation[] = [
  operation({
    name: 'campaigns.stop',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/stop`,
    scope: 'campaigns:write',
    summary: 'Stops a campaign for good, and all of its sequences.',
    doc: 'It cannot be resumed. Emits `campaign.stopped`. A campaign that is stopped stays as it is.',
    params: idParams,
    reply: campaigns.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const campaign = await lockCampaign(tx, params.id);
      transition(transitions, campaign.state, 'stop');
      if (campaign.state === 'stopped') return campaign;
      await stopSome(tx, sql`t.id = ${params.id}`);
      return (await campaigns.get(tx, params.id)) as Campaign;
    },
  }),
];

function requestStop(tx: Tx, campaign_id: string): void {
  const { organization_id, request_id } = tx;
  const job_key = `stop_sequences:${campaign_id}`;
  tx.enqueue('recruitment/stop_sequences', { organization_id, request_id, campaign_id }, { job_key });
}

/** Ends sequences of a campaign that is stopped, at most so many as a transaction does. @returns how many */
export const endSequencesOf = async (tx: Tx, campaign_id: string): Promise<number> =>
  (await endSequences(tx, sql`t.campaign_id = ${campaign_id}`, 'stopped', most_at_once)).length;

/** "Deleting stops its campaigns." Of many a job stops those that are left: nothing is sent for a deleted brand meanwhile. */
export async function stopCampaignsOf(tx: Tx, brand_id: string): Promise<void> {
  if ((await stopSomeOf(tx, brand_id)) < most_at_once) return;
  const { organization_id, request_id } = tx;
  const job_key = `stop_campaigns:${brand_id}`;
  tx.enqueue('recruitment/stop_campaigns', { organization_id, request_id, brand_id }, { job_key });
}

/** @returns how many */
export const stopSomeOf = (tx: Tx, brand_id: string): Promise<number> =>
  stopSome(tx, sql`t.brand_id = ${brand_id} and t.state not in ('stopped', 'finished')`);

/**
 * Stops campaigns for good, at most so many as a transaction does, and of their sequences as many. Each has a job for those that are left: nothing is sent by
 * a stopped campaign meanwhile.
 * @returns how many
 */
async function stopSome(tx: Tx, which: Sql): Promise<number> {
  const stopped = await tx.all<{ id: string; brand_id: string }>(sql`
    with unended as materialized (
      select t.id from recruitment.campaign t
      where ${tenant(tx)} and ${which}
      order by t.id
      limit ${most_at_once}
      for no key update of t
    )
    update recruitment.campaign t
    set state = 'stopped', pause_causes = '{}', pause_reason = null, paused_at = null, stopped_at = ${tx.now}::timestamptz,
      updated_at = ${tx.now}::timestamptz
    from unended
    where ${tenant(tx)} and t.id = unended.id
    returning t.id, t.brand_id`);
  stopped.sort((one, other) => (one.id < other.id ? -1 : 1));
  const ids = stopped.map(({ id }) => id);
  const ended = await endSequences(tx, sql`t.campaign_id = any(${ids})`, 'stopped', most_at_once);
  for (const { id: campaign_id, brand_id } of stopped) {
    tx.emit(event('campaign.stopped', tx.organization_id, { brand_id, campaign_id, occurred_at: tx.now }));
    if (ended.length === most_at_once) requestStop(tx, campaign_id);
  }
  return stopped.length;
}
