import sql from 'sql-template-tag';
import type { Job, Tx } from '../postgres/transaction.ts';

/** Returns a function that runs so many works at a time; the others wait, in their order. */
export function limitConcurrency(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

/** Does the same for works of each kind: those of one do not wait for those of another. */
export function limitConcurrencyOfEach(most: number): <T>(kind: string, work: () => Promise<T>) => Promise<T> {
  const kinds = new Map<string, { limited: ReturnType<typeof limitConcurrency>; works: number }>();
  return async (kind, work) => {
    const own = kinds.get(kind) ?? { limited: limitConcurrency(most), works: 0 };
    kinds.set(kind, own);
    own.works += 1;
    try {
      return await own.limited(work);
    } finally {
      own.works -= 1;
      if (own.works === 0) kinds.delete(kind);
    }
  };
}

const work_key = (identifier: string, organization_id: string): string => `${identifier}:${organization_id}`;

/** After which one is looked for again. */
const again_ms = 200;

/**
 * Enqueues the one job of the organization that does all waiting work of a task (`runExclusive`). While one has not begun, it is this one; one that has begun may not
 * see what this transaction writes, and another follows it.
 */
export function enqueueExclusive(tx: Tx, identifier: string, options: Pick<Job, 'run_at'> = {}): void {
  const { organization_id } = tx;
  const job_key = work_key(identifier, organization_id);
  tx.enqueue(identifier, { organization_id }, { job_key, patience_ms: again_ms, ...options });
}

/**
 * Runs such work while no other job of the task does it for this organization. Of those that come meanwhile one waits until that has ended and finds
 * what all others were enqueued for. The next comes again soon, lest that one die, and stands for whatever is enqueued until then.
 */
export async function runExclusive(tx: Tx, identifier: string, work: () => Promise<number>): Promise<number> {
  const key = work_key(identifier, tx.organization_id);
  const { is_due } = await tx.one<{ is_due: boolean }>(sql`select core.claim_exclusive(${key}) as is_due`);
  if (is_due) return work();
  enqueueExclusive(tx, identifier, { run_at: new Date(Date.parse(tx.now) + again_ms).toISOString() });
  return 0;
}
