import sql from 'sql-template-tag';
import type { Tx } from '../../../../core/postgres/transaction.ts';
import { tenant } from '../../../../core/resource/resource.ts';

/** A sequence whose first email was sent, or is being sent: its address and its inbox stay the same. */
export const has_begun = sql`(t.state = 'active' or exists (
  select from recruitment.message m
  where m.organization_id = t.organization_id and m.sequence_id = t.id and m.purpose = 'sequence' and m.state <> 'cancelled'))`;

/** Takes the times of the open sequences of a campaign, and the inboxes of those that have not begun: they are scheduled anew. */
export const unschedule = (tx: Tx, campaign_id: string): Promise<object[]> =>
  tx.all(sql`
    with open as materialized (
      select t.id, ${has_begun} as has_begun from recruitment.sequence t
      where ${tenant(tx)} and t.campaign_id = ${campaign_id} and t.open and t.due_at is not null
      order by t.id
      for no key update of t
    )
    update recruitment.sequence t
    set due_at = null, inbox_id = case when open.has_begun then t.inbox_id end, updated_at = ${tx.now}::timestamptz
    from open where ${tenant(tx)} and t.id = open.id`);
