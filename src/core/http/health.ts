import type { FastifyInstance } from 'fastify';
import { heldNow } from '../metrics/hold.ts';
import { withLent } from '../pool/lending.ts';
import type { Database } from '../postgres/database.ts';
import { Problem } from '../values/problem.ts';
import { withinDeadline } from './deadline.ts';

/**
 * `/healthz`: the process is up. `/readyz`: Postgres answers, the migrations are in, the API's role may do what requests need, the
 * process has the database's encryption key, and the disk that was full has space again.
 */
export function mountHealth(
  app: FastifyInstance,
  database: Database,
  whyNotReady: (on: Pick<Database, 'query'>) => Promise<string | undefined>,
): void {
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async (request) => {
    const reason = await withinDeadline(request, null, (asked) => withLent(database, asked, whyNotReady));
    if (reason === undefined) return { status: 'ready', ...heldNow() };
    throw new Problem('service_unavailable', reason, { headers: { 'Retry-After': '5' } });
  });
}
