import swagger from '@fastify/swagger';
import Fastify, { type FastifyInstance } from 'fastify';
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { media_types } from '../formats/format.ts';
import { type Operation, routePath } from '../resource/operation.ts';
import { api_version } from '../values/api.ts';
import { nounOf as inWords } from '../values/noun.ts';
import { type ProblemCode, problems } from '../values/problem.ts';
import { conventions } from './conventions.ts';
import type { Described } from './described.ts';
import {
  eventTime,
  exampleBody,
  exampleFilter,
  exampleOf,
  exampleReply,
  type Samples,
  samplesOf,
  singular,
  update_time,
} from './example.ts';
import { anyJson, nameOf, opened, override, resolve, type Schema, type Schemas, saidOutside } from './json_schema.ts';
import {
  type Document,
  errorResponse,
  every_response,
  headerRefs,
  headers,
  json,
  type Media,
  type Parameter,
  type PathOperation,
  parameters,
  type Response,
  responseName,
} from './openapi_parts.ts';
import { envelopeSchema, eventName, webhook } from './openapi_webhooks.ts';
import { errorsOf } from './operation_errors.ts';
import { tagTitle, titleOf } from './title.ts';

/** The OpenAPI description, read off the operations' routes on a server of its own, which serves nobody. */
export async function documentOf(described: Described): Promise<Document> {
  const app = Fastify();
  app.setValidatorCompiler(() => () => true).setSerializerCompiler(() => JSON.stringify);
  const toSchemas = createJsonSchemaTransformObject({ zodToJsonConfig: { override } });
  await app.register(swagger, {
    convertConstToEnum: false,
    openapi: {
      openapi: '3.1.0',
      info: { title: described.title, version: api_version },
      servers: [{ url: URL.parse(described.base_url)?.pathname ?? '/', description: 'This service.' }],
      security: [{ api_key: [] }],
      components: {
        securitySchemes: {
          api_key: { type: 'http', scheme: 'bearer', description: 'An API key, `rail_live_…` or `rail_test_…`.' },
        },
      },
    } as object,
    transform: createJsonSchemaTransform({ zodToJsonConfig: { override } }),
    transformObject: (document) =>
      complete(saidOutside(anyJson(toSchemas(document))) as unknown as Document, described) as object,
  });
  for (const operation of described.operations) addRoute(app, operation);
  await app.ready();
  return app.swagger() as unknown as Document;
}

const addRoute = (
  app: FastifyInstance,
  { name, tag, summary, doc, method, path, params, query, body, status, reply, other_reply }: Operation,
) =>
  app.route({
    method,
    url: routePath(path),
    schema: {
      operationId: name,
      tags: [tag],
      summary,
      ...(doc ? { description: doc } : {}),
      params,
      querystring: query,
      ...(method === 'GET' ? {} : { body }),
      response: { ...(other_reply && { [other_reply.status]: other_reply.reply }), [status]: reply },
    } as object,
    handler: () => {},
  });

/** The document as the routes gave it, and what they do not say: conventions, scopes, headers, errors, examples, events. */
function complete(document: Document, described: Described): Document {
  const { operations, events, delivery, examples, path: root } = described;
  const common = commonErrors(operations);
  const schemas = {
    ...open(document.components.schemas),
    ...Object.fromEntries(
      Object.entries(events).map(([type, event]) => [eventName(type), envelopeSchema(type, event, delivery)]),
    ),
  };
  const samples = samplesOf(schemas, examples);
  const by_name = new Map(operations.map((operation) => [operation.name, operation]));
  const paths = mapValues(document.paths, (methods) =>
    mapValues(methods, (route) =>
      pathOperation(route, by_name.get(route.operationId) as Operation, { samples, common, root, document }),
    ),
  );
  return withoutUnused(
    unifyInputs({
      ...document,
      info: infoOf(described),
      tags: tagsOf(operations),
      paths,
      webhooks: Object.fromEntries(
        Object.entries(events).map(([type, event]) => [
          type,
          webhook(type, event, delivery, eventTime(examples, type)),
        ]),
      ),
      components: {
        ...document.components,
        schemas,
        parameters,
        headers,
        responses: Object.fromEntries(
          [...common].map(([status, codes]) => [responseName(status), errorResponse(status, codes)]),
        ),
      },
    }),
  );
}

const infoOf = (described: Described) => ({
  title: described.title,
  version: api_version,
  summary: described.summary,
  description: conventions(described)
    .map(({ title, text }) => `## ${title}\n\n${text}`)
    .join('\n\n'),
  license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
});

