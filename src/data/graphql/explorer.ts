/** Ruru, the page that explores the API in a browser, from its package: grafserv serves it, and nothing it loads comes from elsewhere. */
import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { grafserv } from 'postgraphile/grafserv/fastify/v5';

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

const page_path = '/graphiql';
const static_path = '/graphiql/static/';

/** What a new tab holds: where the key goes, in characters that a header may have, and a first query. */
const first_tab = {
  defaultHeaders: '{ "Authorization": "Bearer YOUR_API_KEY" }',
  defaultQuery: `# Enter your API key under Headers below.
# It needs the scope 'data:read'.
# Then press Shift-Ctrl-R, which loads the schema for the documentation.
{
  sales(first: 5) {
    nodes { id amount_minor currency occurred_at customer { id } partner { handle } }
    aggregates { currency count amount_minor_sum }
    pageInfo { endCursor hasNextPage }
  }
}
`,
};

/**
 * Without a key the page would ask for the schema as soon as it opens, and be refused: it is told what to do instead, and asks nobody. What is
 * pale is darkened, so that it can be read.
 */
const before_a_key = `<style>
  .graphiql-container, .graphiql-dialog, .graphiql-tooltip { --alpha-secondary: 1 !important; --alpha-tertiary: .85 !important }
</style>
<script>
  const send = window.fetch
  window.fetch = (input, options = {}) => {
    const { pathname } = new URL(input, document.baseURI)
    const key = new Headers(options.headers).get('Authorization') || ''
    if (!pathname.endsWith('/graphql') || /^Bearer rail_/.test(key)) return send(input, options)
    const errors = [{ message: 'Enter your API key under Headers, then press Shift-Ctrl-R.' }]
    return Promise.resolve(new Response(JSON.stringify({ errors }), { headers: { 'Content-Type': 'application/json' } }))
  }
</script>`;

/** Gives the handler of the page and of its files. */
export async function openExplorer(): Promise<Handler> {
  const handlers = new Map<string, Handler>();
  const server = grafserv({
    schema: null as never,
    preset: {
      grafserv: { graphqlPath: '/graphql', graphiqlPath: page_path, graphiqlStaticPath: static_path, graphiql: true },
      ruru: { clientConfig: first_tab },
    } as GraphileConfig.Preset,
  });
  await server.ready();
  // The API has its routes already: from grafserv's own come the handlers.
  const routes = { route: ({ url, handler }: { url: string; handler: Handler }) => handlers.set(url, handler) };
  await server.addTo(routes as unknown as FastifyInstance);
  const page = handlers.get(page_path) as Handler;
  const file = handlers.get(`${static_path}*`) as Handler;
  return async (request, reply) => {
    reply.serializer((payload: unknown) => payload as string);
    if (request.routeOptions.url !== page_path) return file(request, reply);
    // Its scripts are known by their hash, which a compressed page would hide.
    delete request.headers['accept-encoding'];
    const html = String(await page(request, reply)).replace('</head>', () => `${before_a_key}</head>`);
    reply.headers({ 'Content-Security-Policy': policyOf(html), 'Referrer-Policy': 'no-referrer' });
    return html;
  };
}

/** Scripts are the package's, and the page's own by their hash. Nothing is asked of another origin. */
function policyOf(html: string): string {
  const inline = [...html.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]+?)<\/script>/g)].map(([, text]) =>
    hashOf(text as string),
  );
  return [
    "default-src 'none'",
    `script-src 'self' ${inline.join(' ')}`,
    "worker-src 'self' blob:",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

const hashOf = (script: string): string => `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
