import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { mountDescription } from './core/description/description.ts';
import { mountReference } from './core/description/reference.ts';
import { mountHealth } from './core/http/health.ts';
import { mountOperations } from './core/http/request.ts';
import { createServer } from './core/http/server.ts';
import type { Schedule } from './core/jobs/schedule.ts';
import type { Store } from './core/postgres/transaction.ts';
import type { Services } from './core/resource/services.ts';
import { products, schedules } from './products.ts';
import { terms } from './webhooks/terms.ts';

export interface ApiOptions {
  store: Store;
  services: Services;
  log: Logger;
}

/** The REST API: thin, it writes rows and enqueues jobs. Not yet listening. */
export async function buildApi({ store, services, log }: ApiOptions): Promise<FastifyInstance> {
  const app = createServer(log);
  const sweep = schedules.find(({ name }) => name === 'webhooks/place_due_retries') as Schedule;
  for (const { operations, events, guide, mountRoutes } of products) {
    await mountDescription(app, {
      ...{ operations, guide, delivery: terms(sweep.cron), base_url: services.base_url },
      events: events.catalogue,
      event_id_prefix: events.id_prefix,
    });
    mountOperations(app, operations, store, services);
    mountRoutes?.(app, store, services);
  }
  mountReference(app);
  mountHealth(app, store.database);
  await app.ready();
  return app;
}
