import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import t from 'tap';
import { z } from 'zod';
import { buildApi } from '../../../src/api.ts';
import { errorsOf } from '../../../src/core/description/operation_errors.ts';
import { railSignature } from '../../../src/core/encryption/signature.ts';
import type { Operation } from '../../../src/core/resource/operation.ts';
import { ErrorBody } from '../../../src/core/values/error_body.ts';
import { type ProblemCode, problems } from '../../../src/core/values/problem.ts';
import { api } from '../../../src/program/api.ts';
import { program } from '../../../src/program/index.ts';
import { api as recruiting_api } from '../../../src/recruitment/api.ts';
import { recruitment } from '../../../src/recruitment/index.ts';
import { closeApi, type Json, log, startRail } from '../../harness.ts';

const { operations } = api;
const rail = await startRail({ worker: false });
/** A request of somebody who has no key. */
const visit = (path: string, headers: Record<string, string> = {}) =>
  fetch(new URL(path, rail.app.listeningOrigin), { headers });
const textOf = async (path: string) => (await visit(path)).text();

const codes = Object.keys(problems) as ProblemCode[];
const types = Object.keys(program.events.catalogue);
const openapi = JSON.parse(await textOf('/v1/openapi.json')) as Json;
const index = await textOf('/llms.txt');
const whole = await textOf('/llms-full.txt');

const routes: Json[] = Object.entries<Json>(openapi.paths).flatMap(([path, methods]) =>
  Object.entries<Json>(methods).map(([method, route]) => ({ ...route, method: method.toUpperCase(), path })),
);
const routeOf = ({ name }: Operation): Json => routes.find(({ operationId }) => operationId === name) as Json;

t.test('the three descriptions need no key, carry the standard headers, and are not sent twice', async (t) => {
  for (const [path, type] of [
    ['/v1/openapi.json', 'application/json; charset=utf-8'],
    ['/llms.txt', 'text/plain; charset=utf-8'],
    ['/llms-full.txt', 'text/plain; charset=utf-8'],
  ] as const) {
    const response = await visit(path);
    t.equal(response.status, 200, path);
    t.equal(response.headers.get('content-type'), type);
    t.match(response.headers.get('rail-request-id'), /^req_/);
    t.equal(response.headers.get('x-rail-version'), openapi.info.version);
    t.ok(response.headers.get('x-ratelimit-limit'));
    const again = await visit(path, { 'If-None-Match': response.headers.get('etag') as string });
    t.equal(again.status, 304);
    t.equal(await again.text(), '');
  }
});

t.test('responses are described with the headers that browsers heed, as they are sent', async (t) => {
  const response = await visit('/v1/partners');
  for (const name of ['Cache-Control', 'X-Content-Type-Options', 'Strict-Transport-Security']) {
    // One assert for all responses: each assert looks up where it stands.
    const described = routes.flatMap(({ responses, operationId }) =>
      Object.entries<Json>(responses).map(([status, { $ref, headers }]) => ({
        response: `${operationId} ${status}`,
        headers: headers ?? openapi.components.responses[$ref.split('/').at(-1)].headers,
      })),
    );
    t.not(described.length, 0);
    t.same(
      described.filter(({ headers }) => !(name in headers)).map(({ response }) => response),
      [],
      name,
    );
  }
  t.equal(response.headers.get('cache-control'), 'no-store');
  t.equal(
    response.headers.get('x-content-type-options'),
    openapi.components.headers['X-Content-Type-Options'].schema.const,
  );
});

t.test('a percent rate has its bound in the schemas', async (t) => {
  const then = { properties: { rate_value: { maximum: 1_000_000 } } };
  const bodyOf = (path: string, method: string) =>
    openapi.paths[path][method].requestBody.content['application/json'].schema;
  for (const [path, method] of [
    ['/v1/rules', 'post'],
    ['/v1/rules/{id}', 'patch'],
  ] as const)
    t.match(bodyOf(path, method), { if: { properties: { rate_type: { const: 'percent' } } }, then });
  const { anyOf } = bodyOf('/v1/links', 'post').properties.rate_override;
  t.match(anyOf[0], { if: { required: ['rate_type'] }, then });
});

