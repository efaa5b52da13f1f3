import { media_types } from '../formats/format.ts';
import { type ProblemCode, problems } from '../values/problem.ts';
import { type Described, rootOf } from './described.ts';
import { exampleReply, type Samples, samplesOf } from './example.ts';
import { nameOf, resolve, type Schema, type Schemas, typesOf } from './json_schema.ts';
import { type Document, json, type Media, type Parameter, type PathOperation } from './openapi_parts.ts';
import { errors_of_all, errors_of_bodies, errors_of_keys, errors_of_requests } from './operation_errors.ts';

interface Listed extends PathOperation {
  method: string;
  path: string;
}

/** llms.txt: what this is, where the whole description lies, and one line an operation. */
export function indexText(
  { info, servers, paths, tags }: Document,
  { path: path_of_api, others = [] }: Pick<Described, 'path' | 'others'>,
): string {
  const operations = listed(paths);
  const service = servers[0].url.replace(/\/$/, '');
  const at = service + rootOf(path_of_api);
  return lines([
    `# ${info.title}`,
    '',
    `> ${info.summary} JSON over HTTP with \`Authorization: Bearer <API key>\`. Version ${info.version}.`,
    '',
    `- [Full description as text](${at}/llms-full.txt): conventions, every operation with its fields, errors and events`,
    `- [OpenAPI 3.1](${service}${path_of_api}/openapi.json): the same, machine-readable`,
    `- [Documentation in a browser](${service}/docs)`,
    `- [Receiving webhooks](${service}/docs/webhooks): how to verify them, with a receiver in each of five languages`,
    `- [Data](${service}/docs/data): SQL, GraphQL, dbt and the change feed, for data teams`,
    ...others.map(
      ({ title, path }) => `- [${title}](${service}${rootOf(path)}/llms.txt): the other service at this address`,
    ),
    ...tags.flatMap(({ name, description }) => [
      '',
      `## ${name}`,
      '',
      description,
      '',
      ...operations
        .filter(({ tags: of = [] }) => of.includes(name))
        .map(
          ({ method, path, operationId, description = '' }) =>
            `- [\`${method} ${path}\`](${at}/llms-full.txt#${operationId}): ${description.split('\n\n')[0]} (\`${operationId}\`)`,
        ),
    ]),
  ]);
}

/** llms-full.txt: all that somebody who never saw the code needs. */
export function wholeText(document: Document, { path, examples }: Pick<Described, 'path' | 'examples'>): string {
  const { info, tags, paths, components, webhooks } = document;
  const operations = listed(paths);
  const samples = samplesOf(components.schemas, examples);
  return lines([
    `# ${info.title}`,
    '',
    `> ${info.summary}`,
    '',
    `Version ${info.version}. Machine-readable: \`GET ${path}/openapi.json\` (OpenAPI 3.1). Paths are relative to the service's address.`,
    '',
    '# Conventions',
    '',
    info.description,
    '',
    '# Operations',
    ...tags.flatMap(({ name, description }) => [
      '',
      `## ${name}`,
      '',
      description,
      ...operations
        .filter(({ tags: of = [] }) => of.includes(name))
        .flatMap((operation) => operationText(operation, components.schemas)),
    ]),
    '',
    '# Objects',
    '',
    'The fields of the objects in replies. A field is always present unless it is marked as optional.',
    ...objectNames(document).flatMap((name) => objectText(name, samples)),
    '',
    '# Errors',
    '',
    `Every operation can answer ${listOf(errors_of_all)}; every one but a GET ${listOf(errors_of_bodies)}; every POST ${listOf(errors_of_keys)}. Each operation lists its other errors.`,
    '',
    '| code | type | status | meaning |',
    '|---|---|---|---|',
    ...answerable(listed(paths)).map((code) => {
      const { type, status, doc } = problems[code];
      return `| \`${code}\` | \`${type}\` | ${status} | ${doc} |`;
    }),
    '',
    '# Events',
    '',
    'The `data` of every type of event. For the envelope, the headers and the signature, see Webhooks above.',
    ...Object.entries(webhooks).flatMap(([type, { post }]) => eventText(type, post, components.schemas)),
  ]);
}

const shared_errors = [...errors_of_all, ...errors_of_bodies, ...errors_of_keys];
const listOf = (codes: ProblemCode[]): string => codes.map((code) => `\`${code}\``).join(', ');

const listed = (paths: Document['paths']): Listed[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  );

