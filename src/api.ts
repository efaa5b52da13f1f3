import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { mountHealth } from './core/health.ts';
import { createServer, mountOperations } from './core/http.ts';
import type { Services } from './core/operation.ts';
import type { Store } from './core/transaction.ts';
import { operations } from './program/index.ts';

export interface ApiOptions {
  store: Store;
  services: Services;
  log: Logger;
}

/** The REST API: thin, it writes rows and enqueues jobs. Not yet listening. */
export async function buildApi({ store, services, log }: ApiOptions): Promise<FastifyInstance> {
  const app = createServer(log);
  mountHealth(app, store.database);
  mountOperations(app, operations, store, services);
  await app.ready();
  return app;
}
