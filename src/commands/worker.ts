import { setTimeout as sleep } from 'node:timers/promises';
import { isMigrated } from '../core/postgres/migrate.ts';
import { type Running, runProcess, startWorkerOf, stopParts, stopped } from './process.ts';

/** `rail worker`: runs jobs; any number of them, and of APIs, share one database. */
export const startWorkerAlone = (): Promise<void> =>
  runProcess('worker', async (running, stopping) => {
    await whenMigrated(running, stopping);
    const worker = stopping.aborted ? undefined : startWorkerOf(running);
    await stopped(stopping);
    await stopParts({ worker }, running);
  });

/** A worker on a database that lacks migrations would only fail: it waits for them, as `/readyz` does for the API. */
async function whenMigrated({ store, log }: Running, stopping: AbortSignal): Promise<void> {
  if (await isMigrated(store.database)) return;
  log.warn("the database lacks migrations: run 'rail migrate'; waiting for them");
  while (!stopping.aborted && !(await isMigrated(store.database))) {
    await sleep(1_000, undefined, { signal: stopping }).catch(() => {});
  }
}