function pathOperation(
  route: PathOperation,
  operation: Operation,
  given_with: { samples: Samples; common: Map<string, ProblemCode[]>; root: string; document: Document },
): PathOperation {
  const { samples, common, root, document } = given_with;
  const { schemas } = samples;
  const { requestBody, parameters: given = [], responses, ...rest } = route;
  const reply = responses[operation.status]?.content?.[json]?.schema as Schema;
  const body = requestBody?.content[json];
  const record = recordOf(resolve(reply, schemas), schemas);
  const noun = nounOf(operation, root, document);
  const taken =
    body && !isNothing(body.schema)
      ? { ...body, schema: saidAlready(body.schema, madeBy(operation, record, schemas)) }
      : undefined;
  const request_body = taken && bodyOf(operation, taken, samples);
  const changes = changesBy(operation, resolve(reply, schemas), {
    noun,
    body: request_body?.content[json]?.example,
    samples,
  });
  return {
    ...rest,
    summary: titleOf(operation, root, noun),
    description: [operation.summary, operation.doc, scopesOf(operation)].filter(Boolean).join('\n\n'),
    'x-scope': operation.scope,
    'x-errors': errorsOf(operation),
    parameters: [
      ...given.filter(takesSomething).map((parameter) => illustrated(spelt(parameter), noun, samples)),
      ...headerParameters(operation),
    ],
    ...(request_body ? { requestBody: request_body } : {}),
    responses: {
      ...otherResponse(route, operation, samples),
      [operation.status]: {
        description: z.globalRegistry.get(operation.reply)?.description ?? operation.summary,
        headers: headerRefs([...every_response, ...(operation.method === 'POST' ? ['Idempotent-Replayed'] : [])]),
        content: operation.is_feed
          ? {
              [media_types.ndjson]: {
                schema: opened(reply),
                example: lineOf(operation) ?? exampleReply(reply, samples, changes),
              },
            }
          : {
              ...(operation.file?.only
                ? {}
                : { [json]: { schema: opened(reply), example: exampleReply(reply, samples, changes) } }),
              ...(operation.stream ? streamContent() : {}),
              ...fileContent(operation),
            },
      },
      ...refusals(operation, common),
    },
  };
}

/** The answer to a body that asks for another one than the operation's own: to a preview, say. */
function otherResponse(
  { responses }: PathOperation,
  { other_reply }: Operation,
  samples: Samples,
): Record<string, Response> {
  const schema = other_reply && responses[other_reply.status]?.content?.[json]?.schema;
  if (!other_reply || !schema) return {};
  const { description = '' } = z.globalRegistry.get(other_reply.reply) ?? {};
  const content = { [json]: { schema: opened(schema), example: exampleReply(schema, samples, {}) } };
  return {
    [other_reply.status]: { description, headers: headerRefs([...every_response, 'Idempotent-Replayed']), content },
  };
}

/** The line of a feed that its schema shows. */
const lineOf = ({ reply }: Operation): unknown => (z.globalRegistry.get(reply)?.examples as unknown[] | undefined)?.[0];

/** The other formats of an answer that has rows. */
const streamContent = (): Record<string, Media> => ({
  [media_types.csv]: {
    schema: { type: 'string', description: 'All rows, below a header line. Objects and lists in a field are JSON.' },
  },
  [media_types.ndjson]: {
    schema: { type: 'string', description: 'All rows, each as JSON on a line of its own.' },
  },
});

/** The files of an answer. */
const fileContent = ({ file }: Operation): Record<string, Media> =>
  Object.fromEntries(Object.values(file?.media_types ?? {}).map((type) => [type, { schema: { type: 'string' } }]));

/** The body, with the story's example or the operation's own, else one that is made from the schema. */
function bodyOf(operation: Operation, { schema }: Media, samples: Samples) {
  const { body: validator, upload, bulk_of } = operation;
  const givenExample = ({ name, example }: Operation) => samples.operations[name]?.body ?? example;
  const one = bulk_of && givenExample(bulk_of);
  const body_example = givenExample(operation) ?? (one && [one]) ?? exampleBody(schema, samples, validator);
  const filesTaken = Object.fromEntries(
    (bulk_of ? [media_types.ndjson] : (upload?.media_types ?? [])).map((type) => [
      type,
      { schema: { type: 'string' } },
    ]),
  );
  return {
    required: !validator.safeParse(undefined).success,
    content: { [json]: { schema, example: body_example } as Media, ...filesTaken },
  };
}

