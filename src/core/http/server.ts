import Fastify, { type FastifyInstance, type FastifyRequest, LogController } from 'fastify';
import type { Logger } from 'pino';
import type { z } from 'zod';
import { requestAnswered } from '../metrics/metrics.ts';
import { max_body_bytes } from '../values/api.ts';
import { newId } from '../values/id.ts';
import { refuseUnreadable, replyWithError } from './error_reply.ts';
import { readJsonStrictly } from './json_body.ts';
import { responseHeaders } from './response_headers.ts';
import { refuseUnknownPaths } from './unknown_path.ts';

/** A Fastify server that follows the API's conventions on every path: headers, error envelope, strict bodies. */
export function createServer(log: Logger): FastifyInstance {
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: () => newId('req'),
    requestIdHeader: false,
    bodyLimit: max_body_bytes,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // A proxy in the own network is believed about the visitor's address; a visitor is not.
    trustProxy: ['loopback', 'linklocal', 'uniquelocal'],
    routerOptions: { querystringParser: parseQuery, maxParamLength: 512 },
    // A path that cannot be decoded reaches no hook.
    frameworkErrors: (error, request, reply) => {
      reply.headers(responseHeaders(request));
      replyWithError(error, request, reply);
    },
    clientErrorHandler: refuseUnreadable,
  }) as unknown as FastifyInstance;
  app.decorateRequest('presented', null);
  readJsonStrictly(app);
  refuseUnknownPaths(app);
  validateByZod(app);
  app.addHook('onSend', async (request, reply) => {
    reply.headers(responseHeaders(request));
  });
  logRequests(app);
  app.setErrorHandler(replyWithError);
  return app;
}

function validateByZod(app: FastifyInstance): void {
  app.setValidatorCompiler<z.ZodType>(({ schema }) => (input) => {
    // Fastify passes null for a missing body.
    const { error, data } = schema.safeParse(input ?? undefined);
    return error ? { error } : { value: data };
  });
  // Rows leave Postgres in wire shape, so there is nothing left to serialize by schema: the schemas describe.
  app.setSerializerCompiler(() => JSON.stringify);
}

function logRequests(app: FastifyInstance): void {
  app.addHook('onResponse', async (request, reply) => {
    const { method, url } = request;
    requestAnswered(metricNameOf(request), reply.statusCode, reply.elapsedTime);
    request.log.info(
      { method, path: url.split('?')[0], status: reply.statusCode, ms: Math.round(reply.elapsedTime) },
      'request',
    );
  });
}

/** What a request is counted under: never its path as it was sent, which anybody can make up. */
function metricNameOf({ routeOptions: { schema, url } }: FastifyRequest): string {
  return (schema as { operationId?: string } | undefined)?.operationId ?? url ?? 'none';
}

const list_names = new Set(['expand', 'include']);

/** `a[]=1&a[]=2` and, for names that always hold a list, `a=1,2`. A name that comes twice without brackets keeps both values, and is refused. */
function parseQuery(text: string): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null);
  for (const [written, value] of new URLSearchParams(text)) {
    const name = written.endsWith('[]') ? written.slice(0, -2) : written;
    const before = query[name];
    if (list_names.has(name)) query[name] = [...((before as string[]) ?? []), ...value.split(',')];
    else query[name] = before === undefined ? value : [before, value].flat();
  }
  return query;
}
