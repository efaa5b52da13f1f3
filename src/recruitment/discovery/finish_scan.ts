/** How scans end. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { event } from '../events/event.ts';
import { refundCredit } from '../plan/credit.ts';
import { type Run, type ScanError, type Trigger, updateRun } from '../runs/run.ts';
import { stepsOf } from './next_page.ts';

/** The run is locked and open. */
export async function finishScan(tx: Tx, { id, brand_id, trigger }: Run): Promise<void> {
  const steps = (await stepsOf(tx, id)) ?? [];
  const state = steps.some(({ over }) => over === 'ceiling') ? 'stopped_at_ceiling' : 'done';
  const found = await countFound(tx, id);
  await updateRun(tx, id, sql`state = ${state}, found = ${found}, finished_at = ${tx.now}::timestamptz`);
  await noteScan(tx, brand_id);
  const told = { scan_id: id, brand_id, trigger: trigger as Trigger, state, found } as const;
  tx.emit(event('scan.completed', tx.organization_id, told));
}

/** Prospects that it made, and those with new evidence. What a search had found is not counted again by the scan behind it. */
async function countFound(tx: Tx, run_id: string): Promise<number> {
  const { found } = await tx.one<{ found: number }>(sql`
    select count(*)::integer as found
    from (
      select r.prospect_id
      from recruitment.run_result r
      where r.organization_id = ${tx.organization_id} and r.run_id = ${run_id} and r.outcome = 'new'
      union
      select v.prospect_id
      from recruitment.visit v
      where v.organization_id = ${tx.organization_id} and v.run_id = ${run_id} and v.has_new_evidence
    ) as prospect`);
  return found;
}

const noteScan = (tx: Tx, brand_id: string): Promise<object[]> =>
  tx.all(sql`
    update recruitment.brand t
    set last_scan_at = ${tx.now}::timestamptz
    where t.organization_id = ${tx.organization_id} and t.id = ${brand_id}`);

/** The run is locked and open. */
export async function failScan(tx: Tx, { id, brand_id, trigger, credit }: Run, error: ScanError): Promise<void> {
  const credit_refunded = credit === 'taken';
  await updateRun(
    tx,
    id,
    sql`state = 'failed', error = ${error}, finished_at = ${tx.now}::timestamptz,
      credit = ${credit_refunded ? 'refunded' : credit}`,
  );
  if (credit_refunded) await refundCredit(tx, 'scan', { scan_id: id });
  const told = { scan_id: id, brand_id, trigger: trigger as Trigger, error, credit_refunded };
  tx.emit(event('scan.failed', tx.organization_id, told));
}
