import { isUtf8 } from 'node:buffer';
import type { Socket } from 'node:net';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { Logger } from 'pino';
import type { ZodError, z } from 'zod';
import { authenticate, type Presented, presentsTestKey, requireRate, unlimited } from '../access/authenticate.ts';
import { verifySignature } from '../encryption/signature.ts';
import { requestAnswered } from '../metrics/metrics.ts';
import { translateError, unstorableText } from '../postgres/errors.ts';
import { type Store, transaction } from '../postgres/transaction.ts';
import type { Operation } from '../resource/operation.ts';
import { requireScope } from '../resource/scope.ts';
import type { Services } from '../resource/services.ts';
import { newId } from '../values/id.ts';
import { Problem } from '../values/problem.ts';
import { idempotentRequest, keepReply, type Reply, storedReply } from './idempotency.ts';
import { lowerFirst, validationProblem } from './validation.ts';

/** The API's version. Additive changes never change it. */
export const api_version = '2026-11-01';

export const max_body_bytes = 1024 * 1024;
const max_body_depth = 64;

declare module 'fastify' {
  interface FastifyRequest {
    presented: Presented | null;
    rawBody: Buffer;
  }
}

/** A Fastify server that speaks the service's conventions on every path: headers, envelope, strict bodies. */
export function createServer(log: Logger): FastifyInstance {
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    genReqId: () => newId('req'),
    requestIdHeader: false,
    bodyLimit: max_body_bytes,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // What a proxy of the own network says of the visitor's address is taken; what a visitor says of it is not.
    trustProxy: ['loopback', 'linklocal', 'uniquelocal'],
    routerOptions: { querystringParser: parseQuery, maxParamLength: 512 },
    // A path that cannot be decoded reaches no hook.
    frameworkErrors: (error, request, reply) => {
      reply.headers(labels(request));
      sendProblem(asProblem(error, request), reply);
    },
    clientErrorHandler: refuseUnreadable,
  }) as unknown as FastifyInstance;
  app.decorateRequest('presented', null);
  app.decorateRequest('rawBody', null as unknown as Buffer);
  const methodsOf = knownPaths(app);
  app.addHook('onRequest', async (request) => {
    request.rawBody = Buffer.alloc(0);
    // Before anything is said of a body that nobody will read.
    if (request.is404) throw notTaken(request, methodsOf(pathOf(request)));
  });
  app.addHook('onSend', async (request, reply) => {
    reply.headers(labels(request));
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, url } = request;
    requestAnswered(nameOf(request), reply.statusCode, reply.elapsedTime);
    request.log.info(
      { method, path: url.split('?')[0], status: reply.statusCode, ms: Math.round(reply.elapsedTime) },
      'request',
    );
  });
  app.setValidatorCompiler<z.ZodType>(({ schema }) => (input) => {
    // Fastify says null for a body that is not there.
    const { error, data } = schema.safeParse(input ?? undefined);
    return error ? { error } : { value: data };
  });
  // Rows leave Postgres in wire shape, so there is nothing left to serialize by schema: the schemas describe.
  app.setSerializerCompiler(() => JSON.stringify);
  readJsonStrictly(app);
  app.setErrorHandler((error, request, reply) => sendProblem(asProblem(error, request), reply));
  return app;
}

const pathOf = ({ url }: FastifyRequest): string => url.split('?')[0] as string;

const noSuchPath = (request: FastifyRequest): Problem =>
  new Problem(
    'route_not_found',
    `No such path: ${request.method} ${pathOf(request)}. GET /v1/openapi.json lists them.`,
  );

/** 405 with `Allow` where the path is there, and only the method is none of its own. */
function notTaken(request: FastifyRequest, allowed: string[]): Problem {
  if (allowed.length === 0) return noSuchPath(request);
  const list = allowed.join(', ');
  return new Problem('method_not_allowed', `${pathOf(request)} does not take ${request.method}. It takes: ${list}.`, {
    headers: { Allow: list },
  });
}

/** Notes every route that is added from now on. @returns which methods a path takes: none where there is no such path */
function knownPaths(app: FastifyInstance): (path: string) => string[] {
  const known = new Map<string, { pattern: RegExp; methods: Set<string> }>();
  app.addHook('onRoute', ({ url, method }) => {
    const { pattern, methods } = known.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
    known.set(url, { pattern, methods: methods.union(new Set([method].flat())) });
  });
  return (path) => {
    const found = known.get(path) ?? known.values().find(({ pattern }) => pattern.test(path));
    return [...(found?.methods ?? [])];
  };
}

/** `/v1/programs/:id` as an expression that its paths match; `*` stands for the rest. */
function patternOf(url: string): RegExp {
  const segments = url.split('/').map((segment) => {
    if (segment === '*') return '.*';
    return segment.startsWith(':') ? '[^/]+' : RegExp.escape(segment);
  });
  return new RegExp(`^${segments.join('/')}$`);
}

