/** 404 and 405: paths that are not there, and methods that a path does not support. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Operation, routePath } from '../resource/operation.ts';
import { Problem } from '../values/problem.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route that stands for methods which its path does not support. */
    is_refusal?: boolean;
  }
}

/** Refuses unknown paths and methods, before anything is said of a body that nobody will read. Knows the routes that are added after it. */
export function refuseUnknownPaths(app: FastifyInstance): void {
  const methodsOf = knownPaths(app);
  app.addHook('onRequest', async (request) => {
    if (request.is404) throw notFoundOrNotAllowed(request, methodsOf(pathOf(request)));
  });
}

/** The router accepts an empty id: `/v1/programs/` is not a program. */
export function refuseEmptyId(request: FastifyRequest): void {
  if (Object.values(request.params as object).includes('')) throw noSuchPath(request);
}

/**
 * Refuses methods of a path such as `/v1/prospects/bulk` that only `/v1/prospects/{id}` supports: the router would take `bulk` for an id.
 * To be called once the operations are mounted.
 */
export function refuseWordsAsIds(app: FastifyInstance, operations: Operation[]): void {
  const by_path = [...Map.groupBy(operations, ({ path }) => path)].map(([path, own]) => {
    return { path, own, pattern: patternOf(routePath(path)) };
  });
  for (const { path, own } of by_path) {
    const allowed = own.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    const others = by_path.filter((other) => other.path !== path && other.pattern.test(path)).flatMap(({ own }) => own);
    const method = [...new Set(others.map((other) => other.method as string).filter((one) => !allowed.includes(one)))];
    if (method.length > 0) refuseMethods(app, path, method, allowed);
  }
}

function refuseMethods(app: FastifyInstance, path: string, method: string[], allowed: string[]): void {
  const refuse = async (request: FastifyRequest) => {
    throw notAllowed(request, allowed);
  };
  app.route({
    ...{ method, url: routePath(path) },
    config: { is_refusal: true },
    ...{ onRequest: refuse, handler: refuse },
  });
}

/** 405 with `Allow` where the path exists, 404 where it does not. */
const notFoundOrNotAllowed = (request: FastifyRequest, allowed: string[]): Problem =>
  allowed.length === 0 ? noSuchPath(request) : notAllowed(request, allowed);

function notAllowed(request: FastifyRequest, allowed: string[]): Problem {
  const list = allowed.join(', ');
  return new Problem(
    'method_not_allowed',
    `${pathOf(request)} does not support ${request.method}. Use one of: ${list}.`,
    { headers: { Allow: list } },
  );
}

function noSuchPath(request: FastifyRequest): Problem {
  const path = pathOf(request);
  const description = descriptionOf(path, request.server);
  return new Problem(
    'route_not_found',
    `${request.method} ${path} does not exist. GET ${description} lists all paths.`,
  );
}

/** Returns the description of the product whose path it begins with; else of the first product: `/recruitment/v1/openapi.json` of `/recruitment/v1/brand`. */
function descriptionOf(path: string, app: FastifyInstance): string {
  const [, root = ''] = path.split('/');
  const own = `/${root}/v1/openapi.json`;
  return app.hasRoute({ method: 'GET', url: own }) ? own : '/v1/openapi.json';
}

const pathOf = ({ url }: FastifyRequest): string => url.split('?')[0] as string;

/** Notes every route that is added from now on. @returns which methods a path supports: none where the path does not exist */
function knownPaths(app: FastifyInstance): (path: string) => string[] {
  const known = new Map<string, { pattern: RegExp; methods: Set<string> }>();
  app.addHook('onRoute', ({ url, method, config }) => {
    if (config?.is_refusal) return;
    const { pattern, methods } = known.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
    known.set(url, { pattern, methods: methods.union(new Set([method].flat())) });
  });
  return (path) => {
    const route = known.get(path) ?? known.values().find(({ pattern }) => pattern.test(path));
    return [...(route?.methods ?? [])];
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
