import sql from 'sql-template-tag';
import { type Database, run } from '../../core/postgres/database.ts';

/** A payout, or all those of a batch. */
export type Of = { payout: string } | { batch: string };

/** @throws Error when there is no such payout or batch */
export async function organizationOf(database: Database, of: Of): Promise<string> {
  const [found] = await run<{ organization_id: string }>(
    database,
    'batch' in of
      ? sql`select organization_id from program.payout_batch where id = ${of.batch} and deleted_at is null`
      : sql`select organization_id from program.payout where id = ${of.payout} and deleted_at is null`,
  );
  if (found) return found.organization_id;
  throw new Error('batch' in of ? `There is no batch '${of.batch}'.` : `There is no payout '${of.payout}'.`);
}