/** The router takes nothing for an id: `/v1/programs/` is no program. */
function refuseEmptyId(request: FastifyRequest): void {
  if (Object.values(request.params as object).includes('')) throw noSuchPath(request);
}

/** What a request is counted under: never the path as it was sent, which anybody can make up. */
function nameOf({ routeOptions: { schema, url } }: FastifyRequest): string {
  return (schema as { operationId?: string } | undefined)?.operationId ?? url ?? 'none';
}

/** The headers of every response, errors included. */
function labels({ presented, headers, id }: Pick<FastifyRequest, 'presented' | 'headers' | 'id'>) {
  const { limit, remaining, reset } = presented?.rate ?? unlimited();
  const test = presented ? presented.mode === 'test' : presentsTestKey(headers);
  return {
    'X-Rail-Version': api_version,
    'X-Rail-Livemode': String(!test),
    'X-RateLimit-Limit': limit,
    'X-RateLimit-Remaining': Math.max(0, remaining),
    'X-RateLimit-Reset': reset,
    'Rail-Request-Id': id,
  };
}

/** What is not HTTP reaches no route: it is answered on the bare socket. */
function refuseUnreadable({ code }: { code?: string }, socket: Socket): void {
  if (code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const problem = new Problem('invalid_parameter', 'The request is not valid HTTP/1.1, or its headers are too long.');
  const body = JSON.stringify(problem.envelope());
  const headers = {
    ...labels({ presented: null, headers: {}, id: newId('req') }),
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 400 Bad Request\r\n${lines.join('')}\r\n${body}`);
}

/** Mounts operations: authentication, scope, signature, idempotency and the transaction are the same for all. */
export function mountOperations(app: FastifyInstance, operations: Operation[], store: Store, services: Services): void {
  for (const operation of operations) mount(app, operation, store, services);
}

function mount(app: FastifyInstance, operation: Operation, store: Store, services: Services): void {
  app.route({
    method: operation.method,
    url: routePath(operation.path),
    schema: {
      operationId: operation.name,
      tags: [operation.tag],
      summary: operation.summary,
      ...(operation.doc ? { description: operation.doc } : {}),
      params: operation.params,
      querystring: operation.query,
      ...(operation.method === 'GET' ? {} : { body: operation.body }),
      response: { [operation.status]: operation.reply },
    },
    attachValidation: true,
    onRequest: async (request) => {
      refuseEmptyId(request);
      request.presented = await authenticate(store.database, request.headers);
      requireRate(request.presented.rate);
      requireVersion(request);
      requireScope(request.presented.scopes, operation.scope);
    },
    preValidation: async (request) => requireSignature(request, request.presented as Presented),
    handler: async (request, reply) => {
      const { status, body, replayed } = await answer(request, operation, store, services);
      if (replayed) reply.header('Idempotent-Replayed', 'true');
      return reply.code(status).header('Content-Type', 'application/json; charset=utf-8').send(Buffer.from(body));
    },
  });
}

/** One request is one transaction. */
async function answer(
  request: FastifyRequest,
  operation: Operation,
  store: Store,
  services: Services,
): Promise<Reply & { replayed: boolean }> {
  const caller = request.presented as Presented;
  const idempotent = idempotentRequest(
    request.method,
    request.url,
    request.headers['idempotency-key'],
    request.rawBody,
  );
  const options = { organization_id: caller.organization_id, request_id: request.id, idempotency_key: idempotent?.key };
  const objection = await objectionTo(request, operation, services);
  const outcome = await transaction(store, options, async (tx) => {
    const first = idempotent && storedReply(tx, idempotent, services.vault);
    if (first) return { ...first, replayed: true };
    refuseInvalid(request);
    if (objection) throw objection;
    const result = await operation
      .run({ tx, caller, services, params: request.params, query: request.query, body: request.body })
      .catch(keptProblem);
    if (result instanceof Problem) return result;
    const reply = { status: operation.status, body: JSON.stringify(result) };
    if (idempotent) keepReply(tx, idempotent, reply, services.vault);
    return { ...reply, replayed: false };
  });
  if (outcome instanceof Problem) throw outcome;
  return outcome;
}

/** What the world outside has against a request. It is told only where the request is not a replay of one that was answered. */
async function objectionTo(
  request: FastifyRequest,
  { ask }: Operation,
  services: Services,
): Promise<Problem | undefined> {
  if (!ask || request.validationError) return undefined;
  try {
    await ask({ body: request.body, services });
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
  return undefined;
}

/** A refusal that has consequences: they are committed, and then it is told. */
function keptProblem(error: unknown): Problem {
  if (error instanceof Problem && error.details.keep_effects) return error;
  throw error;
}

/** Throws what validation found, only now: a reused idempotency key is told first. */
function refuseInvalid(request: FastifyRequest): void {
  const { validationError } = request;
  refuseUnstorable({ ...(request.params as object), ...(request.query as object) });
  if (!validationError) return;
  const place = validationError.validationContext as string;
  const inputs: Record<string, unknown> = { body: request.body, querystring: request.query, params: request.params };
  throw validationProblem(validationError as unknown as ZodError, place, inputs[place]);
}

/** The parameters of path and query; a body is looked at where it is read. */
function refuseUnstorable(parameters: object): void {
  const [param] = Object.entries(parameters).find(([, value]) => !isStorable(value)) ?? [];
  if (param !== undefined) throw new Problem('invalid_parameter', unstorableText().message, { param });
}

/** "The service verifies a signature whenever one is sent"; a key may demand one. */
function requireSignature(request: FastifyRequest, { secret, signature_required }: Presented): void {
  const header = request.headers['rail-signature'];
  if (typeof header === 'string') verifySignature(header, secret, request.rawBody, Date.now());
  if (header !== undefined || !signature_required) return;
  throw new Problem(
    'signature_required',
    "This key requires signed requests: send 'Rail-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256>'.",
    {
      param: 'Rail-Signature',
    },
  );
}

function requireVersion({ headers }: FastifyRequest): void {
  const asked = headers['rail-version'];
  if (asked === undefined || asked === api_version) return;
  throw new Problem('invalid_parameter', `Rail-Version must be '${api_version}', the only version so far.`, {
    param: 'Rail-Version',
  });
}

function readJsonStrictly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    request.rawBody = body as Buffer;
    if (isCompressed(request)) return done(compressed());
    if (body.length === 0) return done(null, undefined);
    if (!isUtf8(body as Buffer))
      return done(new Problem('invalid_json', 'The body is not valid JSON: it is not UTF-8.'));
    const text = body.toString('utf8');
    parse(request, text, (error, value) => {
      if (error) return done(new Problem('invalid_json', `The body is not valid JSON: ${faultOf(text)}.`));
      if (nestsDeeper(value, max_body_depth)) {
        return done(new Problem('invalid_parameter', `The body may be nested ${max_body_depth} levels deep at most.`));
      }
      if (text.includes('\\u') && !isStorable(value)) return done(unstorableText());
      done(null, value);
    });
  });
}

const isCompressed = ({ headers: { 'content-encoding': encoding = 'identity' } }: FastifyRequest): boolean =>
  encoding.toLowerCase() !== 'identity';

const compressed = (): Problem =>
  new Problem('unsupported_media_type', "The body has a 'Content-Encoding': send it uncompressed, and without one.", {
    param: 'Content-Encoding',
  });

/** What the strict reader does not say: what is wrong with a text that it refused. */
function faultOf(text: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    return lowerFirst((error as Error).message.replace(/, .* is not valid JSON$/s, '').replace(' in JSON', ''));
  }
  return "'__proto__' and 'constructor.prototype' may not be names in it";
}

/** Looks level by level: what recurses over the body afterwards cannot be made to run out of stack. */
function nestsDeeper(value: unknown, most: number): boolean {
  let level = [value];
  for (let depth = 0; depth <= most; depth++) {
    level = level.flatMap((one) => (one !== null && typeof one === 'object' ? Object.values(one) : []));
    if (level.length === 0) return false;
  }
  return true;
}

/** Whether Postgres can keep every text as it was sent: neither NUL nor half of a surrogate pair. */
function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0');
  if (value === null || typeof value !== 'object') return true;
  return Object.entries(value).every(([name, inner]) => isStorable(name) && isStorable(inner));
}

function asProblem(error: unknown, request: FastifyRequest): Problem {
  const translated = translateError(error);
  if (translated instanceof Problem) {
    if (translated.status >= 500) request.log.error({ err: error }, translated.message);
    return translated;
  }
  const { code, statusCode = 500, message } = translated as FastifyError;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new Problem('payload_too_large', 'The body may have at most 1 MiB.');
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new Problem('unsupported_media_type', "Send the body as JSON with 'Content-Type: application/json'.", {
      param: 'Content-Type',
    });
  if (statusCode < 500) return new Problem('invalid_parameter', message);
  request.log.error({ err: error }, 'a request failed');
  return new Problem('internal_error', 'Something went wrong on our side. Retry with the same idempotency key.');
}

const sendProblem = (problem: Problem, reply: FastifyReply) =>
  reply
    .code(problem.status)
    .headers(problem.details.headers ?? {})
    .header('Content-Type', 'application/json; charset=utf-8')
    .serializer(JSON.stringify)
    .send(problem.envelope());

const routePath = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ':$1');

const listed = new Set(['expand', 'include']);

/** `a[]=1&a[]=2` and, for what is always a list, `a=1,2`. A name that comes twice without brackets keeps both, and is refused. */
function parseQuery(text: string): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null);
  for (const [spelt, value] of new URLSearchParams(text)) {
    const name = spelt.endsWith('[]') ? spelt.slice(0, -2) : spelt;
    const before = query[name];
    if (listed.has(name)) query[name] = [...((before as string[]) ?? []), ...value.split(',')];
    else query[name] = before === undefined ? value : [before, value].flat();
  }
  return query;
}
