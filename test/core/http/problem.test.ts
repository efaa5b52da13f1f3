import { once } from 'node:events';
import { METHODS } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import t from 'tap';
import { buildApi } from '../../../src/api.ts';
import { createKey } from '../../../src/core/access/api_key.ts';
import { createOrganization } from '../../../src/core/access/organization.ts';
import { railSignature } from '../../../src/core/encryption/signature.ts';
import { openDatabase } from '../../../src/core/postgres/database.ts';
import { api_version } from '../../../src/core/values/api.ts';
import { type ProblemCode, problems } from '../../../src/core/values/problem.ts';
import { operations } from '../../../src/operations.ts';
import { writeEvents } from '../../../src/products.ts';
import { startWorker } from '../../../src/worker.ts';
import {
  type Answer,
  type Caller,
  callerOf,
  closeApi,
  eventually,
  log,
  patient_api,
  patient_database,
  services,
  sql,
  startRail,
  startReceiver,
} from '../../harness.ts';
import { stablePort } from '../../ports.ts';
import { resources, World } from '../../samples.ts';

const rail = await startRail({ worker: false });
const merchant = await rail.organization();
const acme = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
const program = await merchant.post('/v1/programs', acme);
const baseUrl = (app: { server: { address(): unknown } }) =>
  `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;

/** Checks the parts of every refusal, whatever refused it. */
function isRefused(t: Test, { status, headers, body }: Answer, expected: ProblemCode, param?: string): void {
  t.equal(body.error?.code, expected);
  t.equal(status, problems[expected].status);
  t.same(body, {
    error: {
      type: problems[expected].type,
      code: expected,
      message: body.error?.message,
      ...(param === undefined ? {} : { param }),
    },
  });
  t.match(headers, {
    'content-type': /^application\/json/,
    'x-rail-version': api_version,
    'x-rail-livemode': 'true',
    'x-ratelimit-limit': /^\d+$/,
    'x-ratelimit-remaining': /^\d+$/,
    'x-ratelimit-reset': /^\d+$/,
    'rail-request-id': /^req_[0-9a-z]{26}$/,
  });
}

type Test = Parameters<Parameters<typeof t.test>[0]>[0];
const post = (body: unknown, headers: Record<string, string> = {}, path = '/v1/programs') =>
  merchant.request('POST', path, body, headers);

t.test('each code has the status that its users know', (t) => {
  const by_status: Record<number, ProblemCode[]> = {
    400: [
      'invalid_json',
      'missing_parameter',
      'invalid_parameter',
      'unknown_parameter',
      'invalid_expand',
      'invalid_include',
    ],
    401: [
      'missing_api_key',
      'invalid_api_key',
      'revoked_api_key',
      'expired_api_key',
      'signature_required',
      'signature_invalid',
      'signature_expired',
    ],
    402: ['plan_limit_reached', 'feature_not_in_plan', 'no_credits'],
    403: [
      'insufficient_scope',
      'ip_not_allowed',
      'key_not_allowed',
      'approval_not_allowed',
      'test_key_not_allowed',
      'origin_not_allowed',
      'form_not_allowed',
      'code_required',
    ],
    404: ['resource_not_found', 'route_not_found'],
    405: ['method_not_allowed'],
    408: ['request_timeout'],
    409: [
      'resource_already_exists',
      'idempotency_key_in_flight',
      'invalid_state_transition',
      'self_referral',
      'click_expired',
      'click_without_credit',
      'sample_prospect',
      'suppressed',
      'cannot_lift',
      'preflight_failed',
      'too_many_imports',
    ],
    413: ['payload_too_large'],
    415: ['unsupported_media_type'],
    417: ['expectation_failed'],
    422: [
      'idempotency_key_reused',
      'smtp_auth_failed',
      'imap_auth_failed',
      'smtp_unreachable',
      'imap_unreachable',
      'oauth_failed',
    ],
    431: ['headers_too_large'],
    429: ['rate_limit_exceeded'],
    500: ['internal_error'],
    501: ['not_implemented'],
    503: ['service_unavailable'],
  };
  for (const code of [
    'invalid_cursor',
    'invalid_position',
    'currency_mismatch',
    'refund_exceeds_sale',
    'address_not_allowed',
  ] as const) {
    by_status[400]?.push(code);
  }
  for (const code of ['commission_locked', 'payout_locked', 'sale_already_refunded', 'endpoint_disabled'] as const) {
    by_status[409]?.push(code);
  }
  for (const [status, codes] of Object.entries(by_status)) {
    for (const code of codes) t.equal(problems[code].status, Number(status), code);
  }
  t.same(Object.keys(problems).sort(), Object.values(by_status).flat().sort(), 'and there is no other code');
  t.end();
});

t.test('a body that is not JSON answers 400 invalid_json', async (t) => {
  for (const body of [
    '{',
    'nul',
    '{"name": "Acme",}',
    "{'name': 'Acme'}",
    '{"amount_minor": 01}',
    '{"a": NaN}',
    '{}{}',
    '\u0000',
  ]) {
    isRefused(t, await post(body), 'invalid_json');
  }
});

t.test('a body that is not UTF-8 answers 400 invalid_json: nothing is stored that was not sent', async (t) => {
  const response = await fetch(new URL('/v1/programs', baseUrl(rail.app)), {
    method: 'POST',
    headers: { Authorization: `Bearer ${merchant.key}`, 'Content-Type': 'application/json' },
    body: Buffer.from(JSON.stringify({ ...acme, name: 'Caf\u00e9' }), 'latin1'),
  });
  t.equal(response.status, 400);
  t.match(await response.json(), { error: { code: 'invalid_json' } });
});

t.test('JSON that is no object, or no body at all, answers 400', async (t) => {
  for (const body of ['[]', '"text"', '1', 'null', 'true']) isRefused(t, await post(body), 'invalid_parameter');
  isRefused(t, await post(undefined), 'missing_parameter');
  isRefused(t, await post(''), 'missing_parameter');
});

t.test('__proto__ and constructor.prototype in a body are refused at any depth', async (t) => {
  for (const body of [
    '{"__proto__": {"scopes": ["*"]}, "name": "Acme"}',
    '{"name": "Acme", "metadata": {"deep": {"__proto__": 1}}}',
    '{"name": "Acme", "\\u005f_proto__": 1}',
    '{"name": "Acme", "constructor": {"prototype": {"admin": true}}}',
  ]) {
    isRefused(t, await post(body), 'invalid_json');
  }
  t.equal(({} as Record<string, unknown>).scopes, undefined);
});

t.test('a body that is nested without end is refused, and the service lives on', async (t) => {
  for (const depth of [5_000, 250_000]) {
    const nested = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const answer = await post(
      `{"program_id": "${program.id}", "email": "deep@example.com", "metadata": {"a": ${nested}}}`,
      {},
      '/v1/partners',
    );
    t.equal(answer.status, 400, `${depth} deep`);
  }
  t.equal((await merchant.request('GET', '/v1/programs')).status, 200);
});

t.test('names that objects inherit are unknown fields like any other', async (t) => {
  for (const name of ['constructor', 'toString', 'hasOwnProperty']) {
    isRefused(t, await post({ ...acme, [name]: 1 }), 'unknown_parameter', name);
    isRefused(t, await merchant.request('GET', `/v1/programs?${name}=1`), 'unknown_parameter', name);
  }
  isRefused(t, await merchant.request('GET', '/v1/programs?__proto__=1'), 'unknown_parameter', '__proto__');
});

t.test('NUL and malformed Unicode, which Postgres cannot store, answer 400 wherever they stand', async (t) => {
  const partner = (fields: object) =>
    post(JSON.stringify({ program_id: program.id, email: 'ada@example.com', ...fields }), {}, '/v1/partners');
  const nul = 'a\u0000b';
  const lone_surrogate = 'a\ud800b';
  for (const text of [nul, lone_surrogate]) {
    isRefused(t, await partner({ first_name: text }), 'invalid_parameter', 'first_name');
    isRefused(t, await partner({ metadata: { note: text } }), 'invalid_parameter', 'metadata.note');
    isRefused(t, await partner({ metadata: { [text]: 1 } }), 'invalid_parameter', 'metadata');
    isRefused(t, await partner({ group_id: text }), 'invalid_parameter', 'group_id');
  }
  isRefused(t, await merchant.request('GET', '/v1/programs/a%00b'), 'invalid_parameter', 'id');
  isRefused(t, await merchant.request('GET', '/v1/partners?program_id=a%00b'), 'invalid_parameter', 'program_id');
  isRefused(
    t,
    await merchant.request('GET', `/v1/partners?program_id=${program.id}&starting_after=a%00b`),
    'invalid_parameter',
    'starting_after',
  );
  t.equal((await merchant.get(`/v1/partners?program_id=${program.id}`)).total_count, 0);
});

t.test('text of every script, and pairs of surrogates, are stored as they were sent', async (t) => {
  const metadata = { '\u{1f600}': '\ud83d\ude00 \u05d0 \u0e01 e\u0301 \u200f \\u0000 \\ud800' };
  const { id } = await merchant.post('/v1/partners', { program_id: program.id, email: 'script@example.com', metadata });
  t.strictSame((await merchant.get(`/v1/partners/${id}`)).metadata, metadata);
});

t.test('a path that is not known answers 404 route_not_found', async (t) => {
  for (const path of [
    '/v1/nothing',
    '/v2/programs',
    '/v1/programs/x/y/z',
    '/v1//programs',
    '/v1/programs/',
    '/v1/programs/x/',
  ]) {
    isRefused(t, await merchant.request('GET', path), 'route_not_found');
  }
  isRefused(t, await post({}, {}, '/v1/nothing'), 'route_not_found');
  for (const path of ['/v1', '/recruitment/v1']) {
    const { body } = await merchant.request('GET', `${path}/nothing`);
    t.match(body.error.message, `GET ${path}/openapi.json lists all paths.`);
  }
  isRefused(t, await post({}, {}, '/v1/programs/'), 'route_not_found');
  isRefused(t, await post({}, {}, '/v1/partners//magic_link'), 'route_not_found');
});

t.test('a path that cannot be decoded answers 400, with the envelope and headers of every answer', async (t) => {
  isRefused(t, await merchant.request('GET', '/v1/programs/%'), 'invalid_parameter');
  isRefused(t, await merchant.request('GET', '/v1/programs/%E0%A4%A'), 'invalid_parameter');
});

t.test(
  'what is not HTTP, or has headers without end, is refused too, with the envelope and headers of every answer',
  async (t) => {
    const { port } = rail.app.server.address() as AddressInfo;
    for (const [garbage, code] of [
      ['GARBAGE\r\n\r\n', 'invalid_parameter'],
      [`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(100_000)}\r\n\r\n`, 'headers_too_large'],
    ] as const) {
      const socket = connect(port, '127.0.0.1');
      socket.write(garbage);
      let raw = '';
      for await (const chunk of socket) raw += chunk;
      const [head = '', body = ''] = raw.split('\r\n\r\n');
      const [status_line = '', ...lines] = head.split('\r\n');
      const headers = Object.fromEntries(
        lines.map((line) => [line.split(': ')[0]?.toLowerCase(), line.split(': ')[1]]),
      );
      const status = Number(status_line.split(' ')[1]);
      isRefused(t, { status, headers, body: JSON.parse(body), text: body }, code);
    }
  },
);

t.test('a method that a path does not take answers 405 and says in Allow what it takes', async (t) => {
  const taken = Map.groupBy(operations, ({ path }) => path);
  const wrong: string[] = [];
  // Each path is asked by one other method, and each method comes to many paths.
  for (const [nth, [path, those]] of [...taken].entries()) {
    const allowed = those.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    const others = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter((one) => !allowed.includes(one));
    const method = others[nth % others.length] as string;
    const { body, headers } = await merchant.request(method, path.replace('{id}', 'x'));
    const allow = headers.allow?.split(', ').sort().join();
    if (body.error?.code !== 'method_not_allowed' || allow !== allowed.sort().join()) wrong.push(`${method} ${path}`);
  }
  t.same(wrong, []);
});

t.test('so it does to every method that HTTP knows, and for what is served without a key', async (t) => {
  for (const method of METHODS.filter((one) => !['GET', 'HEAD', 'POST', 'CONNECT', 'TRACE'].includes(one))) {
    const answer = await merchant.request(method, '/v1/programs');
    isRefused(t, answer, 'method_not_allowed');
    t.equal(answer.headers.allow, 'GET, HEAD, POST', method);
  }
  for (const path of ['/v1/openapi.json', '/llms.txt', '/llms-full.txt', '/healthz', '/docs', '/r/ada']) {
    const answer = await post({}, {}, path);
    isRefused(t, answer, 'method_not_allowed');
    t.equal(answer.headers.allow?.split(', ').sort().join(), 'GET,HEAD', path);
  }
  isRefused(t, await merchant.request('PROPFIND', '/v1/nothing'), 'route_not_found');
});

t.test('a body of 1 MiB is read, and one byte more answers 413', async (t) => {
  const frame = JSON.stringify({ ...acme, name: '' }).length;
  const sized = (bytes: number) => JSON.stringify({ ...acme, name: 'n'.repeat(bytes - frame) });
  isRefused(t, await post(sized(1024 * 1024)), 'invalid_parameter', 'name');
  isRefused(t, await post(sized(1024 * 1024 + 1)), 'payload_too_large');
});

t.test('a body that is not sent as JSON answers 415', async (t) => {
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/json',
  ]) {
    isRefused(t, await post(acme, { 'Content-Type': type }), 'unsupported_media_type', 'Content-Type');
  }
  const compressed = await post(acme, { 'Content-Encoding': 'gzip' });
  isRefused(t, compressed, 'unsupported_media_type', 'Content-Encoding');
  t.match(compressed.body.error.message, 'Send the body uncompressed');
  t.equal((await post(acme, { 'Content-Encoding': 'identity' })).status, 201);
  t.equal((await post(acme, { 'Content-Type': 'application/json; charset=utf-8' })).status, 201);
});

t.test('Rail-Version may name the one version there is, and no other', async (t) => {
  const ask = (version: string) => merchant.request('GET', '/v1/programs', undefined, { 'Rail-Version': version });
  t.equal((await ask(api_version)).status, 200);
  for (const version of ['2020-01-01', 'latest', '', `${api_version}, ${api_version}`]) {
    isRefused(t, await ask(version), 'invalid_parameter', 'Rail-Version');
  }
});

t.test('integers that JSON does not carry exactly are refused', async (t) => {
  const sale = (amount_minor: string) =>
    post(
      `{"program_id": "${program.id}", "amount_minor": ${amount_minor}, "currency": "USD", "external_charge_id": "big"}`,
      {},
      '/v1/sales',
    );
  for (const amount of ['9007199254740993', '1e400', '10.5', '"10"', '-1']) {
    isRefused(t, await sale(amount), 'invalid_parameter', 'amount_minor');
  }
});

t.test('numbers of your own data are kept exactly, or refused', async (t) => {
  const store = (fields: string, plural = 'partners', email = 'exact@example.com') =>
    post(`{"program_id": "${program.id}", "email": "${email}", ${fields}}`, {}, `/v1/${plural}`);
  for (const number of ['9007199254740993', '-9007199254740993', '123456789012345678901234567890', '1e300', '1e400']) {
    const refused = await store(`"metadata": {"orders": [{"id": ${number}}]}`);
    isRefused(t, refused, 'invalid_parameter', 'metadata.orders.0.id');
    t.match(refused.body.error.message, 'send it as a string');
    isRefused(t, await store(`"answers": {"id": ${number}}`, 'applications'), 'invalid_parameter', 'answers.id');
  }
  const kept = { id: Number.MAX_SAFE_INTEGER, least: Number.MIN_SAFE_INTEGER, part: 0.1, small: 1.5e-7 };
  t.same((await store(`"metadata": ${JSON.stringify(kept)}`)).body.metadata, kept);
});

t.test('a time that cannot be stored is refused by the name of its field', async (t) => {
  const list = (query: string) => merchant.request('GET', `/v1/partners?program_id=${program.id}&${query}`);
  const sale = { program_id: program.id, amount_minor: 1, currency: 'USD', external_charge_id: 'early' };
  for (const time of ['0000-01-01T00:00:00Z', '0001-01-01T00:00:00%2B02:00', '9999-12-31T23:59:59Z']) {
    for (const field of ['created_after', 'created_before']) {
      isRefused(t, await list(`${field}=${time}`), 'invalid_parameter', field);
    }
    const occurred_at = decodeURIComponent(time);
    isRefused(t, await post({ ...sale, occurred_at }, {}, '/v1/sales'), 'invalid_parameter', 'occurred_at');
  }
  t.equal((await list('created_after=0001-01-01T00:00:00Z&created_before=9000-12-31T23:59:59Z')).status, 200);
});

t.test('a URL that people are sent to has no user name, which would stand where they expect the host', async (t) => {
  const program_id = program.id;
  const { id: partner_id } = (await post({ program_id, email: 'ada@partner.example.com' }, {}, '/v1/partners')).body;
  const link = { program_id, partner_id, destination_url: 'https://acme.example.com/' };
  const { id: link_id } = (await post(link, {}, '/v1/links')).body;
  const brand = { name: 'Acme', website_url: 'https://acme.example.com', brief: 'We sell flour to bakers.' };
  const fields: [method: string, path: string, field: string, body?: object][] = [
    ['POST', '/v1/programs', 'website_url', acme],
    ['PATCH', `/v1/programs/${program_id}`, 'website_url'],
    ['PATCH', `/v1/programs/${program_id}`, 'terms_url'],
    ['POST', '/v1/groups', 'landing_url', { program_id, name: 'Bloggers' }],
    ['POST', '/v1/partners', 'website_url', { program_id, email: 'bob@partner.example.com' }],
    ['PATCH', `/v1/partners/${partner_id}`, 'website_url'],
    ['POST', '/v1/links', 'destination_url', link],
    ['PATCH', `/v1/links/${link_id}`, 'destination_url'],
    ['POST', '/recruitment/v1/brands', 'website_url', brand],
  ];
  for (const address of ['http://acme.example.com@evil.example/', 'https://ada:secret@acme.example.com/']) {
    for (const [method, path, field, body = {}] of fields) {
      const refused = await merchant.request(method, path, { ...body, [field]: address });
      isRefused(t, refused, 'invalid_parameter', field);
      t.match(refused.body.error.message, /must not contain a user name or a password/, `${method} ${path} ${field}`);
    }
  }
});

t.test('a message says what would be right', async (t) => {
  const messageOf = async (answer: Promise<Answer>) => (await answer).body.error.message;
  t.match(await messageOf(post({ ...acme, website_url: 'acme' })), 'must be an http or https URL');
  const since = merchant.request('GET', `/v1/partners?program_id=${program.id}&created_after=2026-01-31`);
  t.match(await messageOf(since), 'must be an ISO 8601 time with a time zone, such as 2026-01-31T12:00:00Z');
  t.equal(await messageOf(merchant.request('GET', '/v1/programs?expand=partner')), "'expand' is not supported here.");
  for (const [body, fault] of [
    ['{', "expected property name or '}' at position 1 (line 1 column 2)"],
    ['{"a": NaN}', "unexpected token 'N'"],
    ['{"__proto__": 1}', "the names '__proto__' and 'constructor.prototype' are not allowed"],
  ]) {
    t.equal(await messageOf(post(body)), `The body is not valid JSON: ${fault}.`);
  }
});

t.test('every message is a sentence that says what is wrong', async (t) => {
  const answers = [
    await post('{'),
    await post({ ...acme, currency: 'usd' }),
    await post({ ...acme, website_url: 'ftp://acme.example.com' }),
    await post({ ...acme, cookie_days: 366 }),
    await merchant.request('GET', '/v1/nothing'),
    await merchant.request('GET', '/v1/programs/prg_nothing'),
    await merchant.request('GET', '/v1/programs?limit=x'),
  ];
  for (const { body } of answers) t.match(body.error.message, /^['A-Z`].{15,}\.$/);
});

