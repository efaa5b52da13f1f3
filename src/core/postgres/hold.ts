import sql from 'sql-template-tag';
import type { Tx } from './transaction.ts';

export interface HoldState {
  /** Nothing may leave: the database is an older state of itself, and no operator has resumed yet. */
  is_held: boolean;
  /** The time of the restore: older emails and payouts may have left before, and are looked up. Null: the database never was restored. */
  restored_at: string | null;
  /** True if an operator has seen to payouts that the restore lost as a whole. */
  is_compared: boolean;
}

/** As `core.hold()` says: to be asked in the transaction that claims what leaves. */
export const holdState = (tx: Tx): Promise<HoldState> =>
  tx.one<HoldState>(sql`select h.is_held, h.restored_at, h.is_compared from core.hold() h`);
