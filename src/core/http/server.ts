import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, LogController } from 'fastify';
import type { Logger } from 'pino';
import type { z } from 'zod';
import { KeyLeases } from '../access/key_leases.ts';
import { requestAnswered } from '../metrics/metrics.ts';
import { addressOf, no_proxies, type TrustedProxies, warnOfUnknownProxies } from '../net/client_address.ts';
import { ReadingLimit } from '../postgres/reading_limit.ts';
import { withoutAbsent } from '../values/absent.ts';
import { default_address_rate, max_body_bytes } from '../values/api.ts';
import { newId } from '../values/id.ts';
import { AddressRate } from './address_rate.ts';
import { type ConnectionLimits, closeUnlessRead, default_connection_limits, limitConnections } from './connections.ts';
import { ClientGone, default_answer_ms } from './deadline.ts';
import { isDraining } from './drain.ts';
import { refuseUnreadable, replyWithError } from './error_reply.ts';
import { readJsonStrictly } from './json_body.ts';
import { answerExpectations, requireClearHeaders } from './request_headers.ts';
import { responseHeaders } from './response_headers.ts';
import { default_reader_limits, type OpenStreams, type ReaderLimits } from './row_streams.ts';
import { refuseUnknownPaths } from './unknown_path.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The log shows the route, because whoever knows the path may act by it. */
    logs_route?: boolean;
    /** Requests of the route carry proof of who sends them: those without it are counted where it is checked. */
    counts_refusals?: boolean;
  }
  interface FastifyInstance {
    address_rate: AddressRate;
    key_leases: KeyLeases;
    answer_ms: number;
    /** Called for requests that have taken half of the time that they may. */
    whenSlow: () => void;
    reader_limits: ReaderLimits;
    open_streams: OpenStreams;
    reading_limit: ReadingLimit;
  }
}

/** Limits for clients that have not authenticated. */
export interface ServerLimits extends ConnectionLimits, ReaderLimits {
  /** Requests without a valid key in each second from one address; 0 for any number. */
  address_rate: number;
  /** The time that a request waits for Postgres before it answers 503. */
  answer_ms: number;
  /** The proxies whose word about the visitor's address is trusted. */
  proxies: TrustedProxies;
}

export interface ServerOptions extends Partial<ServerLimits> {
  /** True if clients reach it by https, through a proxy. */
  https?: boolean;
}

/** A Fastify server that follows the API's conventions on every path: headers, error envelope, strict bodies, limits. */
export function createServer(log: Logger, { https = false, ...given }: ServerOptions = {}): FastifyInstance {
  const limits: ServerLimits = {
    ...default_connection_limits,
    ...default_reader_limits,
    address_rate: default_address_rate,
    answer_ms: default_answer_ms,
    proxies: no_proxies,
    ...given,
  };
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    // "The API call (`req_…`)", "dashboard action (a uuid)".
    genReqId: ({ url = '' }) => (page_paths.test(url) ? randomUUID() : newId('req')),
    requestIdHeader: false,
    bodyLimit: max_body_bytes,
    requestTimeout: limits.request_ms,
    connectionTimeout: limits.silence_ms,
    rewriteUrl: ({ url = '/' }) => originForm(url),
    http: {
      requireHostHeader: false,
      headersTimeout: limits.headers_ms,
      connectionsCheckingInterval: Math.min(1_000, limits.headers_ms),
    },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    trustProxy: limits.proxies,
    routerOptions: { querystringParser: parseQuery, maxParamLength: 512 },
    // Fastify loads its own compilers at the start unless it is given others. `validateByZod` sets those that are used.
    schemaController: { compilersFactory: { buildValidator: neverBuilt, buildSerializer: neverBuilt } },
    // A path that cannot be decoded reaches no hook.
    frameworkErrors: (error, request, reply) => {
      reply.headers(responseHeaders(request, https));
      replyWithError(error, request, reply);
    },
    clientErrorHandler: (error, socket) => refuseUnreadable(error, socket, https),
  }) as unknown as FastifyInstance;
  limitConnections(app.server, limits.connections, log);
  app.decorateRequest('presented', null);
  app.decorate('address_rate', new AddressRate(limits.address_rate));
  app.decorate('key_leases', new KeyLeases());
  app.decorateRequest('giveUp', undefined);
  app.decorate('answer_ms', limits.answer_ms);
  app.decorate('whenSlow', () => {});
  app.decorate('reader_limits', limits);
  app.decorate('open_streams', new Map());
  app.decorate('reading_limit', new ReadingLimit());
  limitUnauthenticated(app);
  warnOfUnknownProxies(app, limits.proxies);
  requireClearHeaders(app);
  answerExpectations(app);
  readJsonStrictly(app);
  refuseUnknownPaths(app);
  validateByZod(app);
  let is_stopping = false;
  app.addHook('preClose', async () => {
    is_stopping = true;
  });
  app.addHook('onSend', async (request, reply) => {
    const { 'Cache-Control': no_store, ...headers } = responseHeaders(request, https);
    reply.headers(headers);
    if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', no_store);
    if (closeUnlessRead(request.raw) || is_stopping || isDraining(app.server)) reply.header('Connection', 'close');
  });
  logRequests(app);
  app.setErrorHandler(replyWithError);
  return app;
}

