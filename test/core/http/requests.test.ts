import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { pino } from 'pino';
import t from 'tap';
import { buildApi } from '../../../src/api.ts';
import { createServer } from '../../../src/core/http/server.ts';
import { problems } from '../../../src/core/values/problem.ts';
import { closeApi, eventually, type Json, log, patient_api, services, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const merchant = await rail.organization();
const { port } = rail.app.server.address() as AddressInfo;
const acme = '{"name": "Acme", "website_url": "https://acme.example.com", "currency": "USD"}';

interface Raw {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Sends a request as it is written here, and reads the last answer to it. */
async function send(text: string): Promise<Raw[]> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(text);
  let raw = '';
  socket.on('data', (chunk) => {
    raw += chunk;
  });
  await once(socket, 'close');
  return raw.split(/(?=HTTP\/1\.1 \d\d\d)/).map((answer) => {
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    const [line = '', ...lines] = head.split('\r\n');
    const headers = lines.map((each) => each.split(': ')).map(([name = '', value = '']) => [name.toLowerCase(), value]);
    return { status: Number(line.split(' ')[1]), headers: Object.fromEntries(headers), body };
  });
}

const lines = (first: string, ...rest: string[]): string =>
  `${[`${first} HTTP/1.1`, 'Host: rail', `Authorization: Bearer ${merchant.key}`, 'Connection: close', ...rest].join('\r\n')}\r\n\r\n`;
const create = (...headers: string[]): string =>
  lines('POST /v1/programs', 'Content-Type: application/json', `Content-Length: ${acme.length}`, ...headers) + acme;
const get = (path: string, ...headers: string[]): string => lines(`GET ${path}`, ...headers);

const table: [what: string, request: string, answer: number | keyof typeof problems, param?: string][] = [
  ['a list', get('/v1/programs'), 200],
  ['HEAD of a list', lines('HEAD /v1/programs'), 200],
  ['OPTIONS of a list', lines('OPTIONS /v1/programs'), 'method_not_allowed'],
  ['OPTIONS of everything', lines('OPTIONS *'), 'route_not_found'],
  ['a trailing slash', get('/v1/programs/'), 'route_not_found'],
  ['a double slash', get('/v1//programs'), 'route_not_found'],
  ['two slashes first', get('//v1/programs'), 'route_not_found'],
  ['an encoded slash between names', get('/v1%2Fprograms'), 'route_not_found'],
  ['an encoded slash in an id', get('/v1/programs/a%2Fb'), 'resource_not_found', 'id'],
  ['dots', get('/v1/x/../programs'), 'route_not_found'],
  ['a path of 500 characters', get(`/v1/programs/${'a'.repeat(500)}`), 'resource_not_found', 'id'],
  ['a path of 10,000 characters', get(`/v1/programs/${'a'.repeat(10_000)}`), 'route_not_found'],
  ['a path of 20,000 characters', get(`/v1/programs/${'a'.repeat(20_000)}`), 'headers_too_large'],
  ['a whole URL', get('http://rail/v1/programs?limit=1'), 200],
  ['a whole URL without a path', get('http://rail', 'Accept: application/json'), 200],
  ['a whole URL with a query alone', get('http://rail?a=1', 'Accept: application/json'), 200],
  ['no Host', get('/v1/programs').replace('Host: rail\r\n', ''), 'missing_parameter', 'Host'],
  ['two Hosts', get('/v1/programs', 'Host: other'), 'invalid_parameter', 'Host'],
  ['two keys', get('/v1/programs', 'Authorization: Bearer rail_live_x'), 'invalid_parameter', 'Authorization'],
  ['two versions', get('/v1/programs', 'Rail-Version: a', 'Rail-Version: a'), 'invalid_parameter', 'Rail-Version'],
  [
    'two signatures',
    get('/v1/programs', 'Rail-Signature: a', 'rail-signature: a'),
    'invalid_parameter',
    'Rail-Signature',
  ],
  ['two idempotency keys', create('Idempotency-Key: a', 'Idempotency-Key: b'), 'invalid_parameter', 'Idempotency-Key'],
  ['two types', create('Content-Type: text/plain'), 'invalid_parameter', 'Content-Type'],
  ['two lengths', create('Content-Length: 1'), 'invalid_parameter'],
  ['a length and chunks', create('Transfer-Encoding: chunked'), 'invalid_parameter'],
  ['other headers twice', get('/v1/programs', 'X-Other: a', 'X-Other: b'), 200],
  ...['gzip', 'br', 'zstd', 'deflate', 'unheard-of', 'identity, gzip'].map((encoding): (typeof table)[number] => [
    `a body of the encoding ${encoding}`,
    create(`Content-Encoding: ${encoding}`),
    'unsupported_media_type',
    'Content-Encoding',
  ]),
  ['another expectation', create('Expect: 200-ok'), 'expectation_failed', 'Expect'],
  ['another expectation of a GET', get('/v1/programs', 'Expect: the-unexpected'), 'expectation_failed', 'Expect'],
];

for (const [what, request, expected, param] of table) {
  t.test(`${what}: ${expected}`, async (t) => {
    const { status, headers, body } = (await send(request)).at(-1) as Raw;
    t.match(headers, {
      'rail-request-id': /^req_/,
      'x-ratelimit-limit': /^\d+$/,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-type': /^application\/json/,
    });
    t.equal(headers['strict-transport-security'], undefined);
    if (typeof expected === 'number') return t.equal(status, expected);
    t.equal(status, problems[expected].status);
    const { error } = JSON.parse(body);
    t.match(error, { type: problems[expected].type, code: expected, message: /^.{10,}\.$/ });
    t.equal(error.param, param);
  });
}

t.test('a client that asks before it sends its body is asked for it, unless it is refused', async (t) => {
  const waiting = create('Expect: 100-continue');
  const taken = await send(waiting);
  t.same(
    taken.map(({ status }) => status),
    [100, 201],
  );
  const refused = await send(waiting.replace(merchant.key, 'rail_live_nobody').replace(acme, ''));
  t.same(
    refused.map(({ status }) => status),
    [401],
  );
});

t.test('null is no body, for operations that need none either', async (t) => {
  const { id } = JSON.parse(((await send(create())).at(-1) as Raw).body);
  const { id: endpoint_id } = await merchant.post('/v1/webhook_endpoints', {
    program_id: id,
    url: 'http://127.0.0.1:9/',
  });
  const ping = (body?: string) => merchant.request('POST', `/v1/webhook_endpoints/${endpoint_id}/ping`, body);
  for (const body of ['null', '[]', '"text"', '1']) {
    t.match(await ping(body), { status: 400, body: { error: { code: 'invalid_parameter' } } }, body);
  }
  for (const body of [undefined, '', '{}']) t.ok((await ping(body)).status < 300);
});

t.test('where clients come by https, they are told to go on doing so', async (t) => {
  const secure = { ...services, base_url: 'https://rail.example.com' };
  const app = await buildApi({ store: rail.store, services: secure, log, limits: patient_api });
  t.teardown(() => closeApi(app));
  for (const url of ['/v1/programs', '/v1/nothing', '/v1/openapi.json', '/v1/%']) {
    const { headers } = await app.inject(url);
    t.equal(headers['strict-transport-security'], 'max-age=31536000', url);
    t.equal(headers['x-content-type-options'], 'nosniff');
    t.equal(headers['cache-control'], url.endsWith('.json') ? 'no-cache' : 'no-store');
  }
});

t.test('a request whose client leaves before its response ends is logged as well', async (t) => {
  const logged: Json[] = [];
  const app = createServer(pino({ level: 'info' }, { write: (line: string) => logged.push(JSON.parse(line)) }));
  app.get('/whole', async () => ({}));
  app.get('/endless', (_, reply) => {
    const stream = new PassThrough();
    stream.write('a line');
    reply.send(stream);
  });
  t.teardown(() => closeApi(app));
  const address = await app.listen({ port: 0, host: '127.0.0.1' });
  await (await fetch(`${address}/whole`)).text();
  await app.inject('/whole');
  const leaving = new AbortController();
  await fetch(`${address}/endless`, { signal: leaving.signal });
  leaving.abort();
  await eventually(() => logged.some(({ path }) => path === '/endless'), 'the abandoned request to be logged');
  t.match(
    logged.filter(({ path }) => path),
    [
      { path: '/whole', status: 200, msg: 'request' },
      { path: '/whole', status: 200, msg: 'request' },
      { method: 'GET', path: '/endless', status: 200, msg: 'request aborted' },
    ],
  );
});

t.test('the log names the key and the organization of a request', async (t) => {
  const logged: Json[] = [];
  const own_log = pino({ level: 'info' }, { write: (line: string) => logged.push(JSON.parse(line)) });
  const app = await buildApi({ store: rail.store, services, log: own_log, limits: patient_api });
  t.teardown(() => closeApi(app));
  const { organization_id, key } = merchant;
  await app.inject({ url: '/v1/programs', headers: { authorization: `Bearer ${key}` } });
  await app.inject('/v1/programs');
  const [known, stranger] = logged.filter(({ msg }) => msg === 'request');
  t.match(known, { path: '/v1/programs', status: 200, organization_id, api_key_id: /^key_/ });
  t.match(stranger, { path: '/v1/programs', status: 401 });
  t.notOk('api_key_id' in (stranger as Json));
});
