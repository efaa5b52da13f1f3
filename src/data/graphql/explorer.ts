/** Altair, the page that explores the API in a browser, as its package has it built. Nothing that it loads comes from elsewhere. */
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { getDistDirectory, renderAltair } from 'altair-static';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Page, page, sendPage } from '../../core/description/description.ts';
import { Problem } from '../../core/values/problem.ts';

/** Relative, as all addresses of the page are: it works behind a proxy that puts a path in front. */
const base = 'graphiql/static/';

const first_query = `# Enter your API key under Auth. It needs the scope 'data:read'.
# Then press the button beside Docs, which loads the schema.
{
  sales(first: 5) {
    nodes { id amount_minor currency occurred_at customer { id } partner { handle } }
    aggregates { currency count amount_minor_sum }
    pageInfo { endCursor hasNextPage }
  }
}
`;

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.woff': 'font/woff',
  '.woff2': 'font/woff2',
};

/** Without a key the page would ask for the schema as soon as it opens, and be refused: it shows what to do instead, and sends nothing. */
const before_a_key = `<script>
  const send = window.fetch
  window.fetch = (input, options = {}) => {
    const { pathname } = new URL(input, document.baseURI)
    const key = new Headers(options.headers).get('Authorization') || ''
    if (!pathname.endsWith('/graphql') || /^Bearer rail_/.test(key)) return send(input, options)
    const errors = [{ message: 'Enter your API key under Auth, then press the button beside Docs.' }]
    return Promise.resolve(new Response(JSON.stringify({ errors }), { headers: { 'Content-Type': 'application/json' } }))
  }
</script>`;

const html = renderAltair({
  baseURL: base,
  endpointURL: '/graphql',
  initialQuery: first_query,
  initialAuthorization: { type: 'bearer', data: { token: '' } },
  disableAccount: true,
  instanceStorageNamespace: 'rail_',
  initialSettings: { 'alert.disableUpdateNotification': true, 'banners.disable': true, disablePushNotification: true },
})
  .replace('`/graphql`', "new URL('../../graphql', document.baseURI).href")
  .replace('<html>', '<html lang="en">')
  .replace('<title>Altair</title>', '<title>GraphQL</title>')
  .replace('<head>', () => `<head>${before_a_key}`);
const made = page(html);
const policy = policyOf(html);

export function sendExplorer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  reply.headers({ 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' });
  return sendPage(request, reply, 'text/html; charset=utf-8', made);
}

const names = new Set(readdirSync(getDistDirectory(), { recursive: true }).map(String));
/** Read by the first who asks for them. */
const files = new Map<string, Promise<Page>>();

export async function sendFile(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { '*': name } = request.params as { '*': string };
  const type = types[extname(name)];
  if (!type || !names.has(name)) throw new Problem('route_not_found', `The explorer has no file ${name}.`);
  const file = files.get(name) ?? readFile(join(getDistDirectory(), name)).then(page);
  files.set(name, file);
  return sendPage(request, reply, type, await file);
}

/** Scripts are the package's, and the page's own by their hash. Nothing is asked of another origin. */
function policyOf(text: string): string {
  const inline = [...text.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]+?)<\/script>/g)].map(([, script]) =>
    hashOf(script as string),
  );
  return [
    "default-src 'none'",
    `script-src 'self' ${inline.join(' ')}`,
    "worker-src 'self' blob:",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function hashOf(script: string): string {
  return `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
}
