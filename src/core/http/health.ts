import type { FastifyInstance } from 'fastify';
import type { Database } from '../postgres/database.ts';
import { whyNotReady } from '../postgres/migrate.ts';
import { Problem } from '../values/problem.ts';
import { withinDeadline } from './deadline.ts';

/** `/healthz`: the process is up. `/readyz`: Postgres answers, the migrations are in, and the API's role may do what requests need. */
export function mountHealth(app: FastifyInstance, database: Database): void {
  const hidden = { hide: true } as object;
  app.get('/healthz', { schema: hidden }, async () => ({ status: 'ok' }));
  app.get('/readyz', { schema: hidden }, async (request) => {
    const reason = await withinDeadline(request, whyNotReady(database));
    if (reason === undefined) return { status: 'ready' };
    throw new Problem('service_unavailable', reason, { headers: { 'Retry-After': '5' } });
  });
}
