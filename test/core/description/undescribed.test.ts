import t from 'tap';
import { errors_of_all, errorsOf, ownErrorsOf } from '../../../src/core/description/operation_errors.ts';
import { problems } from '../../../src/core/values/problem.ts';
import { api } from '../../../src/program/api.ts';
import { program } from '../../../src/program/index.ts';
import { terms } from '../../../src/webhooks/terms.ts';
import { type Json, startRail } from '../../harness.ts';

const { operations } = api;
const rail = await startRail({ worker: false });
const textOf = async (path: string) => (await fetch(rail.address + path)).text();
const openapi = JSON.parse(await textOf('/v1/openapi.json')) as Json;
const whole = await textOf('/llms-full.txt');
const routes = Object.values<Json>(openapi.paths).flatMap(Object.values<Json>);
const hooks = Object.values<Json>(openapi.webhooks).map(({ post }) => post as Json);

t.test(
  'nothing in the description goes without one: operations, parameters, fields, replies, headers, events',
  async (t) => {
    t.same(undescribed(openapi), []);
    t.same(undescribed(JSON.parse(await textOf('/recruitment/v1/openapi.json'))), []);
  },
);

t.test('that test really looks: what loses its description is found, wherever it stands', async (t) => {
  const places: [string, (document: Json) => Json][] = [
    ['a field of a record', ({ components }) => components.schemas.Partner.properties.handle],
    ['a nested field', ({ components }) => components.schemas.Partner.properties.stats.properties.clicks],
    ['a field of a list', ({ components }) => components.schemas.Rule.properties.tiers.items.properties.from],
    ['a field of an event', ({ components }) => components.schemas.SaleCreatedEvent.properties.data.properties.sale_id],
    ['a field of a body', ({ paths }) => schemaOf(paths['/v1/sales'].post.requestBody).properties.click_id],
    ['a filter', ({ paths }) => paths['/v1/sales'].get.parameters.find(({ name }: Json) => name === 'partner_id')],
    ['a header', ({ components }) => components.headers['Rail-Request-Id']],
    ['an operation', ({ paths }) => paths['/v1/sales'].post],
    ['a reply', ({ paths }) => paths['/v1/sales'].post.responses[201]],
    ['an event', ({ webhooks }) => webhooks['sale.created'].post],
    ['a record', ({ components }) => components.schemas.Sale],
  ];
  for (const [what, find] of places) {
    const document = structuredClone(openapi);
    delete find(document).description;
    t.equal(undescribed(document).length, 1, what);
  }
});

t.test('every parameter but a cursor has an example, which its operation takes', async (t) => {
  const wrong: string[] = [];
  for (const operation of operations) {
    const route = routes.find(({ operationId }) => operationId === operation.name) as Json;
    for (const parameter of route.parameters.filter(({ $ref }: Json) => !$ref)) {
      const { name, in: where } = parameter;
      const { query, params } = operation;
      const schema = where === 'query' ? query : params;
      const others = requiredOf(route, where);
      const example = exampleOf(parameter);
      const { error } = schema.safeParse({ ...others, ...(isCursor(name) ? {} : { [name]: example }) });
      if (error || (example === undefined) !== isCursor(name))
        wrong.push(`${operation.name}: ${name} ${error?.message}`);
    }
  }
  t.same(wrong, []);
});

t.test('nothing optional is sent by itself: no cursor, no header, no filter', async (t) => {
  const optional = routes.flatMap(({ parameters }) => parameters).filter(({ $ref, required }) => !$ref && !required);
  t.same(
    optional.filter(
      ({ name, example, examples }) => example || !(isCursor(name) || examples.default['x-disabled'] === true),
    ),
    [],
  );
  for (const { name, schema, ...rest } of Object.values<Json>(openapi.components.parameters)) {
    t.notOk('example' in rest || 'examples' in rest, name);
    for (const keyword of ['default', 'const', 'enum', 'example', 'examples']) t.notOk(keyword in schema, name);
  }
});

t.test('every header of a webhook has an example, and its whole body too', async (t) => {
  t.equal(hooks.length, Object.keys(program.events.catalogue).length);
  for (const { parameters, requestBody } of hooks) {
    for (const { name, schema } of parameters) t.ok(schema.const ?? schema.examples?.[0], name);
    t.ok(requestBody.content['application/json'].example.data);
  }
});