t.test('an unexpected failure answers 500 and tells nothing of the inside', async (t) => {
  const broken = await startRail({ worker: false });
  const owner = await broken.organization();
  const { id } = await owner.post('/v1/programs', acme);
  await broken.query(sql`alter table program.partner rename column company_name to hidden_name`);
  const create = { program_id: id, email: 'ada@example.com' };
  const answers = [
    await owner.request('GET', `/v1/partners?program_id=${id}`),
    await owner.request('POST', '/v1/partners', create, { 'Idempotency-Key': 'broken' }),
  ];
  for (const answer of answers) {
    isRefused(t, answer, 'internal_error');
    t.notMatch(answer.text, /company_name|column|relation|program\.|select|insert|postgres|42703|\.ts|node_modules/i);
  }

  t.test('and leaves nothing behind, so that its idempotency key is free', async (t) => {
    await broken.query(sql`alter table program.partner rename column hidden_name to company_name`);
    t.equal((await owner.get(`/v1/partners?program_id=${id}`)).total_count, 0);
    const retried = await owner.request('POST', '/v1/partners', create, { 'Idempotency-Key': 'broken' });
    t.equal(retried.status, 201);
    t.equal(retried.headers['idempotent-replayed'], undefined);
  });
});

t.test('while Postgres is away', async (t) => {
  const proxy = await startProxy(rail.url);
  const store = {
    database: openDatabase(proxy.url, { ...patient_database, size: 5, name: 'rail proxied' }),
    writeEvents,
  };
  const app = await buildApi({ store, services, log, limits: patient_api });
  await app.listen({ port: 0, host: '127.0.0.1' });
  t.teardown(async () => {
    await closeApi(app);
    await store.database.end();
    proxy.cut();
  });
  const caller = callerOf(baseUrl(app), merchant.key, merchant.organization_id);
  const create = () => caller.request('POST', '/v1/programs', acme, { 'Idempotency-Key': 'away' });
  t.equal((await caller.request('GET', '/v1/programs')).status, 200);

  await t.test('requests answer 503 service_unavailable with Retry-After', async (t) => {
    proxy.cut();
    const answers = await Promise.all([
      ...Array.from({ length: 10 }, () => caller.request('GET', '/v1/programs')),
      create(),
    ]);
    for (const answer of answers) {
      isRefused(t, answer, 'service_unavailable');
      t.match(answer.headers['retry-after'], /^[1-9]\d*$/);
    }
  });

  await t.test('the process is up, and not ready', async (t) => {
    t.equal((await caller.request('GET', '/healthz')).status, 200);
    t.equal((await caller.request('GET', '/readyz')).status, 503);
  });

  await t.test('the service recovers by itself', async (t) => {
    await proxy.restore();
    t.equal((await caller.request('GET', '/v1/programs')).status, 200);
    t.equal((await caller.request('GET', '/readyz')).status, 200);
    const retried = await create();
    t.equal(retried.status, 201);
    t.equal(retried.headers['idempotent-replayed'], undefined);
  });

  await t.test('a request that was running when it went answers 503 too, and the service lives on', async (t) => {
    const running = Array.from({ length: 20 }, () => caller.request('GET', '/v1/programs?include[]=stats'));
    await eventually(() => proxy.open() > 1, 'connections');
    proxy.cut();
    for (const answer of await Promise.all(running)) {
      if (answer.status !== 200) isRefused(t, answer, 'service_unavailable');
    }
    await proxy.restore();
    t.equal((await caller.request('GET', '/v1/programs')).status, 200);
  });
});

