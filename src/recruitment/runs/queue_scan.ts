import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { newId } from '../../core/values/id.ts';
import { most_ceiling_minor } from '../../core/values/money.ts';
import { event } from '../events/event.ts';
import type { Trigger } from './run.ts';
import { isCeilingSpent } from './spending.ts';

interface ScannedBrand {
  id: string;
  scan_ceiling_minor: number | null;
}

interface Queued {
  /** `taken` if a credit was taken for it. */
  credit?: 'none' | 'taken';
  /** The local day that a weekly scan belongs to. */
  week?: string;
  /** The id that its credit names. */
  id?: string;
}

/**
 * Queues a scan of a brand: its task runs once the transaction has committed. Where the plan's ceiling is spent the scan ends at once.
 * @returns its id, or undefined where the week has its scan already
 */
export async function queueScan(
  tx: Tx,
  brand: ScannedBrand,
  trigger: Exclude<Trigger, 'search'>,
  { credit = 'none', week, id = newId('fsc') }: Queued = {},
): Promise<string | undefined> {
  const is_stopped = await isCeilingSpent(tx);
  const queued = await insert(
    tx,
    'recruitment.run',
    {
      ...{ id, brand_id: brand.id, kind: 'scan', trigger, week, credit, ceiling_minor: ceilingOf(brand) },
      state: is_stopped ? 'stopped_at_ceiling' : 'running',
      ...{ started_at: tx.now, finished_at: is_stopped ? tx.now : null, created_at: tx.now, updated_at: tx.now },
    },
    { on_conflict: sql`on conflict do nothing` },
  );
  if (!queued) return undefined;
  if (is_stopped) emitStopped(tx, id, brand.id, trigger);
  else tx.enqueue('recruitment/run_scan', { organization_id: tx.organization_id, id });
  return id;
}

/** A brand may have been stored before there was a most. */
const ceilingOf = ({ scan_ceiling_minor }: ScannedBrand): number | null =>
  scan_ceiling_minor === null ? null : Math.min(scan_ceiling_minor, most_ceiling_minor);

const emitStopped = (tx: Tx, scan_id: string, brand_id: string, trigger: Trigger): void =>
  tx.emit(
    event('scan.completed', tx.organization_id, { scan_id, brand_id, trigger, state: 'stopped_at_ceiling', found: 0 }),
  );