/** Returns the fields of the reply that differ from the story's record: the deleted id, the fields of an update, and the product's own. */
function changesBy(
  { name, method }: Operation,
  { properties = {} }: Schema,
  { noun, body, samples }: { noun: string; body: unknown; samples: Samples },
): Record<string, unknown> {
  const reply_example = samples.operations[name]?.reply;
  if (properties.deleted)
    return { id: exampleOf({ type: 'string' }, samples, `${noun}_id`), object: noun, ...reply_example };
  if (method !== 'PATCH' || !body) return { ...reply_example };
  const sent = Object.entries(body).filter(([field]) => field in properties);
  const updated = properties.updated_at ? { updated_at: update_time } : {};
  return { ...Object.fromEntries(sent), ...updated, ...reply_example };
}

const isNothing = ({ type, properties = {} }: Schema): boolean =>
  type === 'object' && Object.keys(properties).length === 0;

/** Returns whether anything can be expanded or included: else the parameter is left out. */
const takesSomething = ({ schema }: Parameter): boolean => schema.items?.not === undefined;

/** Lists in the query are separated by commas. That an empty one is the default says nothing, and clients would send it. */
function spelt(parameter: Parameter): Parameter {
  if (parameter.in !== 'query' || parameter.schema.type !== 'array') return parameter;
  const { default: _, ...schema } = parameter.schema;
  return { ...parameter, schema, ...{ style: 'form', explode: false } };
}

const headerParameters = ({ method }: Operation): Parameter[] =>
  [...(method === 'POST' ? ['IdempotencyKey'] : []), 'RailVersion', 'RailSignature'].map(
    (name) => ({ $ref: `#/components/parameters/${name}` }) as Parameter,
  );

/** Returns the errors of an operation, by status. */
const refusals = (operation: Operation, common: Map<string, ProblemCode[]>): Record<string, Response> =>
  Object.fromEntries(
    [...errorsByStatus(operation)].map(([status, codes]) => [
      status,
      common.has(status)
        ? ({ $ref: `#/components/responses/${responseName(status)}` } as Response)
        : errorResponse(status, codes),
    ]),
  );

/** Status → codes, where all operations that answer the status do so with the same codes: they are described once. */
function commonErrors(operations: Operation[]): Map<string, ProblemCode[]> {
  const answered = operations.flatMap((operation) => [...errorsByStatus(operation)]);
  const by_status = Map.groupBy(answered, ([status]) => status);
  const same = [...by_status].filter(([, those]) => new Set(those.map(String)).size === 1);
  return new Map(same.map(([status, [first]]) => [status, (first as [string, ProblemCode[]])[1]]));
}

const errorsByStatus = (operation: Operation): Map<string, ProblemCode[]> =>
  Map.groupBy(errorsOf(operation).sort(byStatus), (code) => String(problems[code].status));

const byStatus = (one: ProblemCode, other: ProblemCode): number => problems[one].status - problems[other].status;

/** The record that a reply is, or is a page of. */
const recordOf = (reply: Schema, schemas: Schemas): Schema =>
  reply.properties?.data?.items ? resolve(reply.properties.data.items, schemas) : reply;

/** The record that each body makes: of many, an outcome has one. */
const madeBy = ({ bulk_of, tag }: Operation, record: Schema, schemas: Schemas): Schema =>
  bulk_of ? resolve(record.properties?.[singular(tag)] ?? {}, schemas) : record;

/** A field that goes in is what comes out under the same name, unless it says otherwise. */
const saidAlready = (body: Schema, { properties: known = {} }: Schema): Schema => ({
  ...body,
  ...(body.items ? { items: saidAlready(body.items, { properties: known }) } : {}),
  ...(body.properties
    ? {
        properties: mapEntries(body.properties, (field, name) => {
          const description = meaningOf(field) ?? taken(field, known[name]?.description) ?? field.description;
          return description === undefined ? field : { ...field, description };
        }),
      }
    : {}),
});

/** Returns the description of a field, unless it only names the object that it is the id of. */
const meaningOf = ({ description }: Schema): string | undefined =>
  /^`\w+_…`$/.test(description ?? '') ? undefined : description;

/** Returns a record's description of a field, for input: sentences about null are left out where null cannot be sent. */
const taken = (field: Schema, description: string | undefined): string | undefined =>
  field.anyOf ? description : description?.replaceAll(/ ?\bNull\b[^.]*\./g, '') || description;

/**
 * A parameter with an example; that of a path says whose id it is. A client sends an example as it stands, so that of an optional parameter is
 * switched off, and a cursor has none.
 */