t.test('the description is made by the first request for one of its texts, and once', async (t) => {
  let readings = 0;
  const observed = operations.map((operation) =>
    operation.name === 'partners.create'
      ? Object.defineProperty({ ...operation }, 'example', {
          get: () => {
            readings++;
            return operation.example;
          },
        })
      : operation,
  );
  const app = await buildApi({
    ...{ store: rail.store, services: rail.services, log },
    products: [{ ...program, loadApi: async () => ({ ...api, operations: observed }) }],
  });
  t.teardown(() => closeApi(app));
  t.equal((await app.inject('/healthz')).statusCode, 200);
  t.equal(readings, 0, 'a process that nobody asks for it does not make it');
  const paths = ['/v1/openapi.json', '/llms.txt', '/llms-full.txt', '/v1/openapi.json'];
  const replies = await Promise.all(paths.map((path) => app.inject(path)));
  t.same(
    replies.map(({ statusCode }) => statusCode),
    [200, 200, 200, 200],
  );
  t.equal(replies[0]?.body, replies[3]?.body);
  t.equal(readings, 1);
});

/** Operations that test keys may call on samples, and on nothing else. */
const on_samples = ['prospects.get', 'prospects.save', 'prospects.hide', 'prospects.move', 'notes.create'];

t.test('each product has a document of its own, with its operations, events and examples', async (t) => {
  const document = JSON.parse(await textOf('/recruitment/v1/openapi.json')) as Json;
  const text = await textOf('/recruitment/llms-full.txt');
  const index = await textOf('/recruitment/llms.txt');
  const described = Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, route]) => ({ ...route, method: method.toUpperCase(), path }) as Json),
  );
  t.same(
    described.map(({ operationId, method, path }) => [operationId, method, path]).sort(),
    recruiting_api.operations.map(({ name, method, path }) => [name, method, path]).sort(),
  );
  t.same(Object.keys(document.webhooks), Object.keys(recruitment.events.catalogue));
  for (const operation of recruiting_api.operations) {
    const route = described.find(({ operationId }) => operationId === operation.name) as Json;
    const { example } = route.responses[operation.status].content['application/json'];
    t.same(faults(operation.reply, example), [], `reply of ${operation.name}`);
    t.ok(index.includes(`\`${operation.method} ${operation.path}\``), operation.name);
    t.ok(text.includes(`### ${operation.method} ${operation.path}\n`), operation.name);
    const refuses = operation.test_keys === false || on_samples.includes(operation.name);
    t.equal(route['x-errors'].includes('test_key_not_allowed'), refuses, operation.name);
  }
  for (const [type, { data, example }] of Object.entries(recruitment.events.catalogue)) {
    const { requestBody, parameters } = document.webhooks[type].post;
    const shown = requestBody.content['application/json'].example;
    t.same(faults(data, shown.data), [], type);
    t.same(Object.keys(shown), ['id', 'type', 'version', 'created_at', 'livemode', 'data']);
    if ('occurred_at' in example) t.equal(shown.data.occurred_at, shown.created_at, type);
    t.notOk(parameters.some(({ name }: Json) => name === 'Rail-Request-Id'));
  }
  t.match(text, 'retries that are due are sent within a minute of being due');
  t.match(text, 'a public `https` address');
  t.match(text, 'lists the last 50 deliveries');
  t.notMatch(text, 'GET /recruitment/v1/events');
});

t.test('the OpenAPI documents pass the recommended rules of Redocly, examples against schemas included', async (t) => {
  const recruiting = JSON.parse(await textOf('/recruitment/v1/openapi.json')) as Json;
  const broken = structuredClone({
    ...openapi,
    paths: { '/v1/partners': openapi.paths['/v1/partners'] },
    webhooks: {},
  });
  broken.paths['/v1/partners'].post.requestBody.content['application/json'].example.email = 7;
  const [of_program, of_recruitment, of_broken] = await redocly(t.testdir(), [openapi, recruiting, broken]);
  for (const found of [of_program, of_recruitment])
    t.same([found?.problems, found?.totals.errors, found?.totals.warnings], [[], 0, 0]);
  const rules = (of_broken as Json).problems.map(({ ruleId }: Json) => ruleId);
  t.ok(rules.includes('no-invalid-media-type-examples'), 'which really look');
  t.equal(openapi.openapi, '3.1.0');
  t.match(openapi.info.version, /^\d{4}-\d\d-\d\d$/);
});

t.test('describes every operation and nothing else', async (t) => {
  t.same(
    routes.map(({ operationId, method, path, 'x-scope': scope }) => [operationId, method, path, scope]).sort(),
    operations.map(({ name, method, path, scope }) => [name, method, path, scope]).sort(),
  );
  t.same(
    openapi.tags.map(({ name }: Json) => name),
    [...new Set(operations.map(({ tag }) => tag))],
  );
});

