/** One task at a time asks for the pages of a run; a worker that dies gives its claims up. The sixth interruption of a run ends it. */
import { randomUUID } from 'node:crypto';
import sql from 'sql-template-tag';
import { type Database, run as query } from '../../core/postgres/database.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { isOpen, lockRun, type Run, updateRun } from '../runs/run.ts';

/** Longer than a call to a provider and the waits before it. */
const lease_s = 90;
const most_interruptions = 5;

export type Claimed =
  /** It is over, or its organization is gone. */
  | { is: 'over' }
  /** Another task asks. */
  | { is: 'held' }
  /** Workers died of it, or with it, too often. */
  | { is: 'interrupted'; run: Run }
  | { is: 'mine'; run: Run; claim: string };

/** Claims the run for a task. A claim that nobody gave back was its worker's end, which is counted. */
export async function claimRun(tx: Tx, id: string, worker_id: string): Promise<Claimed> {
  const run = await lockRun(tx, id);
  if (!run || !isOpen(run)) return { is: 'over' };
  if (run.claim !== null && (await isHeld(tx, id))) return { is: 'held' };
  const interruptions = run.interruptions + (run.claim === null ? 0 : 1);
  if (interruptions > most_interruptions) return { is: 'interrupted', run };
  const claim = randomUUID();
  await updateRun(
    tx,
    id,
    sql`claim = ${claim}, claimed_by = ${worker_id}, claimed_until = ${leaseEnd(tx)}, interruptions = ${interruptions}`,
  );
  return { is: 'mine', run: { ...run, claim, interruptions }, claim };
}

const leaseEnd = (tx: Tx) => sql`${tx.now}::timestamptz + make_interval(secs => ${lease_s})`;

const isHeld = async (tx: Tx, id: string): Promise<boolean> =>
  (await tx.maybe(sql`
    select from recruitment.run t
    where t.organization_id = ${tx.organization_id} and t.id = ${id} and t.claimed_until > ${tx.now}::timestamptz`)) !==
  undefined;

/** The run, if it is open and the claim still holds; the lease begins anew. */
export async function heldRun(tx: Tx, id: string, claim: string): Promise<Run | undefined> {
  const run = await lockRun(tx, id);
  if (!run || !isOpen(run) || run.claim !== claim) return undefined;
  await updateRun(tx, id, sql`claimed_until = ${leaseEnd(tx)}`);
  return run;
}

/** Gives the run back, for another task. */
export const releaseRun = (tx: Tx, id: string): Promise<object[]> =>
  updateRun(tx, id, sql`claim = null, claimed_by = null, claimed_until = null`);

/** Frees what dead workers held. The claim stays: whoever claims the run next counts the interruption. */
export async function freeClaims(database: Database, worker_ids: string[]): Promise<void> {
  await query(
    database,
    sql`update recruitment.run set claimed_by = null, claimed_until = now() where claimed_by = any(${worker_ids})`,
  );
}
