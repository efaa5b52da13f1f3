import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';

/** Adds up to `limit` noted changes to the sums of reports, for all tenants: for the scheduled task only. @returns how many were added */
export async function foldReports(tx: Tx, limit: number): Promise<number> {
  const { folded } = await tx.one<{ folded: number }>(sql`select program.fold_reports(${limit}) as folded`);
  return folded;
}

/** Packs up to `limit` spans whose sums have changed and which have ended, for all tenants. @returns how many were packed */
export async function packReports(tx: Tx, limit: number): Promise<number> {
  const { packed } = await tx.one<{ packed: number }>(sql`select program.pack_reports(${limit}) as packed`);
  return packed;
}