t.test('says of every operation which scope, headers and errors it has', async (t) => {
  for (const operation of operations) {
    const { description, parameters, responses } = routeOf(operation);
    t.match(description, `\`${operation.scope}\``, operation.name);
    const referred = parameters.map(({ $ref }: Json) => $ref);
    const post = operation.method === 'POST';
    t.equal(referred.includes('#/components/parameters/IdempotencyKey'), post, `${operation.name}: Idempotency-Key`);
    t.equal('Idempotent-Replayed' in responses[operation.status].headers, post);
    t.ok(responses[operation.status].headers['Rail-Request-Id']);
    const statuses = [
      400,
      401,
      403,
      429,
      500,
      503,
      ...(post ? [422] : []),
      ...(operation.path.includes('{') ? [404] : []),
    ];
    t.same(
      statuses.filter((status) => !(status in responses)),
      [],
      operation.name,
    );
    t.equal('422' in responses, post, `${operation.name}: 422`);
  }
});

t.test('says at every way to choose who receives events what its scope lets see', async (t) => {
  for (const name of ['webhook_endpoints.create', 'webhook_endpoints.update', 'webhook_endpoints.rotate_secret']) {
    t.match(
      routes.find(({ operationId }) => operationId === name)?.description,
      /A key with this scope alone.*`personal_data`/,
    );
  }
  for (const text of [openapi.info.description, whole])
    t.match(text, /A key with the scope `webhooks:write` can have all events sent to it,.*`personal_data: false`/);
  const recruiting = await textOf('/recruitment/llms-full.txt');
  t.match(recruiting, 'A key with the scope `recruitment_webhooks:write` can have all events sent to it');
});