/** The paths of pages for people. */
const page_paths = /^\/(?:dashboard|portal|join)(?:[/?]|$)/;

/** `/v1/programs` of `http://rail.example.com/v1/programs`: a request may be made of its whole URL, as to a proxy. */
const originForm = (url: string): string => /^https?:\/\/[^/?#]+(.*)/is.exec(url)?.[1]?.replace(/^(?!\/)/, '/') ?? url;

/** Counts requests by address that need no key, or whose path does not exist. A request that needs a key is counted where the key is looked up. */
function limitUnauthenticated(app: FastifyInstance): void {
  app.addHook('onRequest', async (request) => {
    if (request.routeOptions.config.counts_refusals)
      app.address_rate.requireLeft(addressOf(request), request.headers.authorization);
    else if (!isOperation(request)) app.address_rate.count(addressOf(request));
  });
}

const isOperation = ({ routeOptions: { schema } }: FastifyRequest): boolean =>
  (schema as { operationId?: string } | undefined)?.operationId !== undefined;

function neverBuilt(): never {
  throw new Error('A compiler was asked for before it was set.');
}

function validateByZod(app: FastifyInstance): void {
  app.setValidatorCompiler<z.ZodType>(({ schema, method, httpPart }) => {
    // To an update, null says that a field is to be emptied.
    const creates = httpPart === 'body' && method !== 'PATCH';
    return (input) => {
      // Fastify passes null for a missing body.
      const { error, data } = schema.safeParse((creates ? withoutAbsent(schema, input) : input) ?? undefined);
      return error ? { error } : { value: data };
    };
  });
  // Rows leave Postgres in wire shape, so there is nothing left to serialize by schema: the schemas describe.
  app.setSerializerCompiler(() => JSON.stringify);
}

/** Somebody asks every few seconds. */
const probes = new Set(['/healthz', '/readyz']);

function logRequests(app: FastifyInstance): void {
  const shown = shownPaths(app);
  const answered = new WeakSet<FastifyRequest>();
  const log = (request: FastifyRequest, reply: FastifyReply, message: string) => {
    const { method, routeOptions, presented } = request;
    // The key of a request that was given up before its key was looked up may be known from earlier ones.
    const { organization_id, api_key_id } = presented ?? app.address_rate.ownerOf(request.headers.authorization) ?? {};
    request.log[probes.has(routeOptions.url ?? '') ? 'debug' : 'info'](
      {
        ...{ method, path: shown(request), status: reply.statusCode, ms: Math.round(reply.elapsedTime) },
        ...{ organization_id, api_key_id },
      },
      message,
    );
  };
  app.addHook('onResponse', async (request, reply) => {
    answered.add(request);
    requestAnswered(metricNameOf(request), reply.statusCode, reply.elapsedTime);
    log(request, reply, 'request');
  });
  // The response of a client that left, and of a stream that was cut, never ends.
  app.addHook('onRequest', async (request, reply) => {
    reply.raw.once('close', () => {
      if (answered.has(request)) return;
      log(request, reply, 'request aborted');
      request.giveUp?.(new ClientGone('The client is gone.'));
    });
  });
}

/** Notes every route that is added from now on. @returns what the log shows of a path: of secret ones the route, whatever was asked of them */
function shownPaths(app: FastifyInstance): (request: FastifyRequest) => string | undefined {
  const secret = new Set<string>();
  app.addHook('onRoute', ({ url, config }) => {
    if (config?.logs_route) secret.add(url);
  });
  const begins = (path: string) => (url: string) => path.startsWith(url.slice(0, url.indexOf(':')));
  return ({ url, is404, routeOptions }) => {
    if (routeOptions.config.logs_route) return routeOptions.url;
    const path = url.split('?')[0] as string;
    return is404 ? (secret.values().find(begins(path)) ?? path) : path;
  };
}

/** Returns the name that a request is counted under: never its path as it was sent, which anybody can make up. */
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
