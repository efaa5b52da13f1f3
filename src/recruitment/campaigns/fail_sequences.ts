import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { event } from '../events/event.ts';
import type { SendFailure } from '../sequences/sequence.ts';

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
    // Nobody is told of a prospect who was erased meanwhile.
    if (prospect_id === null) continue;
    const about = { brand_id, campaign_id, occurred_at: tx.now, prospect_id, sequence_id };
    tx.emit(event('campaign.send_failed', tx.organization_id, { ...about, reason }));
  }
}
