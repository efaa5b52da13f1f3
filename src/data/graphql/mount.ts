/**
 * `POST /graphql`, and `GET /graphiql` to explore it. What they need (PostGraphile, the schema, the explorer) is loaded by the first request for it:
 * the start of a process pays nothing, nor does a process that nobody asks.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Presented } from '../../core/access/authenticate.ts';
import { guards } from '../../core/http/request.ts';
import { lagging, type Store } from '../../core/postgres/transaction.ts';
import { hasScope } from '../../core/resource/scope.ts';
import { validationProblem } from '../../core/values/validation.ts';
import { most_operations } from './limits.ts';
import { QueryProblem, shownProblem } from './problem.ts';
import { GraphqlThread, type Question } from './thread.ts';

/** Loads the explorer with the first request for it. */
const loadExplorer = () => import('./explorer.ts');

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
  const thread = new GraphqlThread(lagging(store).database);
  app.addHook('onClose', () => thread.close());
  app.route({
    method: 'POST',
    url: '/graphql',
    // The name that its requests are counted under.
    schema: { operationId: 'graphql' } as object,
    ...guards(store.database, { scope: read_scope }),
    handler: async (request, reply) => {
      const question = questionOf(request);
      const { body, cost, failures } = await thread.answer(question).catch((error) => refusal(error, question));
      for (const failure of failures) request.log.error({ err: failure }, 'a GraphQL query failed');
      if (cost !== undefined) reply.header('Rail-Query-Cost', cost);
      reply.header('Content-Type', 'application/json; charset=utf-8');
      return reply.send(body);
    },
  });
  app.get('/graphiql', async (request, reply) => (await loadExplorer()).sendExplorer(request, reply));
  app.get('/graphiql/static/*', async (request, reply) => (await loadExplorer()).sendFile(request, reply));
}

function questionOf(request: FastifyRequest): Question {
  const { organization_id, scopes } = request.presented as Presented;
  return {
    asked: operationsOf(request.body),
    is_batch: Array.isArray(request.body),
    organization_id,
    sees_personal: hasScope(scopes, personal_scope),
    answer_ms: request.server.answer_ms,
  };
}

/**
 * Returns the answer for a request that the thread did not answer.
 * @throws any error that is not a problem of a query
 */
function refusal(error: unknown, { asked, is_batch }: Question) {
  if (!(error instanceof QueryProblem)) throw error;
  const results = asked.map(() => ({ errors: [shownProblem(error)] }));
  return { body: Buffer.from(JSON.stringify(is_batch ? results : results[0])), cost: undefined, failures: [] };
}

/** @throws Problem where the body is neither an operation nor a batch */
function operationsOf(body: unknown) {
  const { error, data } = Array.isArray(body) ? Batch.safeParse(body) : Operation.safeParse(body);
  if (error) throw validationProblem(error, 'body', body);
  return [data].flat();
}
