import type { Tx } from '../../core/postgres/transaction.ts';

/** Has the sequences of a campaign scheduled that are not yet. */
export const requestSchedule = (tx: Tx, campaign_id: string): void =>
  tx.enqueue(
    'recruitment/schedule_sequences',
    { organization_id: tx.organization_id, campaign_id },
    { job_key: `schedule:${campaign_id}` },
  );