t.test('no secret ever reaches the log', async (t) => {
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  const everything = pino({ level: 'trace' }, destination);
  const own = await startRail({ worker: false });
  const database = openDatabase(own.url, { ...patient_database, size: 5, name: 'rail logged', log: everything });
  const store = { database, writeEvents };
  const app = await buildApi({ store, services, log: everything, limits: patient_api });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const worker = startWorker({ url: own.url, store, services, concurrency: 2, log: everything });
  await worker.ready;
  t.teardown(async () => {
    await worker.stop();
    await closeApi(app);
    await database.end();
  });

  const receiver = await startReceiver((_, nth) => (nth % 2 === 0 ? 500 : 200));
  const { id: organization_id } = await createOrganization(database, { name: 'Logged', owner_email: 'o@example.com' });
  const keys = await Promise.all(
    [['*'], [], ['*']].map((scopes, nth) =>
      createKey(database, { organization_id, name: 'k', mode: nth === 2 ? 'test' : 'live', scopes, rate_limit: 1_000 }),
    ),
  );
  const [caller, powerless, test] = keys.map(({ secret }) => callerOf(baseUrl(app), secret, organization_id)) as [
    Caller,
    Caller,
    Caller,
  ];
  const world = new World(caller, receiver.url, caller, own);
  const endpoint = await world.fixture('webhook_endpoints');
  for (const plural of resources) await world.fixture(plural);
  const body = JSON.stringify(acme);
  const signature = railSignature([caller.key], Math.floor(Date.now() / 1_000), body);
  const password = 'hunter2-in-a-body';
  await caller.request('POST', '/v1/programs', body, { 'Rail-Signature': signature, 'Idempotency-Key': 'logged' });
  await caller.request('POST', '/v1/programs', body, { 'Rail-Signature': `${signature}0` });
  await caller.request('POST', '/v1/programs', `{"secret": "${password}"`);
  await caller.request('GET', `/v1/programs?api_key=${password}`);
  await powerless.request('GET', '/v1/programs');
  await test.request('GET', '/v1/programs');
  const unsubscribe_token = 'token-of-an-unsubscribe-link';
  for (const method of ['GET', 'POST', 'PUT', 'OPTIONS'])
    for (const path of [
      unsubscribe_token,
      `${unsubscribe_token}/`,
      `${unsubscribe_token}?x`,
      `%ff${unsubscribe_token}`,
    ])
      await caller.request(method, `/recruitment/u/${path}`);
  await receiver.until(4);
  await own.query(sql`alter table program.partner rename column company_name to hidden_name`);
  t.equal((await caller.request('GET', `/v1/partners?program_id=${endpoint.program_id}`)).status, 500);
  const create = { program_id: endpoint.program_id, email: 'ada@example.com', metadata: { password } };
  t.equal((await caller.request('POST', '/v1/partners', create)).status, 500);
  await worker.stop();

  const text = lines.join('');
  t.match(text, /a request failed/, 'what failed is there');
  t.match(text, /company_name/, 'with its cause');
  t.ok(lines.length > 20);
  const { password: database_password } = new URL(own.url);
  const secrets = [...keys.map(({ secret }) => secret), endpoint.secret, password, signature, signature.slice(-64)];
  secrets.push(unsubscribe_token);
  if (database_password) secrets.push(database_password);
  for (const secret of secrets) t.notOk(text.includes(secret), `nothing of ${secret.slice(0, 10)}…`);
  t.notMatch(text, /whsec_|rail_live_|rail_test_|Bearer /i);
});

/** A door to Postgres that can be shut: every connection through it is broken, and new ones are refused. */
async function startProxy(url: string): Promise<{
  url: string;
  open(): number;
  cut(): void;
  restore(): Promise<void>;
}> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    return socket;
  };
  const accept = (inner: Socket) => {
    const outer = keep(connect(Number(port), hostname));
    keep(inner).pipe(outer).pipe(inner);
    inner.on('close', () => outer.destroy());
    outer.on('close', () => inner.destroy());
  };
  let server: Server;
  const own_port = await stablePort();
  const listen = async () => {
    server = createServer(accept).listen(own_port, '127.0.0.1');
    await once(server, 'listening');
  };
  await listen();
  const proxied = new URL(url);
  proxied.hostname = '127.0.0.1';
  proxied.port = String(own_port);
  return {
    url: proxied.href,
    open: () => sockets.size,
    cut() {
      server.close();
      for (const socket of sockets) socket.resetAndDestroy();
    },
    restore: listen,
  };
}