function operationText(operation: Listed, schemas: Schemas): string[] {
  const { method, path, operationId, description = '', parameters = [], requestBody, responses } = operation;
  const body = requestBody?.content[json];
  const errors = (operation['x-errors'] ?? []).filter((code) => !shared_errors.includes(code));
  return [
    '',
    `### ${method} ${path}`,
    '',
    `\`${operationId}\`. ${description.replaceAll('\n\n', ' ')}`,
    ...parametersText('Path', 'path', parameters, schemas),
    ...parametersText('Query', 'query', parameters, schemas),
    ...(body
      ? [
          '',
          requestBody.required ? 'Body:' : 'Body (optional):',
          ...fieldsText(body.schema, schemas, 'input'),
          '',
          `Example body: \`${JSON.stringify(body.example)}\``,
        ]
      : []),
    ...Object.entries(responses).flatMap(([status, { content = {} }]) => {
      const media = content[json] ?? content[media_types.ndjson];
      if (!status.startsWith('2')) return [];
      return media
        ? replyText(status, media, schemas)
        : ['', `Reply: ${status} with a file, ${Object.keys(content).join(' or ')}.`];
    }),
    '',
    errorsText(errors),
  ];
}

const errorsText = (errors: ProblemCode[]): string =>
  errors.length === 0
    ? 'Errors: only those of every operation.'
    : `Errors: ${errors.map((code) => `\`${code}\` (${problems[code].status})`).join(', ')}, and the errors of every operation.`;

/** Returns the errors of the operations, and those that no operation declares because any request can meet them. */
function answerable(operations: Listed[]): ProblemCode[] {
  const declared = operations.flatMap((operation) => operation['x-errors'] ?? []);
  const all = [...declared, ...shared_errors, ...errors_of_requests];
  return (Object.keys(problems) as ProblemCode[]).filter((code) => all.includes(code));
}

function parametersText(title: string, where: string, parameters: Parameter[], schemas: Schemas): string[] {
  const those = parameters.filter((parameter) => parameter.in === where);
  if (those.length === 0) return [];
  return [
    '',
    `${title}:`,
    ...those.flatMap(({ name, required = false, description, schema }) =>
      fieldText(name, { ...schema, ...(description ? { description } : {}) }, required, schemas, 'input', ''),
    ),
  ];
}

function replyText(status: string, { schema, example }: Media, schemas: Schemas): string[] {
  const named = schema.$ref ? `${status} with ${nameOf(schema.$ref)} (see Objects).` : `${status} with`;
  const names_objects = JSON.stringify(schema).includes('"$ref"');
  return [
    '',
    `Reply: ${named}`,
    ...(schema.$ref ? [] : fieldsText(schema, schemas, 'output')),
    ...(names_objects ? [] : ['', `Example reply: \`${JSON.stringify(example)}\``]),
  ];
}

/** The objects that replies name, not the bodies of requests and not the events, which stand where they are used. */
function objectNames({ components, webhooks }: Document): string[] {
  const events = Object.values(webhooks).map(({ post }) => nameOf(post.requestBody?.content[json]?.schema.$ref ?? ''));
  return Object.keys(components.schemas)
    .filter((name) => !events.includes(name))
    .sort();
}

function objectText(name: string, samples: Samples): string[] {
  const { schemas } = samples;
  const schema = schemas[name] as Schema;
  return [
    '',
    `## ${name}`,
    '',
    schema.description ?? '',
    '',
    ...fieldsText(schema, schemas, 'output'),
    '',
    `Example: \`${JSON.stringify(exampleReply(schema, samples))}\``,
  ];
}

function eventText(
  type: string,
  { description = '', requestBody, ...rest }: PathOperation,
  schemas: Schemas,
): string[] {
  const { schema, example } = (requestBody as NonNullable<typeof requestBody>).content[json] as Media;
  const data = resolve(schema, schemas).properties?.data as Schema;
  return [
    '',
    `## ${type}${rest['x-postback'] ? ' (also for postbacks)' : ''}`,
    '',
    description.replaceAll('\n\n', ' '),
    '',
    ...fieldsText(data, schemas, 'output'),
    '',
    `Example: \`${JSON.stringify(example)}\``,
  ];
}

type Direction = 'input' | 'output';

