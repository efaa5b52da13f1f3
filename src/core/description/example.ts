import type { z } from 'zod';
import { resolve, type Schema, type Schemas, typesOf } from './json_schema.ts';

type Fields = Record<string, unknown>;

const times = { early: '2026-11-21T09:30:00.000Z', late: '2026-12-21T09:30:00.000Z' };
const late = /^(ends|expires|due|mature|to|created_before)(_at)?$/;

/** The time of updates in examples. */
export const update_time = times.early;

/** The examples of a product. */
export interface Examples {
  /** The records of one story, by their `object`: where an example shows one, it has these values, so that ids, amounts and times agree everywhere. */
  records: Record<string, Fields>;
  /** By operation: the body that it sends, and what the record is afterwards where that differs from the story's end. */
  operations: Record<string, { body?: Fields; reply?: Fields }>;
  /** The time of each event, by its type. */
  event_times: Record<string, string>;
  /** Plausible values for other fields that a schema says no more of than their type, by their names. */
  values: Fields;
}

/** The sources of examples: the schemas of the document, and the product's own values. */
export interface Samples extends Examples {
  schemas: Schemas;
}

export const samplesOf = (schemas: Schemas, examples: Examples): Samples => ({
  ...{ ...examples, schemas },
  values: { ...common_values, ...examples.values },
});

/** Returns the time of an event of the type in the examples. */
export const eventTime = ({ event_times }: Examples, type: string): string =>
  event_times[type] ?? event_times[type.split('.')[0] as string] ?? times.early;

/** Values of fields that mean the same in every product. */
const common_values: Fields = {
  name: 'Acme',
  first_name: 'Ada',
  last_name: 'Lovelace',
  display_name: 'Ada',
  company_name: 'Lovelace Ltd',
  email: 'ada@example.com',
  currency: 'USD',
  country: 'DE',
  country_code: 'DE',
  language_code: 'en',
  timezone: 'Europe/Berlin',
  ip: '203.0.113.7',
  required: true,
  color: '#1F6FEB',
  description: 'What it is for',
  label: 'Summer newsletter',
  note: 'As agreed on the phone',
  reason: 'As agreed on the phone',
  user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  attempt: 1,
};

/** Tried in turn where a field has a pattern. */
const by_pattern = ['DE', 'USD', '#1F6FEB', 'partners.example.com', 'ada', '00000000', '2026-11-21'];

/**
 * A reply as the schema allows it: the story's record, and of other fields those that are always there, null where nothing has happened yet.
 * @param changes what differs from the story's record
 */
export function exampleReply(schema: Schema, samples: Samples, changes: Fields = {}): unknown {
  const reply = exampleOf(schema, samples, '', (field, name) =>
    isUneventful(field, name, samples) ? null : undefined,
  );
  return Object.keys(changes).length === 0 ? reply : { ...(reply as Fields), ...changes };
}

/**
 * A body that the operation takes: its required fields, and each optional one without a default that it still takes besides. Rules that
 * JSON Schema cannot say ("one of these") are kept, because the operation's own schema validates.
 */
export function exampleBody(schema: Schema, samples: Samples, validator: z.ZodType): unknown {
  const of = resolve(schema, samples.schemas);
  const [branch] = of.anyOf ?? of.oneOf ?? [];
  if (branch) return exampleBody(branch, samples, validator);
  const required = exampleOf(of, samples, '') as Fields;
  const optional = Object.entries(of.properties ?? {}).filter(([name]) => !(name in required));
  const worth_telling = optional.filter(([, field]) => field.default === undefined);
  let body = required;
  for (const [name, field] of Object.keys(required).length + worth_telling.length > 0 ? worth_telling : optional) {
    const value = exampleOf(field, samples, name);
    const more = { ...body, [name]: value };
    if (JSON.stringify(value) !== '{}' && validator.safeParse(more).success) body = more;
  }
  return body;
}

/** A value that a filter of a list takes: what the record holds where it holds something, since that finds it. */
export function exampleFilter(schema: Schema, samples: Samples, name: string, noun: string): unknown {
  const value = samples.records[noun]?.[name];
  const fits = typeof value === 'string' && (schema.enum?.includes(value) ?? true);
  return fits ? value : exampleOf(schema, samples, name);
}

type Instead = (field: Schema, name: string) => unknown;

