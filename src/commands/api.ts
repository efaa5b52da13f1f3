import { whyUnfit } from '../service.ts';
import { listenOn, runProcess } from './process.ts';
import { stopParts, stopped } from './stop.ts';

/** `rail api`: the API alone; any number of them, and of workers, share one database. */
export const startApi = (): Promise<void> =>
  runProcess('api', async (running, stopping) => {
    const { config, log, store, services } = running;
    const reason = await whyUnfit(store.database, services.vault);
    if (reason !== undefined) log.warn(`${reason} Until then, requests fail and /readyz answers 503.`);
    const { app, port } = await listenOn([config.PORT], running);
    log.info({ host: config.HOST, port }, 'api ready');
    await stopped(stopping);
    await stopParts({ app }, running);
  });