t.test('a menu can show the title of each operation: short, and no other has it', async (t) => {
  const titles = routes.map(({ summary }) => summary as string);
  t.equal(new Set(titles).size, titles.length);
  for (const title of titles) t.match(title, /^[A-Z][a-z]+ (an )?(API )?[a-z' ]{3,32}$/);
  for (const [name, title] of [
    ['partners.list', 'List partners'],
    ['applications.get', 'Retrieve an application'],
    ['sales.refund', 'Refund a sale'],
    ['partners.put_tax_form', 'Set a tax form'],
    ['webhook_endpoints.rotate_secret', 'Rotate a secret'],
  ]) {
    t.equal(routes.find(({ operationId }) => operationId === name)?.summary, title);
  }
  for (const operation of operations) t.ok(routeOf(operation).description.startsWith(operation.summary));
  t.match(openapi.tags, [{ 'x-displayName': 'Programs' }]);
});

t.test('every query parameter that a list of names takes says so', async (t) => {
  const [expand] = openapi.paths['/v1/partners'].get.parameters.filter(({ name }: Json) => name === 'expand');
  t.match(expand, { style: 'form', explode: false, schema: { type: 'array', items: { enum: ['group'] } } });
  t.notOk(openapi.paths['/v1/programs'].get.parameters.some(({ name }: Json) => name === 'expand'));
});

t.test("every example is one that the operation's own schema takes", async (t) => {
  for (const operation of operations) {
    const { requestBody, responses } = routeOf(operation);
    const { content } = responses[operation.status];
    const media = content['application/json'] ?? content['application/x-ndjson'];
    if (operation.file?.only) t.same(Object.keys(content), Object.values(operation.file.media_types));
    else t.same(faults(operation.reply, media.example), [], `reply of ${operation.name}`);
    if (takesBody(operation)) {
      const body = requestBody.content['application/json'];
      t.same(faults(operation.body, body.example), [], `body of ${operation.name}`);
      t.not(JSON.stringify(body.example), '{}', `body of ${operation.name} is not empty`);
    } else t.equal(requestBody, undefined, `no body of ${operation.name}`);
  }
});

t.test('an example tells of nothing that has not happened in its status', async (t) => {
  const exampleOf = (plural: string): Json =>
    openapi.paths[`/v1/${plural}/{id}`].get.responses[200].content['application/json'].example;
  t.match(exampleOf('partners'), { status: 'active', suspension_reason: null, decline_reason: null });
  t.match(exampleOf('commissions'), { status: 'pending', payout_id: null, paid_at: null });
  t.match(exampleOf('risk_flags'), { status: 'open', note: null, resolved_by: null });
  t.match(exampleOf('applications'), { status: 'pending', reviewed_by_user_id: null, rejection_reason: null });
});

t.test('replies and events may gain fields; bodies are closed', async (t) => {
  const open = [openapi.components.schemas, routes.map(({ responses }) => responses), openapi.webhooks];
  t.notMatch(JSON.stringify(open), /"additionalProperties":false/);
  for (const operation of operations.filter(takesBody)) {
    t.match(JSON.stringify(routeOf(operation).requestBody), /"additionalProperties":false/, operation.name);
  }
});

t.test('the range of exact integers stands in the schemas, where it is enforced, and not in the texts', async (t) => {
  t.match(JSON.stringify(openapi), `"maximum":${Number.MAX_SAFE_INTEGER}`);
  t.notMatch(whole, String(Number.MAX_SAFE_INTEGER));
});

t.test('records are named once', async (t) => {
  const names = Object.keys(openapi.components.schemas);
  t.ok(['Program', 'Partner', 'Sale', 'Commission', 'Error'].every((name) => names.includes(name)));
  t.same(
    names.filter((name) => name.endsWith('Input')),
    [],
  );
});

t.test(
  'every error code is in the schema, and those that can be answered are in the table with their meaning',
  async (t) => {
    t.same(openapi.components.schemas.Error.properties.error.properties.code.enum, codes);
    const answered = ['route_not_found', 'method_not_allowed', ...operations.flatMap(errorsOf)];
    for (const code of codes) {
      const { type, status, doc } = problems[code];
      const is_listed = whole.includes(`| \`${code}\` | \`${type}\` | ${status} | ${doc} |`);
      t.equal(is_listed, answered.includes(code), code);
    }
    for (const operation of operations) {
      const { 'x-errors': own } = routeOf(operation);
      t.equal(own.length, new Set(own).size, `${operation.name} names each code once`);
    }
  },
);

t.test('errors that the service answers are as described', async (t) => {
  const nameless = await visit('/v1/programs');
  t.equal(nameless.status, 401);
  t.same(faults(ErrorBody, await nameless.json()), []);
  const merchant = await rail.organization();
  for (const operation of operations.filter(({ path }) => path.includes('{'))) {
    const { status, body } = await merchant.request(operation.method, operation.path.replaceAll(/\{\w+\}/g, 'none_1'));
    t.same(faults(ErrorBody, body), [], operation.name);
    t.ok(routeOf(operation).responses[status], `${operation.name}: ${status} is described`);
  }
});

t.test('every event type is in both, with its fields, and an example of its whole envelope', async (t) => {
  t.same(Object.keys(openapi.webhooks), types);
  for (const [type, { data, doc, postback }] of Object.entries(program.events.catalogue)) {
    const { post } = openapi.webhooks[type];
    const { schema, example } = post.requestBody.content['application/json'];
    t.same(faults(data, example.data), [], type);
    t.match(example, { type, id: /^sample_evt_/, request: { id: /^sample_req_/ } });
    t.match(post.description, doc);
    t.equal(post['x-postback'], postback !== false);
    const described = openapi.components.schemas[schema.$ref.split('/').at(-1)];
    t.same(Object.keys(described.properties), ['id', 'type', 'created_at', 'data', 'request']);
    t.same(Object.keys(described.properties.data.properties), Object.keys(data.shape), type);
    const section = sectionOf('##', `${type}${postback === false ? '' : ' (also for postbacks)'}`);
    t.same(
      Object.keys(data.shape).filter((field) => !section.includes(`\`${field}\``)),
      [],
      type,
    );
    t.ok(section.includes(JSON.stringify(example)));
  }
});

t.test('what postbacks receive an event without is required neither by its schema nor by llms-full.txt', async (t) => {
  for (const [type, { data, postback }] of Object.entries(program.events.catalogue)) {
    const { schema } = openapi.webhooks[type].post.requestBody.content['application/json'];
    const described = openapi.components.schemas[schema.$ref.split('/').at(-1)].properties.data;
    const omitted = postback === false ? [] : postback.omit;
    const required = (z.toJSONSchema(data, { unrepresentable: 'any' }) as Json).required as string[];
    t.same(
      described.required,
      required.filter((name) => !omitted.includes(name)),
      type,
    );
  }
  t.match(sectionOf('##', 'referral.lead (also for postbacks)'), '- `email` (string or null, optional)');
});

t.test('llms.txt names every operation, and where the rest is', async (t) => {
  t.match(index, /^# Rail\n\n> /);
  t.match(index, '(/llms-full.txt)');
  t.match(index, '(/v1/openapi.json)');
  for (const { name, method, path, summary } of operations) {
    t.ok(index.includes(`\`${method} ${path}\``) && index.includes(summary) && index.includes(`\`${name}\``), name);
    t.ok(index.includes(`(/llms-full.txt#${name})`), 'it leads to its place');
  }
});

t.test('llms-full.txt names every operation with its scope and every field that goes in or comes out', async (t) => {
  for (const operation of operations) {
    const section = sectionOf('###', `${operation.method} ${operation.path}`);
    t.ok(section.includes(`\`${operation.scope}\``), `${operation.name}: scope`);
    const input = [operation.params, operation.query, operation.body].flatMap((schema) => fieldsOf(schema, 'input'));
    t.same(
      input.filter((field) => !section.includes(`- \`${field}\` (`)),
      [],
      `${operation.name} takes each`,
    );
    const named = z.globalRegistry.get(operation.reply)?.id;
    const told = named ? sectionOf('##', named) : section;
    t.same(
      fieldsOf(operation.reply, 'output').filter((field) => !told.includes(`- \`${field}\` (`)),
      [],
      `${operation.name} answers each`,
    );
  }
});

t.test('llms-full.txt says types, bounds, defaults and what may be null', async (t) => {
  const partner = sectionOf('###', 'POST /v1/partners');
  t.match(partner, '- `email` (string, email, required, at most 254 characters)');
  t.match(partner, '- `status` (`active` | `pending`, optional, default `"active"`)');
  t.match(sectionOf('###', 'GET /v1/partners'), '- `limit` (integer, optional, 1 to 100, default `25`)');
  t.match(sectionOf('##', 'Partner'), '- `group_id` (string `grp_…` or null)');
});

t.test('llms-full.txt explains the signature so that it can be verified', async (t) => {
  for (const word of ['Rail-Signature', 'whsec_', 'HMAC-SHA256', 'raw body', 'constant time', 'webhook-signature']) {
    t.match(whole, word);
  }
});

t.test('the verify() that is published says true of what is genuine, and false of everything else', async (t) => {
  const [, code] = /```js\n(.*?)```/s.exec(whole) as RegExpExecArray;
  const { verify } = await import(`data:text/javascript,${encodeURIComponent(`${code}export { verify };`)}`);
  const [body, secret] = [Buffer.from('{"id":"evt_1"}'), 'whsec_c2VjcmV0'];
  const now = Math.floor(Date.now() / 1000);
  const genuine = railSignature([secret], now, body);
  t.equal(verify(genuine, body, secret), true);
  t.equal(verify(railSignature(['whsec_bmV3', secret], now, body), body, secret), true, 'during a rotation');
  t.equal(verify(genuine, Buffer.from('{}'), secret), false);
  t.equal(verify(railSignature([secret], now - 301, body), body, secret), false);
  for (const forged of [undefined, null, '', 't=1,v1', `t=${now},v1`, `t=${now},v1=${'é'.repeat(64)}`, 'v1=', '=,=']) {
    t.equal(verify(forged, body, secret), false, `${forged}`);
  }
});

/** Returns the faults that a schema finds. */
const faults = (schema: z.ZodType, value: unknown): string[] =>
  schema.safeParse(value).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];

const takesBody = ({ body, method, bulk_of }: Operation): boolean =>
  method !== 'GET' && fieldsOf(bulk_of?.body ?? body, 'input').length > 0;

/** The fields of a schema, but for a list of names that may name nothing. */
function fieldsOf(schema: z.ZodType, io: 'input' | 'output'): string[] {
  const { properties = {}, anyOf, oneOf } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json;
  const branches: Json[] = anyOf ?? oneOf ?? [];
  return [properties, ...branches.map((branch) => branch.properties ?? {})]
    .flatMap((fields) => Object.entries<Json>(fields))
    .filter(([, field]) => !field.items?.not)
    .map(([name]) => name);
}

/** Returns the text under a heading of llms-full.txt. */
function sectionOf(level: '##' | '###', title: string): string {
  const [, rest] = whole.split(`\n${level} ${title}\n`);
  t.ok(rest, `llms-full.txt has a section ${title}`);
  return rest?.split(/\n#{1,3} /)[0] ?? '';
}

/** The linter as it is installed, without a configuration file, and silent towards the network. @returns what it finds in each document */
async function redocly(directory: string, documents: Json[]): Promise<Json[]> {
  const files = documents.map((_, nth) => join(directory, `openapi_${nth}.json`));
  for (const [nth, file] of files.entries()) await writeFile(file, JSON.stringify(documents[nth]));
  const found = createRequire(import.meta.url).resolve('@redocly/cli/package.json');
  const program = join(dirname(found), 'bin', 'cli.js');
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' };
  const options = ['--extends', 'recommended', '--format', 'json', '--max-problems', '1000'];
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [program, 'lint', ...files, ...options],
      { env, cwd: directory, maxBuffer: 64_000_000 },
      (_, stdout, stderr) => {
        const reports = stdout.split(/(?<=^\})(?=\{$)/m);
        if (reports.length === documents.length) resolve(reports.map((report) => JSON.parse(report)));
        else reject(new Error(`redocly said: ${stdout}${stderr}`));
      },
    );
  });
}
