import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { request } from 'undici';
import { buildApi } from '../../../src/api.ts';
import { closeApi, type Json, log, services, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const places = [rail.address, await startProxy('/rail')];

for (const [nth, place] of places.entries()) {
  t.test(`shows the API in a browser, without a key, ${nth === 0 ? 'directly' : 'below a path'}`, async (t) => {
    const response = await fetch(`${place}/docs`);
    t.equal(response.status, 200);
    t.equal(response.headers.get('content-type'), 'text/html; charset=utf-8');
    t.match(response.headers.get('rail-request-id'), /^req_/);
    const html = await response.text();

    const sources = [...html.matchAll(/src="([^"]*)"/g)].map(([, source]) => new URL(source as string, response.url));
    t.equal(sources.length, 1, 'loads one script and nothing else');
    const script = await fetch(sources[0] as URL);
    t.equal(new URL(script.url).origin, new URL(place).origin);
    t.equal(script.headers.get('content-type'), 'text/javascript; charset=utf-8');
    t.match(await script.text(), 'createApiReference');
    t.equal(script.headers.get('cache-control'), 'public, max-age=31536000, immutable');

    t.match(html, '<html lang="en">');
    const links = [...html.matchAll(/<a href="([^"]*)"/g)].map(([, link]) => new URL(link as string, response.url));
    t.equal(links.length, 8, 'what can be read before the script has loaded');
    for (const link of links) {
      t.equal((await fetch(link)).status, 200, link.pathname);
      t.equal(link.origin, new URL(place).origin);
    }

    const shown = settingsIn(html).sources as Json[];
    t.same(
      shown.map(({ title, slug }) => [title, slug]),
      [
        ['Rail', 'v1'],
        ['Rail Recruitment', 'recruitment-v1'],
      ],
    );
    for (const { title, url } of shown) {
      const description = await fetch(new URL(url, response.url));
      t.equal(new URL(description.url).origin, new URL(place).origin);
      t.match(await description.json(), { openapi: '3.1.0', info: { title } });
    }
  });
}

t.test('a browser that shows it can reach no other host', async (t) => {
  const response = await fetch(`${rail.address}/docs`);
  const html = await response.text();
  t.notMatch(html, /https?:\/\//, 'the page names no host');
  const policy = Object.fromEntries(
    (response.headers.get('content-security-policy') as string).split('; ').map((line) => {
      const [name = '', ...allowed] = line.split(' ');
      return [name, allowed];
    }),
  );
  t.same(policy['default-src'], ["'none'"]);
  t.same(policy['connect-src'], ["'self'"]);
  t.same(
    policy['script-src'],
    ["'self'", hashOf(scriptIn(html))],
    'its own script runs, and no other that stands in a page',
  );
  const allowed = Object.values(policy).flat();
  t.ok(allowed.every((source) => /^('none'|'self'|'unsafe-inline'|data:|'sha256-.*')$/.test(source)));
  t.match(settingsIn(html), {
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    hideClientButton: true,
  });
  t.notOk('proxyUrl' in settingsIn(html));
});

t.test('sends the page and its script once', async (t) => {
  for (const path of ['/docs', '/docs/scalar.js']) {
    const first = await fetch(rail.address + path);
    await first.arrayBuffer();
    const again = await fetch(rail.address + path, {
      headers: { 'If-None-Match': first.headers.get('etag') as string },
    });
    t.equal(again.status, 304, path);
    t.equal(await again.text(), '');
  }
});

t.test('sends texts compressed to who takes that', async (t) => {
  const send = (path: string, encodings: string, headers = {}) =>
    request(new URL(path, rail.address), { headers: { ...headers, 'accept-encoding': encodings } });
  for (const path of ['/v1/openapi.json', '/llms-full.txt', '/llms.txt', '/docs', '/docs/webhooks']) {
    const plain = await send(path, 'gzip;q=0, identity');
    const text = await plain.body.text();
    t.equal(plain.headers['content-encoding'], undefined);
    const compressed = await send(path, 'deflate, gzip');
    const bytes = Buffer.from(await compressed.body.arrayBuffer());
    t.match(compressed.headers, { 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
    t.ok(gunzipSync(bytes).equals(Buffer.from(text)), path);
    t.ok(bytes.length < text.length / 2);
    const { etag } = compressed.headers;
    t.not(etag, plain.headers.etag, 'which are two representations');
    const again = await send(path, 'gzip', { 'if-none-match': etag });
    t.equal(again.statusCode, 304);
    await again.body.dump();
  }
});

t.test(
  'answers browsers that open an unknown address with a page, and other clients with the error envelope',
  async (t) => {
    const browser = await fetch(`${rail.address}/nosuch`, { headers: { Accept: 'text/html,*/*;q=0.8' } });
    t.same([browser.status, browser.headers.get('content-type')], [404, 'text/html; charset=utf-8']);
    t.match(await browser.text(), /<html lang="en">[\s\S]*<main><h1>Page not found<[/]h1>/);
    const posted = await fetch(`${rail.address}/nosuch`, { method: 'POST', headers: { Accept: 'text/html' } });
    t.match(await posted.json(), { error: { code: 'route_not_found' } });
    t.match(await (await fetch(`${rail.address}/nosuch`)).json(), { error: { code: 'route_not_found' } });
    t.equal((await fetch(`${rail.address}/favicon.ico`)).status, 204);
  },
);

t.test('has pages that link to each other, with a list of contents and boxes that the keyboard reaches', async (t) => {
  for (const path of ['/docs/webhooks', '/docs/data', '/docs/tour', '/docs/operations']) {
    const response = await fetch(rail.address + path);
    const html = await response.text();
    t.match(html, /<html lang="en">[\s\S]*<main>/);
    const [, script = ''] = /<script>([^<]*clipboard\.writeText[^<]*)<\/script>/.exec(html) ?? [];
    const allowed = `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
    t.match(
      response.headers.get('content-security-policy'),
      `script-src ${allowed};`,
      'the browser runs its one script',
    );
    for (const link of ['../docs', 'tour', 'webhooks', 'data', 'operations', '../llms-full.txt'])
      t.ok(html.includes(`<a href="${link}">`), link);
    const chapters = [...html.matchAll(/<h2 id="([^"]+)"/g)].map(([, id]) => id as string);
    t.ok(chapters.length > 1);
    for (const id of chapters) t.ok(html.includes(`<a href="#${id}">`), id);
    t.equal(html.match(/<pre/g)?.length, html.match(/<pre tabindex="0" role="region" aria-label="[^"]+">/g)?.length);
    t.equal(
      html.match(/<table>/g)?.length,
      html.match(/<div class="table" tabindex="0" role="region" aria-label="[^"]+"><table>/g)?.length,
    );
  }
});

t.test('says what to send in place of an id of its examples', async (t) => {
  const merchant = await rail.organization();
  const document = (await (await fetch(`${rail.address}/v1/openapi.json`)).json()) as Json;
  const { example } = document.paths['/v1/programs/{id}'].get.parameters.find(({ name }: Json) => name === 'id');
  const hint = /Ids that begin with 'sample_' are examples in the documentation/;
  for (const path of [`/v1/programs/${example}`, `/v1/partners?program_id=${example}`]) {
    const { status, body } = await merchant.request('GET', path);
    t.match({ status, message: body.error.message }, { status: 404, message: hint }, path);
  }
  const unknown = await merchant.request('GET', '/v1/programs/prg_01kap3b6n8f2v9w4x7y0z1a2b3');
  t.notMatch(unknown.body.error.message, hint);
});

t.test('leads from /docs/ to /docs, below a path too', async (t) => {
  for (const place of places) {
    const response = await fetch(`${place}/docs/`);
    t.equal(response.url, `${place}/docs`);
    t.equal(response.status, 200);
  }
});

t.test('leads from / to /docs, below a path too, and gives the addresses to who asks for JSON', async (t) => {
  for (const place of places) {
    const browser = await fetch(`${place}/`, { headers: { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
    t.equal(browser.url, `${place}/docs`);
    t.equal(browser.status, 200);
    t.equal((await fetch(`${place}/`, { redirect: 'manual' })).status, 302);
    const index = await fetch(`${place}/`, { redirect: 'manual', headers: { Accept: 'application/json' } });
    t.equal(index.status, 200);
    for (const address of Object.values((await index.json()) as Json)) {
      t.equal((await fetch(new URL(address, index.url))).status, 200, address);
    }
  }
});

t.test('offers no request for webhooks, which the service sends', async (t) => {
  const html = await (await fetch(`${rail.address}/docs`)).text();
  t.match(settingsIn(html).customCss, /\/webhook\/.*\.show-api-client-button \{ display: none \}/);
  const script = await (await fetch(`${rail.address}/docs/scalar.js`)).text();
  t.match(script, 'show-api-client-button', 'the button is called so');
  t.match(script, /\}webhook\/\$\{/, 'and the id of a webhook has this part');
});

t.test('says below which path its operations are, where BASE_URL has one', async (t) => {
  const of = { store: rail.store, log };
  for (const [base_url, path] of [
    ['https://api.example.com', '/'],
    ['https://example.com/rail', '/rail'],
  ] as const) {
    const app = await buildApi({ ...of, services: { ...services, base_url } });
    t.teardown(() => closeApi(app));
    t.equal((await app.inject('/v1/openapi.json')).json().servers[0].url, path);
    const index = (await app.inject('/llms.txt')).body;
    for (const text of ['llms-full.txt', 'recruitment/llms.txt', 'docs/data'])
      t.match(index, `](${path.replace(/\/$/, '')}/${text})`);
  }
});

const scriptIn = (html: string): string =>
  /<script type="text\/javascript">([^<]+)<\/script>/.exec(html)?.[1] as string;

/** Returns the settings that the page gives to Scalar. */
const settingsIn = (html: string): Json => JSON.parse(/'#app', (\{.*\})\)/s.exec(scriptIn(html))?.[1] as string);

const hashOf = (script: string): string => `'sha256-${createHash('sha256').update(script).digest('base64')}'`;

/** A proxy that has the service below a path, and takes the path away. */
async function startProxy(path: string): Promise<string> {
  const proxy = createServer(async (request, response) => {
    const inner = request.url?.startsWith(`${path}/`) ? request.url.slice(path.length) : '/not-below-the-path';
    const headers_of_visitor = { Accept: request.headers.accept ?? '*/*' };
    const answer = await fetch(rail.address + inner, { redirect: 'manual', headers: headers_of_visitor });
    const { 'content-encoding': _, 'content-length': _length, ...headers } = Object.fromEntries(answer.headers);
    response.writeHead(answer.status, headers).end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${path}`;
}
