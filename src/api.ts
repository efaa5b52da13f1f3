import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { mountDescription } from './core/description/description.ts';
import { mountReference } from './core/description/reference.ts';
import { mountHealth } from './core/http/health.ts';
import { mountOperations } from './core/http/request.ts';
import { createServer, type ServerLimits } from './core/http/server.ts';
import { blockerLog } from './core/postgres/blockers.ts';
import { logFailure } from './core/postgres/outage.ts';
import type { Store } from './core/postgres/transaction.ts';
import type { Services } from './core/resource/services.ts';
import { readTimeZones } from './core/resource/time_zones.ts';
import { mountGraphql } from './data/graphql/mount.ts';
import { mountDataPage } from './data/page.ts';
import { products as offered } from './products.ts';
import { whyUnfit } from './service.ts';
import type { Product, ProductApi, Products } from './webhooks/product.ts';
import { mountReceiversPage } from './webhooks/receivers/page.ts';
import { terms } from './webhooks/terms.ts';

export interface ApiOptions {
  store: Store;
  services: Services;
  log: Logger;
  /** What it serves; those that this service offers when left out. */
  products?: Products;
  /** Other limits than the usual ones. */
  limits?: Partial<ServerLimits>;
}

/** The REST API: thin, it writes rows and enqueues jobs. Not yet listening. */
export async function buildApi({
  store,
  services,
  log,
  products = offered,
  limits,
}: ApiOptions): Promise<FastifyInstance> {
  await readTimeZones(store.database).catch((error) => logFailure(log, error, 'time zones were not read'));
  const app = createServer(log, { ...limits, https: services.base_url.startsWith('https:') });
  app.whenSlow = blockerLog(store.database, log);
  for (const product of products) {
    const others = products.filter((other) => other !== product).map(referred);
    const api = await product.loadApi();
    await app.register(async (scope) => mountProduct(scope, { ...product, ...api }, others, store, services));
  }
  const [first, ...others] = products;
  mountReference(app, [referred(first), ...others.map(referred)]);
  mountDataPage(app, store.database);
  mountReceiversPage(app);
  mountHealth(app, store.database, (on) => whyUnfit(on, services.vault));
  mountGraphql(app, store);
  await app.ready();
  return app;
}

const referred = ({ title, events }: Product) => ({ title, path: events.path });

/** A product's operations, its description and its other routes. */
function mountProduct(
  app: FastifyInstance,
  product: Product & ProductApi,
  others: ReturnType<typeof referred>[],
  store: Store,
  services: Services,
): void {
  const { operations, events, mountRoutes } = product;
  const { base_url } = services;
  const delivery = terms(events);
  mountDescription(app, { ...product, path: events.path, events: events.catalogue, delivery, base_url, others });
  mountOperations(app, operations, store, services);
  mountRoutes?.(app, store, services);
}
