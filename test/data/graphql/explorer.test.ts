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

t.test('begins with headers that a browser can send', async (t) => {
  const html = await (await get('/graphiql')).text();
  const [, headers] = /"defaultHeaders": "((?:[^"\\]|\\.)*)"/.exec(html) ?? [];
  const { Authorization } = JSON.parse(JSON.parse(`"${headers}"`));
  t.equal(new Headers({ Authorization }).get('Authorization'), 'Bearer YOUR_API_KEY');
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
  await send('/graphiql/static/ruru.css');
  t.same(asked, ['/graphql', '/graphiql/static/ruru.css']);
});

t.test('loads nothing from another origin', async (t) => {
  const html = await (await get('/graphiql')).text();
  const loaded = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url as string);
  t.not(loaded.length, 0);
  for (const url of loaded) {
    t.match(url, /^\/graphiql\/static\//);
    const file = await get(url);
    t.equal(file.status, 200, url);
    t.not((await file.arrayBuffer()).byteLength, 0, url);
    t.equal((await get(url, { 'If-None-Match': file.headers.get('etag') ?? '' })).status, 304, url);
  }
  t.equal((await get('/graphiql/static/nothing.js')).status, 404);
  t.equal((await get('/graphiql/static/../../package.json')).status, 404);
  t.equal((await get('/graphiql/static/%2e%2e%2f%2e%2e%2fpackage.json')).status, 404);
});
