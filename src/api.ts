import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { mountDescription } from './core/description/description.ts';
import { mountReference } from './core/description/reference.ts';
import { mountHealth } from './core/http/health.ts';
import { createServer, mountOperations } from './core/http/server.ts';
import type { Schedule } from './core/jobs/schedule.ts';
import type { Store } from './core/postgres/transaction.ts';
import type { Services } from './core/resource/services.ts';
import { guide } from './program/guide.ts';
import { events, operations } from './program/index.ts';
import { mountShortLinks } from './program/tracking/short_link.ts';
import { schedules } from './schedule.ts';
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
  const delivery = terms(sweep.cron);
  const { catalogue, id_prefix: event_id_prefix } = events;
  await mountDescription(app, {
    operations,
    events: catalogue,
    event_id_prefix,
    guide,
    delivery,
    base_url: services.base_url,
  });
  mountReference(app);
  mountHealth(app, store.database);
  mountOperations(app, operations, store, services);
  mountShortLinks(app, store, services);
  await app.ready();
  return app;
}
