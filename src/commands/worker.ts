import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { isMigrated } from '../core/migrate.ts';
import { type Running, runProcess, startWorkerOf, stopParts, stopped } from './process.ts';

/** `rail worker`: runs jobs; any number of them, and of APIs, share one database. */
export function startWorkerAlone(): Promise<void> {
  keepMemorySmall();
  return runProcess('use', async (running, stopping) => {
    await whenMigrated(running, stopping);
    const worker = stopping.aborted ? undefined : startWorkerOf(running);
    await stopped(stopping);
    await stopParts({ worker }, running);
  });
}

/** On a large machine V8 lets garbage lie until half a gigabyte of it has gathered; a worker is to stay below 200 MB. */
function keepMemorySmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=20');
}

/** A worker on a database that lacks migrations would only fail: it waits for them, as `/readyz` does for the API. */
async function whenMigrated({ store, log }: Running, stopping: AbortSignal): Promise<void> {
  if (await isMigrated(store.database)) return;
  log.warn("the database lacks migrations: run 'rail migrate'; waiting for them");
  while (!stopping.aborted && !(await isMigrated(store.database))) {
    await sleep(1_000, undefined, { signal: stopping }).catch(() => {});
  }
}
