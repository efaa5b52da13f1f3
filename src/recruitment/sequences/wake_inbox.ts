import type { Tx } from '../../core/postgres/transaction.ts';

/** Has an inbox send what is due, as soon as this has committed: without it, the sweep of the next minute does. */
export const wakeInbox = (tx: Tx, inbox_id: string): void =>
  tx.enqueue(
    'recruitment/send_from_inbox',
    { organization_id: tx.organization_id, inbox_id },
    { job_key: `outreach_now:${inbox_id}` },
  );