/** One line a field; what it nests is indented below it. */
function fieldsText(given: Schema, schemas: Schemas, direction: Direction, indent = ''): string[] {
  const schema = given.$ref ? resolve(given, schemas) : given;
  const branches = schema.anyOf ?? schema.oneOf;
  if (!schema.properties && branches) {
    return branches.flatMap((branch, nth) => [
      `${indent}- ${nth === 0 ? 'either' : 'or'}`,
      ...fieldsText(branch, schemas, direction, `${indent}  `),
    ]);
  }
  const parts = [...(schema.allOf ?? []).flatMap((part) => fieldsText(part, schemas, direction, indent))];
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    fieldText(name, field, schema.required?.includes(name) ?? false, schemas, direction, indent),
  );
  return [...parts, ...own];
}

function fieldText(
  name: string,
  field: Schema,
  required: boolean,
  schemas: Schemas,
  direction: Direction,
  indent: string,
): string[] {
  const presence = direction === 'input' ? (required ? 'required' : 'optional') : required ? '' : 'optional';
  const type = typeText(field);
  const facts = [type, presence, ...boundsOf(field)].filter(Boolean).join(', ');
  const description = field.description ?? nonNull(field).description ?? '';
  const said = type.includes(description) ? '' : description;
  return [
    `${indent}- \`${name}\` (${facts})${said ? `: ${said}` : ''}`,
    ...nested(field).flatMap((inner) => fieldsText(inner, schemas, direction, `${indent}  `)),
  ];
}

/** The objects without a name of their own that a field holds. */
function nested(field: Schema): Schema[] {
  const { items, anyOf, oneOf, properties, additionalProperties } = field;
  if (properties) return [field];
  if (items) return nested(items);
  const objects = (anyOf ?? oneOf ?? []).filter((branch) => nested(branch).length > 0);
  if (objects.length > 1) return [{ anyOf: objects }];
  if (objects.length === 1) return nested(objects[0] as Schema);
  return typeof additionalProperties === 'object' ? nested(additionalProperties) : [];
}

function typeText(field: Schema): string {
  const { $ref, const: constant, enum: allowed, items, anyOf, oneOf, type, additionalProperties } = field;
  if ($ref) return nameOf($ref);
  if (constant !== undefined) return `\`${JSON.stringify(constant)}\``;
  if (allowed) return allowed.map((value) => `\`${value}\``).join(' | ');
  const branches = anyOf ?? oneOf;
  if (branches) return [...new Set(branches.map(typeText))].join(' or ');
  if (items) return `array of ${typeText(items)}${[type].flat().includes('null') ? ' or null' : ''}`;
  if (type === 'object' && typeof additionalProperties === 'object') return 'object of any keys';
  const names = [type ?? 'any JSON'].flat().map((one) => (one === 'string' ? stringText(field) : one));
  return names.join(' or ');
}

const stringText = ({ format, examples: [example] = [] }: Schema): string => {
  if (format) return `string, ${format}`;
  const prefix = typeof example === 'string' ? /^sample_([a-z]+)_/.exec(example)?.[1] : undefined;
  return prefix ? `string \`${prefix}_…\`` : 'string';
};

/** Empty where the type says it all. */
function boundsOf(field: Schema): string[] {
  const of = nonNull(field);
  const { minLength, maxLength, minItems, maxItems, format, pattern } = of;
  return [
    range(unlessExtreme(of.minimum), unlessExtreme(of.maximum), ''),
    minLength !== undefined && minLength === maxLength
      ? `${minLength} characters`
      : range(minLength, maxLength, ' characters'),
    range(minItems, maxItems, ' items'),
    pattern && !format ? `pattern \`${pattern}\`` : '',
    field.default === undefined ? '' : `default \`${JSON.stringify(field.default)}\``,
    ...(of.items ? boundsOf(of.items).map((bound) => `each ${bound}`) : []),
  ].filter(Boolean);
}

/** Omits the bounds that every exact number in JSON has. */
const unlessExtreme = (bound: number | undefined): number | undefined =>
  Math.abs(bound ?? 0) === Number.MAX_SAFE_INTEGER ? undefined : bound;

function range(least: number | undefined, most: number | undefined, unit: string): string {
  if (least === undefined && most === undefined) return '';
  if (most === undefined) return least === 1 && unit ? 'not empty' : `at least ${least}${unit}`;
  return least === undefined ? `at most ${most}${unit}` : `${least} to ${most}${unit}`;
}

/** Returns the schema of a nullable field when it is not null. */
const nonNull = (field: Schema): Schema =>
  (field.anyOf ?? field.oneOf)?.find((branch) => !typesOf(branch).every((name) => name === 'null') || branch.$ref) ??
  field;

const lines = (all: string[]): string => `${all.join('\n')}\n`;
