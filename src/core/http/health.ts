import type { FastifyInstance } from 'fastify';
import { heldNow } from '../metrics/hold.ts';
import { isVerbose, type Readiness, unreachable, verboseReadiness } from '../metrics/readiness.ts';
import { withLent } from '../pool/lending.ts';
import type { Database } from '../postgres/database.ts';
import { Problem } from '../values/problem.ts';
import { withinDeadline } from './deadline.ts';
import { isDraining } from './drain.ts';

/**
 * `/healthz`: the process is up. `/readyz`: Postgres answers, the migrations are in, the API's role may do what requests need, the
 * process has the database's encryption key, and the disk that was full has space again. `/readyz?verbose` says each of these by itself.
 */
export function mountHealth(app: FastifyInstance, database: Database, { why, conditions }: Readiness): void {
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async (request, reply) => {
    if (isDraining(app.server)) throw new Problem('service_unavailable', 'The process is stopping.');
    if (isVerbose(request.url)) {
      const found = await withinDeadline(request, null, (asked) => withLent(database, asked, conditions)).catch(() => [
        unreachable,
      ]);
      const body = verboseReadiness(found, database);
      return reply.status(body.status === 'ready' ? 200 : 503).send(body);
    }
    const reason = await withinDeadline(request, null, (asked) => withLent(database, asked, why));
    if (reason === undefined) return { status: 'ready', ...heldNow() };
    throw new Problem('service_unavailable', reason, { headers: { 'Retry-After': '5' } });
  });
}
