/** Follows a search or a scan until it ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import { type Scan, scans } from '../../recruitment/discovery/scan.ts';
import { type Search, searches } from '../../recruitment/discovery/search.ts';
import { showProgress } from '../output/progress.ts';
import { grouped } from '../payouts/tables.ts';

const poll_ms = 250;

export interface Followed {
  store: Store;
  organization_id: string;
  stopping: AbortSignal;
}

/** @returns the search once it has ended, as long as it is not left alone before */
export const followSearch = (followed: Followed, id: string): Promise<Search> =>
  follow(
    followed,
    () => readSearch(followed, id),
    ({ results_count, max_results, found }) => ({
      share: results_count / max_results,
      text: `${grouped(results_count)} of at most ${grouped(max_results)} results, ${grouped(found)} new prospects`,
    }),
  );

/** @returns the scan once it has ended, as long as it is not left alone before */
export const followScan = (followed: Followed, id: string): Promise<Scan> =>
  follow(
    followed,
    () => readScan(followed, id),
    ({ visits, visits_left, found }) => ({
      share: visits === 0 ? 0 : (visits - visits_left) / visits,
      text: `${grouped(visits - visits_left)} of ${grouped(visits)} pages visited, ${grouped(found)} prospects found`,
    }),
  );

export const readSearch = ({ store, organization_id }: Omit<Followed, 'stopping'>, id: string): Promise<Search> =>
  transaction(store, { organization_id, request_id: null }, (tx) => searches.get(tx, id));

export const readScan = ({ store, organization_id }: Omit<Followed, 'stopping'>, id: string): Promise<Scan> =>
  transaction(store, { organization_id, request_id: null }, (tx) => scans.get(tx, id));

async function follow<Run extends { finished_at: string | null }>(
  { stopping }: Followed,
  read: () => Promise<Run>,
  progressOf: (run: Run) => { share: number; text: string },
): Promise<Run> {
  using progress = showProgress();
  for (;;) {
    const now = await read();
    const { share, text } = progressOf(now);
    progress.shows(share, text);
    if (now.finished_at !== null || stopping.aborted) return now;
    await sleep(poll_ms, undefined, { signal: stopping }).catch(() => {});
  }
}

/** Not a failure, yet not ended either. */
export function leave(kind: 'search' | 'scan', id: string): void {
  console.error(`${id} goes on. Follow it with: rail ${kind} status ${id} --follow`);
  process.exitCode = 130;
}

/** @throws Error that says why a run failed, for what was followed */
export function requireNoFailure({ id, state, error }: Pick<Search | Scan, 'id' | 'state' | 'error'>): void {
  if (state === 'failed') throw new Error(`${id} failed: ${error}`);
}
