import { setTimeout as sleep } from 'node:timers/promises';
import { whyUnfit } from '../service.ts';
import { type Running, runProcess, startWorkerOf } from './process.ts';
import { stopParts, stopped } from './stop.ts';

/** `rail worker`: runs jobs; any number of them, and of APIs, share one database. */
export const startWorkerAlone = (): Promise<void> =>
  runProcess('worker', async (running, stopping) => {
    await whenReady(running, stopping);
    const worker = stopping.aborted ? undefined : await startWorkerOf(running);
    await stopped(stopping);
    await stopParts({ worker }, running);
  });

/** A worker on a database without its migrations or privileges would only fail: it waits for them, as `/readyz` does for the API. */
async function whenReady({ store, services, log }: Running, stopping: AbortSignal): Promise<void> {
  const reason = await whyUnfit(store.database, services.vault);
  if (reason === undefined) return;
  log.warn(`${reason} The worker starts after that.`);
  while (!stopping.aborted && (await whyUnfit(store.database, services.vault)) !== undefined) {
    await sleep(1_000, undefined, { signal: stopping }).catch(() => {});
  }
}
