import type { Tx } from '../../core/postgres/transaction.ts';

/** Enqueues the job that checks a new record for fraud: "after clicks, customers and sales a job raises flags". */
export const assessLater = (
  tx: Tx,
  subject: 'click' | 'customer' | 'sale' | 'partner',
  id: string,
  request_id: string | null = tx.request_id,
): void => tx.enqueue('program/assess_risk', { organization_id: tx.organization_id, request_id, subject, id });
