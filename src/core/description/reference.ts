import { createHash } from 'node:crypto';
import Fastify, { type FastifyInstance } from 'fastify';
import { once } from '../values/once.ts';
import { rootOf } from './described.ts';
import { type Page, page, sendPage } from './description.ts';
import { escaped, guideLinks } from './document.ts';

const script_path = '/docs/scalar.js';

/** The services of the page; the first one is shown unless another is chosen. */
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
  const reference = once(() => load(services));
  app.get('/docs', async (request, reply) => {
    const { html, policy } = await reference();
    reply.headers({ 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' });
    return sendPage(request, reply, 'text/html; charset=utf-8', html);
  });
  app.get('/docs/', async (_, reply) => reply.redirect('../docs', 301));
  app.get(script_path, async (request, reply) => {
    const { script } = await reference();
    const { hash } = request.query as { hash?: string };
    if (hash === script.hash) reply.header('Cache-Control', 'public, max-age=31536000, immutable');
    return sendPage(request, reply, 'text/javascript; charset=utf-8', script);
  });
  // A browser asks for it by itself.
  app.get('/favicon.ico', async (_, reply) => reply.code(204).header('Cache-Control', 'public, max-age=86400').send());
}

/** `GET /` leads to the description; a client that asks for JSON gets the addresses of its texts, relative to this one. */
function mountRoot(app: FastifyInstance, path: string): void {
  const addresses = { docs: 'docs', openapi: `${path.slice(1)}/openapi.json`, llms: 'llms.txt', health: 'healthz' };
  app.get('/', async ({ headers: { accept = '' } }, reply) => {
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
  const [given = '', script_text = ''] = await Promise.all(
    ['/docs/', '/docs/js/scalar.js'].map(async (path) => (await source.inject(path)).body),
  );
  await source.close();
  const script = page(script_text);
  const html = withHead(given.replace(script_path.slice(1), `${script_path.slice(1)}?hash=${script.hash}`), of);
  return { html: page(html), script, policy: policyOf(html) };
}

/** Adds the text that is read before the script has loaded, and without it: a summary, and links to the descriptions as text. */
function withHead(html: string, services: ReferredServices): string {
  const texts = services
    .map(
      ({ title, path }) =>
        `<li><a href="${rootOf(path).slice(1)}${path === '/v1' ? '' : '/'}llms-full.txt">${escaped(title)} API as text</a></li>`,
    )
    .join('');
  const links = `${guideLinks('docs/')} <a href="llms.txt">llms.txt</a>`;
  return html
    .replace('<html>', '<html lang="en">')
    .replace('</head>', `<style>${head_style}</style></head>`)
    .replace(
      '<div id="app"></div>',
      `<header class="head"><strong>${escaped(services[0].title)} API</strong> <nav aria-label="Documentation">${links}</nav></header>
    <div id="app"></div>
    <div class="before"><p>The reference is loading. It is also there as text:</p><ul>${texts}</ul></div>
    <noscript><p class="before">The reference needs JavaScript. The texts above do not.</p></noscript>`,
    );
}

const head_style = `:root { --scalar-custom-header-height: 44px; color-scheme: light dark }
  body { margin: 0 }
  .head { box-sizing: border-box; height: 44px; padding: 0 1rem; display: flex; gap: 1.5rem; align-items: center; position: sticky; top: 0; z-index: 20; white-space: nowrap; overflow-x: auto;
    font: 15px/1.5 system-ui, sans-serif; background: var(--scalar-background-1, Canvas); color: var(--scalar-color-1, CanvasText); border-bottom: 1px solid var(--scalar-border-color, #ccc) }
  .head a { color: inherit; margin-right: .75rem } #app:not(:empty) ~ .before { display: none } .before { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem }`;

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
  // The key that was typed is kept by the browser over a reload.
  persistAuth: true,
  customCss,
});

/** Webhooks are sent by the service, so there is nothing to request. There are no libraries of clients, and no need to name the page's. */
const customCss = `[id*="/webhook/"] .show-api-client-button { display: none }
.scalar-reference-intro-clients, a[href$="//www.scalar.com"] { display: none }`;

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
