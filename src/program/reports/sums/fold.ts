import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';

/** Adds up to `limit` noted changes to the sums of reports, for all tenants: for the scheduled task only. @returns how many were added */
export async function foldReports(tx: Tx, limit: number): Promise<number> {
  const { folded } = await tx.one<{ folded: number }>(sql`select program.fold_reports(${limit}) as folded`);
  return folded;
}