/** A value that a field of this name may have. */
export function exampleOf(schema: Schema, samples: Samples, name: string, instead?: Instead): unknown {
  const of = resolve(schema, samples.schemas);
  const other = instead?.(of, name);
  if (other !== undefined) return other;
  const known = said(of);
  if (known) return known.value;
  const [branch] = of.anyOf ?? of.oneOf ?? [];
  if (branch) return exampleOf(branch, samples, name, instead);
  if (of.allOf) return Object.assign({}, ...of.allOf.map((part) => exampleOf(part, samples, name, instead)));
  const types = typesOf(of);
  if (types.includes('object')) return exampleObject(of, samples, instead);
  if (types.includes('array')) return of.items ? [exampleOf(of.items, samples, singular(name), instead)] : [];
  return exampleScalar(of, name, samples);
}

function exampleObject(
  { properties, required = [], additionalProperties }: Schema,
  samples: Samples,
  instead?: Instead,
): unknown {
  if (!properties && additionalProperties) return { key: 'value' };
  const record = samples.records[String(properties?.object?.const)] ?? {};
  return Object.fromEntries(
    Object.entries(properties ?? {})
      .filter(([name]) => required.includes(name))
      .map(([name, field]) => [name, name in record ? record[name] : exampleOf(field, samples, name, instead)]),
  );
}

/** Nullable, and neither the id of something else nor a field of which a plausible value is known: times and reasons of what may come. */
function isUneventful({ type, anyOf = [] }: Schema, name: string, { values }: Samples): boolean {
  const nullable = [type].flat().includes('null') || anyOf.some((branch) => branch.type === 'null');
  return nullable && !name.endsWith('_id') && values[name] === undefined && !name.endsWith('_url');
}

function exampleScalar(of: Schema, name: string, samples: Samples): unknown {
  const types = typesOf(of);
  if (types.includes('integer') || types.includes('number')) return exampleNumber(of, samples.values[name], name);
  if (types.includes('boolean')) return samples.values[name] ?? false;
  if (types.includes('string')) return exampleString(of, name, samples);
  return null;
}

function exampleNumber({ minimum, maximum, exclusiveMinimum }: Schema, value: unknown, name: string): number {
  const wanted = Number(value ?? (name.endsWith('_minor') || name === 'priority' ? 0 : 1));
  const least = minimum ?? (exclusiveMinimum === undefined ? -Infinity : exclusiveMinimum + 1);
  return Math.min(Math.max(wanted, least), maximum ?? Infinity);
}

function exampleString(
  { format, pattern, minLength = 0, maxLength = Infinity }: Schema,
  name: string,
  samples: Samples,
): string {
  const fits = (text: unknown): text is string =>
    typeof text === 'string' &&
    text.length >= minLength &&
    text.length <= maxLength &&
    (pattern === undefined || new RegExp(pattern, 'u').test(text));
  const named = [byFormat(format, name), samples.values[name], elsewhere(name, samples), name.replaceAll('_', ' ')];
  return [...named, ...by_pattern].find(fits) ?? 'x'.repeat(Math.max(minLength, 1));
}

/** Takes a value from the records: `partner_id` is the id of a partner, and an example of another field may stand with a record that has it. */
function elsewhere(name: string, samples: Samples): unknown {
  const records = Object.values(samples.schemas).map(({ properties = {} }) => properties);
  const noun = records.find(({ object }) => object?.const !== undefined && `${object.const}_id` === name);
  const known = Object.entries(samples.records).find(([object]) => `${object}_id` === name)?.[1].id;
  if (known !== undefined) return known;
  const fields = [noun?.id, ...records.map((properties) => properties[name])];
  return fields.flatMap((field) => field?.examples ?? field?.anyOf?.[0]?.examples ?? [])[0];
}

function byFormat(format: string | undefined, name: string): string | undefined {
  if (format === 'date-time' || name.endsWith('_at')) return late.test(name) ? times.late : times.early;
  if (format === 'date') return times.early.slice(0, 10);
  if (format === 'email') return 'ada@example.com';
  if (format === 'ipv4') return '203.0.113.7';
  if (format === 'uri' || /(^|_)(url|referer|referrer)$/.test(name)) return 'https://example.com/pricing';
  return undefined;
}

/** Returns the value that the schema itself gives: a constant, or an example. */
function said({
  const: constant,
  enum: allowed,
  examples,
  default: otherwise,
}: Schema): { value: unknown } | undefined {
  if (constant !== undefined) return { value: constant };
  if (examples?.length) return { value: examples[0] };
  if (otherwise !== undefined && typeof otherwise !== 'object') return { value: otherwise };
  return allowed?.length ? { value: allowed[0] } : undefined;
}

export const singular = (name: string): string =>
  name
    .replace(/ies$/, 'y')
    .replace(/(ch|sh|x)es$/, '$1')
    .replace(/s$/, '');
