/**
 * Ends what is over: sequences that cannot be sent fail, and a campaign that is sending finishes with its last sequence, in the transaction that ends it, or by
 * the sweep of each minute, where nobody notices the end (a prospect was hidden), or where two ends raced.
 */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { event } from '../events/event.ts';
import type { SendFailure } from '../sequences/sequence.ts';

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
      from open where ${tenant(tx)} and t.sequence_id = open.id and t.state = 'planned'
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