function illustrated(parameter: Parameter, noun: string, samples: Samples): Parameter {
  if (parameter.in === 'path' && parameter.name === 'id') {
    const description = `The id of the ${inWords(noun)}.`;
    return { ...parameter, description, example: exampleOf({ type: 'string' }, samples, `${noun}_id`) };
  }
  if (cursors.includes(parameter.name)) return parameter;
  const value = exampleFilter(parameter.schema, samples, parameter.name, noun);
  if (parameter.required) return { ...parameter, example: value };
  const { example: _, ...rest } = parameter;
  return { ...rest, examples: { default: { value, 'x-disabled': true } } };
}

const cursors = ['starting_after', 'ending_before'];

/** `webhook_delivery` of `/v1/webhook_deliveries/{id}/replay`. */
function nounOf({ path }: Operation, root: string, documented: Document): string {
  const plural = path.slice(root.length).split('/')[1] as string;
  const nested = Object.keys(documented.paths).find((other) => other.endsWith(`}/${plural}`));
  return objectAt(`${root}/${plural}/{id}`, documented) ?? objectAt(nested ?? path, documented) ?? singular(plural);
}

/** The `object` of the records at a path: `team_member` of `/recruitment/v1/team/{id}`. */
function objectAt(path: string, { paths, components }: Document): string | undefined {
  const replies = Object.values(paths[path] ?? {}).flatMap(({ responses }) => Object.values(responses));
  const records = replies.map(({ content }) => resolve(content?.[json]?.schema ?? {}, components.schemas).properties);
  const known = records.find((record) => record?.object?.const !== undefined);
  return known && String(known.object?.const);
}

/** Tag → the description of what its operations are about. */
function tagsOf(operations: Operation[]): Document['tags'] {
  return [...Map.groupBy(operations, ({ tag }) => tag)].map(([name, those]) => {
    const about = those.find((operation) => operation.name === `${name}.get`) ?? (those[0] as Operation);
    return {
      name,
      'x-displayName': tagTitle(name),
      description: z.globalRegistry.get(about.reply)?.description ?? rowsOf(about)?.description ?? about.summary,
    };
  });
}

/** Returns the description of the records of a list. */
function rowsOf({ reply }: Operation): { description?: string } | undefined {
  const { data } = (reply as Partial<z.ZodObject>).shape ?? {};
  return data instanceof z.ZodArray ? z.globalRegistry.get(data.element as z.ZodType) : undefined;
}

/** Replies may gain fields, so what comes out is never said to be closed; what goes in stays strict. */
const open = (schemas: Schemas): Schemas =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, name.endsWith('Input') ? schema : opened(schema)]),
  );

/** The libraries name what goes in `XInput` and what comes out `X`; where both are the same, there is one. */
function unifyInputs(document: Document): Document {
  const { schemas } = document.components;
  const plain = (name: string) => name.slice(0, -'Input'.length);
  const text_of = (schema: Schema) => JSON.stringify(schema).replaceAll(/(\/schemas\/\w+)Input"/g, '$1"');
  const same = Object.keys(schemas).filter((name) => {
    const other = name.endsWith('Input') ? schemas[plain(name)] : undefined;
    return other !== undefined && text_of(schemas[name] as Schema) === text_of(other);
  });
  return JSON.parse(JSON.stringify(document), (key, value) =>
    key === '$ref' && same.includes(nameOf(value)) ? plain(value) : value,
  );
}

/** The libraries list every schema that has a name: those that nothing refers to go. */
function withoutUnused(document: Document): Document {
  const { schemas, ...components } = document.components;
  const used = new Set<string>();
  const follow = (value: unknown) =>
    JSON.stringify(value, (key, inner) => {
      if (key === '$ref' && inner.startsWith('#/components/schemas/') && !used.has(nameOf(inner))) {
        used.add(nameOf(inner));
        follow(schemas[nameOf(inner)]);
      }
      return inner;
    });
  follow([document.paths, document.webhooks, components]);
  const kept = Object.entries(schemas).filter(([name]) => used.has(name));
  return { ...document, components: { ...components, schemas: Object.fromEntries(kept) } };
}

const mapEntries = <From, To>(
  record: Record<string, From>,
  map: (value: From, key: string) => To,
): Record<string, To> => Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]));

const mapValues = <From, To>(record: Record<string, From>, map: (value: From) => To): Record<string, To> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));

function scopesOf({ scope, further_scopes = [] }: Operation): string {
  const named = [scope, ...further_scopes].map((each) => `\`${each}\``);
  const last = named.pop();
  return named.length === 0 ? `Requires the scope ${last}.` : `Requires the scopes ${named.join(', ')} and ${last}.`;
}
