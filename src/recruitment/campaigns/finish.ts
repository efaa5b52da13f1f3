import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { event } from '../events/event.ts';

/**
 * Finishes those of the campaigns that are sending and have no open sequence left, and tells `campaign.finished`. To be called when a sequence
 * has ended, last in the transaction; who loses a race leaves it to the sweep. Locks the campaigns that are over, and judges them again: prospects may
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

/** It sends, and nobody is left or being added. */
export const is_over = sql`(
  t.state = 'sending'
  and not exists (
    select from recruitment.sequence s
    where s.organization_id = t.organization_id and s.campaign_id = t.id and s.open)
  and not exists (
    select from recruitment.campaign_addition a
    where a.organization_id = t.organization_id and a.campaign_id = t.id and a.finished_at is null))`;
