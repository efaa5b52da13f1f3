import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';

/** Has an inbox send what is due, as soon as this has committed: without it, the sweep of the next minute does. */
export const wakeInbox = (tx: Tx, inbox_id: string): void =>
  tx.enqueue(
    'recruitment/send_from_inbox',
    { organization_id: tx.organization_id, inbox_id },
    { job_key: `outreach_now:${inbox_id}` },
  );

/** A limit of the plan was changed: has the inboxes that rest for it look again. */
export async function wakeInboxesOfPlan(tx: Tx): Promise<void> {
  const resting = await tx.all<{ id: string }>(sql`
    update recruitment.inbox t set rests_until = null, rests_for = null where ${tenant(tx)} and t.rests_for = 'plan' returning t.id`);
  for (const { id } of resting) wakeInbox(tx, id);
}

/** Ends the rest of an inbox: its cause may be over. */
export const not_resting = { rests_until: null, rests_for: null };
