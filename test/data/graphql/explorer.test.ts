/** `GET /graphiql`: a page from the package, which asks nothing of anybody else. */
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { type Json, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const get = (path: string, headers: Record<string, string> = {}) => fetch(`${rail.address}${path}`, { headers });

t.test('serves the page without a key, under a policy that allows its own scripts alone', async (t) => {
  const response = await get('/graphiql');
  t.equal(response.status, 200);
  t.match(response.headers.get('content-type'), 'text/html');
  const policy = response.headers.get('content-security-policy') ?? '';
  t.match(policy, /default-src 'none'.*connect-src 'self'/);
  t.notMatch(policy, /https?:|\*|unsafe-eval|script-src[^;]*unsafe-inline/);
  t.match(response.headers.get('rail-request-id'), /^req_/);
});

t.test('asks for nothing before a key is entered, and says where it goes', async (t) => {
  const html = await (await get('/graphiql')).text();
  const [, script] = /<script>([^<]*window\.fetch[^<]*)<\/script>[\s\S]*<\/head>/.exec(html) ?? [];
  const asked: unknown[] = [];
  const answer = () => new Response('{}');
  const window = {
    fetch: (input: string) => {
      asked.push(input);
      return Promise.resolve(answer());
    },
  };
  runInNewContext(script as string, {
    window,
    URL,
    Headers,
    Response,
    document: { baseURI: `${rail.address}/graphiql` },
  });
  const send = window.fetch as typeof fetch;
  for (const Authorization of ['', 'Bearer YOUR_API_KEY']) {
    const { errors } = (await (await send('/graphql', { method: 'POST', headers: { Authorization } })).json()) as Json;
    t.match(errors, [{ message: /^Enter your API key/ }]);
  }
  t.same(asked, []);
  await send('/graphql', { method: 'POST', headers: { Authorization: 'Bearer rail_test_x' } });
  await send('/graphiql/static/styles.css');
  t.same(asked, ['/graphql', '/graphiql/static/styles.css']);
});

t.test('loads nothing from another origin', async (t) => {
  const html = await (await get('/graphiql')).text();
  const base = new URL(/<base href="([^"]+)">/.exec(html)?.[1] ?? '', `${rail.address}/graphiql`);
  const loaded = [...html.matchAll(/<(?!base)\w+[^>]* (?:src|href)="([^"]+)"/g)].map(([, url]) => url as string);
  t.not(loaded.length, 0);
  for (const url of loaded) {
    const { pathname, origin } = new URL(url, base);
    t.equal(origin, rail.address);
    t.match(pathname, /^\/graphiql\/static\//);
    const file = await get(pathname);
    t.equal(file.status, 200, url);
    t.not((await file.arrayBuffer()).byteLength, 0, url);
    t.equal((await get(pathname, { 'If-None-Match': file.headers.get('etag') ?? '' })).status, 304, url);
  }
  const font = await get('/graphiql/static/media/jetbrains-mono-latin-400-normal.woff2');
  t.equal(
    Buffer.from(await font.arrayBuffer()).toString('latin1', 0, 4),
    'wOF2',
    'what is no text comes byte for byte',
  );
  for (const path of ['nothing.js', '../../package.json', '%2e%2e%2f%2e%2e%2fpackage.json', '%2e%2e%2findex.js'])
    t.equal((await get(`/graphiql/static/${path}`)).status, 404, path);
});