t.test('each operation names the codes that it answers, in both texts', async (t) => {
  for (const operation of operations) {
    const route = routes.find(({ operationId }) => operationId === operation.name) as Json;
    const codes = errorsOf(operation);
    t.same(route['x-errors'], codes, operation.name);
    const shown = Object.values<Json>(route.responses)
      .map(({ $ref, ...inline }) => ($ref ? openapi.components.responses[$ref.split('/').at(-1)] : inline))
      .flatMap(({ content }) => Object.keys(content['application/json']?.examples ?? {}));
    t.same(shown.sort(), [...codes].sort(), operation.name);
    const section = whole.split(`\n### ${operation.method} ${operation.path}\n`)[1]?.split(/\n#{1,3} /)[0] ?? '';
    t.same(
      ownErrorsOf(operation).filter((code) => !section.includes(`\`${code}\` (${problems[code].status})`)),
      [],
      operation.name,
    );
  }
  t.match(whole, `Every operation can answer ${errors_of_all.map((code) => `\`${code}\``).join(', ')}`);
  t.notOk(routeNamed('sales.refund')['x-errors'].includes('self_referral'));
  t.ok(routeNamed('sales.refund')['x-errors'].includes('refund_exceeds_sale'));
});

t.test('the numbers of the text are those that the service goes by', async (t) => {
  const { waits_s, timeout_ms, kept_days, overlap_ms, user_agent, sweep_minutes } = terms(program.events);
  t.same(
    { waits_s, timeout_ms, kept_days, overlap_ms, user_agent, sweep_minutes },
    {
      waits_s: [60, 300, 1_800, 7_200, 43_200, 86_400, 86_400],
      timeout_ms: 10_000,
      kept_days: 30,
      overlap_ms: 86_400_000,
      user_agent: 'Rail-Webhooks/1.0',
      sweep_minutes: [1, 31],
    },
  );
  t.match(whole, '1 minute, 5 minutes, 30 minutes, 2 hours, 12 hours, 24 hours and 24 hours after the one before');
  t.match(whole, 'at 1 and 31 minutes past the hour');
  t.match(whole, 'Answer any 2xx within 10 seconds');
  t.match(whole, 'nested at most 64 levels deep, and holds at most 10,000 values');
  t.match(whole, 'beyond ±9,007,199,254,740,991');
  t.match(whole, 'can send it again for 5 minutes');
  t.match(whole, 'does not cover the method, the path');
  t.match(whole, 'A failed attempt does not hold up the events after it');
  t.match(whole, '429, 500, 503 and 409 `idempotency_key_in_flight`');
  t.match(whole, 'If a charge came with a customer and a coupon, send both');
  t.match(whole, 'kept 30 days');
  t.match(whole, 'last 20 events all failed every retry within 30 days, over 5 days or more');
  t.match(whole, 'During the 24 hours after a rotation');
  t.equal(hooks[0]?.parameters.find(({ name }: Json) => name === 'Rail-Attempt').schema.maximum, 8);
});

const routeNamed = (name: string): Json => routes.find(({ operationId }) => operationId === name) as Json;

function schemaOf({ content }: Json): Json {
  return (content['application/json'] ?? content['application/x-ndjson'] ?? Object.values<Json>(content)[0]).schema;
}

const exampleOf = ({ example, examples }: Json): unknown => example ?? examples?.default.value;

const isCursor = (name: string): boolean => ['starting_after', 'ending_before'].includes(name);

/** Returns the required parameters of a query. */
const requiredOf = ({ parameters }: Json, place: string): Json =>
  Object.fromEntries(
    parameters
      .filter(({ in: where, required }: Json) => where === place && required)
      .map(({ name, example }: Json) => [name, example]),
  );

/** The places of a document that lack a description. References are followed once, where what they name stands. */
function undescribed({ tags, paths, webhooks, components }: Json): string[] {
  const missing: string[] = [];
  const check = (of: Json, at: string) => {
    if (of.$ref === undefined && !of.description?.trim()) missing.push(at);
  };
  const fields = (schema: Json, at: string) => {
    for (const [name, field] of Object.entries<Json>(schema.properties ?? {})) {
      check(field, `${at}.${name}`);
      fields(field, `${at}.${name}`);
    }
    for (const inner of [schema.items, schema.additionalProperties, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) {
      if (inner !== null && typeof inner === 'object') fields(inner, at);
    }
  };
  const response = (of: Json, at: string) => {
    check(of, at);
    for (const [name, header] of Object.entries<Json>(of.headers ?? {})) check(header, `${at} ${name}`);
    if (of.content) fields(schemaOf(of), at);
  };
  const operation = (of: Json, at: string) => {
    check(of, at);
    if (!of.summary?.trim()) missing.push(`${at}: summary`);
    for (const parameter of of.parameters ?? []) {
      check(parameter, `${at}?${parameter.name}`);
      if (parameter.schema) fields(parameter.schema, `${at}?${parameter.name}`);
    }
    if (of.requestBody) fields(schemaOf(of.requestBody), `${at} body`);
    for (const [status, reply] of Object.entries<Json>(of.responses)) response(reply, `${at} ${status}`);
  };
  for (const tag of tags) check(tag, tag.name);
  for (const methods of Object.values<Json>({ ...paths, ...webhooks })) {
    for (const of of Object.values<Json>(methods)) operation(of, of.operationId);
  }
  for (const [name, schema] of Object.entries<Json>(components.schemas)) {
    check(schema, name);
    fields(schema, name);
  }
  for (const kind of ['parameters', 'headers', 'securitySchemes']) {
    for (const [name, of] of Object.entries<Json>(components[kind])) check(of, name);
  }
  for (const [name, of] of Object.entries<Json>(components.responses)) response(of, name);
  return missing;
}
