import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { mountDescription } from './core/description/description.ts';
import { mountReference } from './core/description/reference.ts';
import type { Texts } from './core/description/texts.ts';
import { mountHealth } from './core/http/health.ts';
import { mountOperations } from './core/http/request.ts';
import { createServer, type ServerLimits } from './core/http/server.ts';
import { blockerLog } from './core/postgres/blockers.ts';
import { logFailure } from './core/postgres/outage.ts';
import type { Store } from './core/postgres/transaction.ts';
import type { Operation } from './core/resource/operation.ts';
import { known_scopes } from './core/resource/scope.ts';
import type { Services } from './core/resource/services.ts';
import { readTimeZones } from './core/resource/time_zones.ts';
import { Thread } from './core/threads/thread.ts';
import { once } from './core/values/once.ts';
import { mountDashboard } from './dashboard/mount.ts';
import { mountGraphql } from './data/graphql/mount.ts';
import { mountDataPage } from './data/page.ts';
import type { Asked } from './describe_thread.ts';
import { mountGuides } from './guides/guides.ts';
import { mountAssets } from './pages/layout.ts';
import { mountPortal } from './portal/mount.ts';
import { products as offered } from './products.ts';
import { readinessOf } from './service.ts';
import type { Product, ProductApi, Products } from './webhooks/product.ts';
import { mountReceiversPage } from './webhooks/receivers/page.ts';

export interface ApiOptions {
  store: Store;
  services: Services;
  log: Logger;
  /** The products that it serves; all of this service by default. */
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
  const operations: Operation[] = [];
  for (const product of products) {
    const api = await product.loadApi();
    operations.push(...api.operations);
    const loadTexts = () => textsOf(product, products, services.base_url);
    await app.register(async (scope) => mountProduct(scope, { ...product, ...api }, loadTexts, store, services));
  }
  const [first, ...others] = products;
  mountReference(app, [referred(first), ...others.map(referred)]);
  mountDataPage(app, store.database);
  mountReceiversPage(app);
  mountGuides(app);
  mountAssets(app);
  mountDashboard(app, store, services, operations);
  mountPortal(app, store, services, operations);
  mountHealth(app, store.database, readinessOf(services.vault));
  mountGraphql(app, store);
  await app.ready();
  return app;
}

const referred = ({ title, events }: Product) => ({ title, path: events.path });

/** A product's operations, its description and its other routes. */
function mountProduct(
  app: FastifyInstance,
  product: Product & ProductApi,
  loadTexts: () => Promise<Texts>,
  store: Store,
  services: Services,
): void {
  const { operations, events, mountRoutes } = product;
  mountDescription(app, events.path, loadTexts);
  for (const scope of product.scopes) known_scopes.add(scope);
  mountOperations(app, operations, store, services);
  mountRoutes?.(app, store, services);
}

/** The texts of each product by the address that they name: all APIs of a process answer the same ones. */
const texts = new Map<string, () => Promise<Texts>>();

/** Products that the thread does not know are described here. */
async function textsOf(product: Product, products: Products, base_url: string): Promise<Texts> {
  if (products !== offered) return (await import('./describe.ts')).describe(product, products, base_url);
  const name = `${product.events.path} ${base_url}`;
  if (!texts.has(name))
    texts.set(
      name,
      once(() => makeTexts(product, base_url)),
    );
  return (texts.get(name) as () => Promise<Texts>)();
}

/** Made in a thread, which ends with that: what it loads, and the CPU, are not this one's. */
async function makeTexts(product: Product, base_url: string): Promise<Texts> {
  const options = { name: 'description', most_heap_mib: 512 };
  const thread = new Thread<Asked, Texts>(new URL('./describe_thread.ts', import.meta.url), options, () => {});
  try {
    return await thread.ask({ nth: offered.indexOf(product), base_url });
  } finally {
    void thread.close(1_000);
  }
}
