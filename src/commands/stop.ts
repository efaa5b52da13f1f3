/** Ends the parts of a process. */
import type { FastifyInstance } from 'fastify';
import { drain } from '../core/http/drain.ts';
import { closeStore } from '../service.ts';
import type { Running } from './process.ts';

/** The time for requests that are running when it stops. */
const requests_ms = 5_000;
/** The time in which everything but Postgres must stop: "within 10 seconds" less the time of Postgres. */
const stop_ms = 9_000;

export const stopped = (stopping: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (stopping.aborted) resolve();
    stopping.addEventListener('abort', () => resolve(), { once: true });
  });

interface Parts {
  app?: FastifyInstance | undefined;
  worker?: { stop(): Promise<void> } | undefined;
}

/** Takes nothing new, finishes what runs, lets go of jobs and connections. Nothing may hold it up for longer than it has. */
export async function stopParts({ app, worker }: Parts, { store, log, config }: Running): Promise<void> {
  log.info('stopping: what runs may finish');
  const drain_ms = config.DRAIN_SECONDS * 1_000;
  const all = Promise.all([app && closeApi(app, drain_ms), worker?.stop()]).then(() => closeStore(store));
  const late = AbortSignal.timeout(stop_ms + (app ? drain_ms : 0));
  await Promise.race([all, stopped(late)]);
  if (late.aborted) log.warn('stopped before everything had finished: its jobs are run again');
  all.catch(() => {});
}

/** A connection that is kept alive goes as soon as its request is answered; whoever takes too long is cut off. */
async function closeApi(app: FastifyInstance, drain_ms: number): Promise<void> {
  if (drain_ms > 0) await drain(app.server, drain_ms, requests_ms);
  const let_go = setInterval(() => app.server.closeIdleConnections(), 50);
  const cut_off = setTimeout(() => app.server.closeAllConnections(), requests_ms);
  await app.close();
  clearInterval(let_go);
  clearTimeout(cut_off);
}
