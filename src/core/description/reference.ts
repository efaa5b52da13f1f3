import { createHash } from 'node:crypto';
import Fastify, { type FastifyInstance } from 'fastify';
import { type Page, page, sendPage } from './description.ts';

const script_path = '/docs/scalar.js';

/** What the page shows, the first one unless another is chosen. */
type ReferredServices = [ReferredService, ...ReferredService[]];
interface ReferredService {
  title: string;
  path: string;
}

interface Reference {
  html: Page;
  script: Page;
  policy: string;
}

/**
 * `GET /docs`: the description for people, in a browser, without a key. Everything it loads comes from here, by relative addresses, so
 * that it works behind a proxy that puts a path in front; the policy has the browser refuse anything else.
 */
export function mountReference(app: FastifyInstance, services: ReferredServices): void {
  mountRoot(app, services[0].path);
  let loading: Promise<Reference> | undefined;
  const reference = () => {
    loading ??= load(services);
    return loading;
  };
  const schema = { hide: true } as object;
  app.get('/docs', { schema }, async (request, reply) => {
    const { html, policy } = await reference();
    reply.headers({ 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' });
    return sendPage(request, reply, 'text/html; charset=utf-8', html);
  });
  app.get('/docs/', { schema }, async (_, reply) => reply.redirect('../docs', 301));
  app.get(script_path, { schema }, async (request, reply) =>
    sendPage(request, reply, 'text/javascript; charset=utf-8', (await reference()).script),
  );
}

/** `GET /` leads to the description; a client that asks for JSON gets the addresses of its texts, relative to this one. */
function mountRoot(app: FastifyInstance, path: string): void {
  const addresses = { docs: 'docs', openapi: `${path.slice(1)}/openapi.json`, llms: 'llms.txt', health: 'healthz' };
  app.get('/', { schema: { hide: true } as object }, async ({ headers: { accept = '' } }, reply) => {
    reply.header('Vary', 'Accept');
    const wants_json = accept.includes('application/json') && !accept.includes('text/html');
    return wants_json ? addresses : reply.redirect('docs', 302);
  });
}

/**
 * Scalar's page and script never change while the process runs: its plugin is asked for them once, on a server of its own. That takes a
 * tenth of a second and some megabytes, which only a process pays that somebody asked for the page.
 */
async function load(of: ReferredServices): Promise<Reference> {
  const { default: scalar } = await import('@scalar/fastify-api-reference');
  const source = Fastify();
  await source.register(scalar, { routePrefix: '/docs', configuration: configurationOf(of) });
  const [html, script] = await Promise.all(
    ['/docs/', '/docs/js/scalar.js'].map(async (path) => (await source.inject(path)).body),
  );
  await source.close();
  return { html: page(html as string), script: page(script as string), policy: policyOf(html as string) };
}

/** `v1`, `recruitment-v1`: what addresses of the page name a service by. */
const slugOf = (path: string): string => path.slice(1).replaceAll('/', '-');

/** Without what would lead to services of others: fonts, telemetry, a proxy for requests, assistants and a client on the web. */
const configurationOf = (services: ReferredServices) => ({
  pageTitle: `${services[0].title} API`,
  cdn: script_path.slice(1),
  sources: services.map(({ title, path }) => ({
    ...{ title, slug: slugOf(path), url: `${path.slice(1)}/openapi.json` },
  })),
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never' as const,
  documentDownloadType: 'direct' as const,
  orderSchemaPropertiesBy: 'preserve' as const,
  // Webhooks are sent by the service, so there is nothing to request.
  customCss: '[id*="/webhook/"] .show-api-client-button { display: none }',
});

/** Scripts are the package's, and the page's own by their hash; styles stand in attributes, where nothing can vouch for them. */
function policyOf(html: string): string {
  const inline = [...html.matchAll(/<script[^>]*>([^<]+)<\/script>/g)].map(([, text]) => hashOf(text as string));
  return [
    "default-src 'none'",
    `script-src 'self' ${inline.join(' ')}`,
    "style-src 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

const hashOf = (script: string): string => `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
