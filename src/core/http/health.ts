import type { FastifyInstance } from 'fastify';
import type { Database } from '../postgres/database.ts';
import { isMigrated } from '../postgres/migrate.ts';
import { Problem } from '../values/problem.ts';

/** `/healthz`: the process is up. `/readyz`: Postgres answers and the migrations are in. */
export function mountHealth(app: FastifyInstance, database: Database): void {
  const hidden = { hide: true } as object;
  app.get('/healthz', { schema: hidden }, async () => ({ status: 'ok' }));
  app.get('/readyz', { schema: hidden }, async () => {
    if (await isMigrated(database)) return { status: 'ready' };
    throw new Problem('service_unavailable', "The database is missing migrations. Run 'rail migrate'.", {
      headers: { 'Retry-After': '5' },
    });
  });
}
