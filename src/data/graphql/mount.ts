/**
 * `POST /graphql`, and `GET /graphiql` to explore it. What they need (PostGraphile, the schema, Ruru) is loaded by the first request for it:
 * the start of a process pays nothing, nor does a process that nobody asks.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Presented } from '../../core/access/authenticate.ts';
import { withinDeadline } from '../../core/http/deadline.ts';
import { guards } from '../../core/http/request.ts';
import type { Database } from '../../core/postgres/database.ts';
import { lagging, type Store } from '../../core/postgres/transaction.ts';
import { hasScope } from '../../core/resource/scope.ts';
import { validationProblem } from '../../core/values/validation.ts';
import { most_operations, share_of_deadline } from './limits.ts';
import { loadEndpoint, loadExplorer } from './load.ts';
import { Turns } from './turns.ts';

const Operation = z.strictObject({
  query: z.string('must be a text in GraphQL').min(1),
  variables: z.record(z.string(), z.unknown()).nullish(),
  operationName: z.string().nullish(),
  extensions: z.record(z.string(), z.unknown()).nullish(),
});
const Batch = z.array(Operation).min(1).max(most_operations, `must have at most ${most_operations} operations`);

const read_scope = 'data:read';
const personal_scope = 'data:personal';

export function mountGraphql(app: FastifyInstance, store: Store): void {
  const { database } = lagging(store);
  const turns = new Turns(connectionsFor(database));
  const endpoint = once(async () => (await loadEndpoint()).GraphqlEndpoint.open(database));
  app.route({
    method: 'POST',
    url: '/graphql',
    // Its name is that of its metrics; the description of the REST API leaves it out.
    schema: { operationId: 'graphql', hide: true } as object,
    ...guards(store.database, { scope: read_scope }),
    handler: async (request, reply) => {
      const asked = operationsOf(request.body);
      const { organization_id } = request.presented as Presented;
      const graphql = await endpoint();
      const deadline = performance.now() + app.answer_ms * share_of_deadline;
      const answer = turns.take(organization_id, () =>
        graphql.answer(asked, readerOf(request, deadline), request.log as Logger),
      );
      const { results, cost } = await withinDeadline(request, answer);
      reply.header('Rail-Query-Cost', cost).serializer(JSON.stringify);
      reply.header('Content-Type', 'application/json; charset=utf-8');
      return reply.send(Array.isArray(request.body) ? results : results[0]);
    },
  });
  const explorer = once(async () => (await loadExplorer()).openExplorer());
  for (const url of ['/graphiql', '/graphiql/static/*']) {
    app.get(url, { schema: { hide: true } as object }, async (request, reply) => (await explorer())(request, reply));
  }
}

/** A quarter of the connections of a process. */
const connectionsFor = ({ options }: Database): number => Math.floor(options.max / 4);

/** Remembers what `load` gave; what failed is tried again by the next call. */
function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((error) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

/** @throws Problem where the body is neither an operation nor a batch */
function operationsOf(body: unknown) {
  const { error, data } = Array.isArray(body) ? Batch.safeParse(body) : Operation.safeParse(body);
  if (error) throw validationProblem(error, 'body', body);
  return [data].flat();
}

function readerOf(request: FastifyRequest, deadline: number) {
  const { organization_id, scopes } = request.presented as Presented;
  return { organization_id, sees_personal: hasScope(scopes, personal_scope), deadline };
}
