/** Forms read off the schema of an operation's body: their fields, what was typed, and what that says. */
import { z } from 'zod';
import { override, type Schema, saidOutside, typesOf } from '../core/description/json_schema.ts';
import type { Problem } from '../core/values/problem.ts';
import { choiceOf, controlAttributes, fieldWith } from './field.ts';
import { words } from './format.ts';
import { type Html, html } from './html.ts';

export interface Field {
  /** The path of the value in the body: `reward.rate_value`. */
  name: string;
  label: string;
  description: string;
  /** `money` is in minor units, `percent` in basis points, and `rate` one of them: people type decimals, see the dashboard's `amounts.ts`. */
  kind:
    | 'text'
    | 'long'
    | 'number'
    | 'money'
    | 'percent'
    | 'rate'
    | 'boolean'
    | 'choice'
    | 'list'
    | 'json'
    | 'time'
    | 'date';
  options: string[];
  is_required: boolean;
  is_nullable: boolean;
}

/** What is typed in a form, by the names of its fields. */
export type Typed = Record<string, string>;

const most_depth = 2;

/** Returns a schema as JSON Schema, with what it refers to by name in place. */
export function jsonSchemaOf(schema: z.ZodType): Schema {
  const whole = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', override }) as Schema & {
    $defs?: Record<string, Schema>;
  };
  const named = whole.$defs ?? {};
  const inlined = (value: unknown, within: string[]): unknown => {
    if (Array.isArray(value)) return value.map((one) => inlined(one, within));
    if (typeof value !== 'object' || value === null) return value;
    const { $ref, $defs, ...rest } = value as { $ref?: string; $defs?: object };
    const own = Object.fromEntries(Object.entries(rest).map(([key, one]) => [key, inlined(one, within)]));
    const name = $ref?.startsWith('#/$defs/') ? $ref.slice('#/$defs/'.length) : undefined;
    // What refers to itself is any JSON.
    if (name === undefined || within.includes(name)) return own;
    return { ...(inlined(named[name], [...within, name]) as object), ...own };
  };
  return saidOutside(inlined(whole, []) as Schema);
}

/** The fields of an object. An object in it has fields of its own, and what has no simple form is typed as JSON. */
export function fieldsOf(schema: Schema, prefix = '', depth = 1): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, given]) => {
    const name = prefix + key;
    const { own, is_nullable } = withoutNull(given);
    const is_required = prefix === '' && (schema.required ?? []).includes(key);
    if (own.properties && depth < most_depth && !is_nullable) return fieldsOf(own, `${name}.`, depth + 1);
    return [
      {
        name,
        label: words(name),
        description: given.description ?? own.description ?? '',
        is_required,
        is_nullable,
        ...kindOf(own, key),
      },
    ];
  });
}

function withoutNull(schema: Schema): { own: Schema; is_nullable: boolean } {
  const others = (schema.anyOf ?? schema.oneOf)?.filter(({ type }) => type !== 'null');
  if (others) {
    const is_nullable = others.length < (schema.anyOf ?? schema.oneOf ?? []).length;
    return { own: others.length === 1 ? (others[0] as Schema) : { ...schema, anyOf: others }, is_nullable };
  }
  return { own: schema, is_nullable: [schema.type].flat().includes('null') };
}

function kindOf(schema: Schema, key: string): Pick<Field, 'kind' | 'options'> {
  const options = optionsOf(schema);
  if (options.length > 0) return { kind: 'choice', options };
  const [type, ...others] = typesOf(schema);
  if (type === undefined || others.length > 0 || schema.anyOf) return { kind: 'json', options };
  if (type === 'integer') return { kind: unitOf(key), options };
  if (type === 'number') return { kind: 'number', options };
  if (type === 'boolean') return { kind: 'boolean', options };
  if (type === 'array') return { kind: isOfTexts(schema) ? 'list' : 'json', options };
  if (type === 'object') return { kind: 'json', options };
  if (schema.format === 'date-time') return { kind: 'time', options };
  if (schema.format === 'date') return { kind: 'date', options };
  return {
    kind: ((schema.maxLength ?? 0) > 500 && !key.endsWith('url')) || long_texts.test(key) ? 'long' : 'text',
    options,
  };
}

/** The unit of an integer, where its name says it. */
const unitOf = (key: string): Field['kind'] =>
  key.endsWith('_minor') ? 'money' : key.endsWith('_bps') ? 'percent' : key === 'rate_value' ? 'rate' : 'number';

const long_texts = /^(?:text|body|html|reason|rejection_reason|csv|xml|note|description)$/;
const isOfTexts = ({ items }: Schema): boolean => items !== undefined && typesOf(items).join() === 'string';
const optionsOf = ({ enum: values, const: only }: Schema): string[] =>
  values ? values.map(String) : only === undefined ? [] : [String(only)];

/** Returns what a form shows of a record. */
export const typedOf = (fields: Field[], record: object): Typed =>
  Object.fromEntries(fields.map((field) => [field.name, shown(field, valueAt(record, field.name))]));

const valueAt = (record: object, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | null | undefined)?.[key], record);

function shown({ kind }: Field, value: unknown): string {
  if (value === null || value === undefined) return '';
  if (kind === 'json') return JSON.stringify(value, null, 2);
  if (kind === 'list' && Array.isArray(value)) return value.join('\n');
  if (kind === 'time') return String(value).replace(/(?::00)?(?:\.000)?Z$/, '');
  return String(value);
}

/**
 * Returns the body that a form says. What is left empty is left out.
 * @param before what the form showed first, of an update: what has not changed is left out, and what was emptied is null
 */
export function bodyOf(fields: Field[], typed: Typed, before?: Typed): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const field of fields) {
    const { name } = field;
    const value = typed[name] ?? '';
    if (before ? value === (before[name] ?? '') : value === '') continue;
    set(body, name.split('.'), value === '' ? emptied(field) : read(field, value));
  }
  return body;
}

const emptied = ({ is_nullable, kind }: Field): unknown => (is_nullable ? null : kind === 'list' ? [] : '');

const is_figure = new Set<Field['kind']>(['number', 'money', 'percent', 'rate']);

/** A time as browsers send it has no zone, and no seconds where they are 0: those of the dashboard are UTC. */
export function withZone(typed: string): string {
  const [, minute, second = ':00'] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d(?:\.\d+)?)?$/.exec(typed) ?? [];
  return minute === undefined ? typed : `${minute}${second}Z`;
}

/** What cannot be read is passed on as it was typed, and refused by the schema, which names the field. */
function read({ kind }: Field, value: string): unknown {
  if (is_figure.has(kind)) return /^-?\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : value;
  if (kind === 'boolean') return value === 'true';
  if (kind === 'list') return value.split('\n').flatMap((line) => line.trim() || []);
  if (kind === 'time') return withZone(value);
  if (kind !== 'json') return value.replaceAll('\r\n', '\n');
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function set(target: Record<string, unknown>, [key, ...rest]: string[], value: unknown): void {
  if (key === undefined || key === '__proto__') return;
  if (rest.length === 0) {
    target[key] = value;
    return;
  }
  target[key] ??= {};
  set(target[key] as Record<string, unknown>, rest, value);
}

/** What was typed, from the fields of a form that was sent. */
export const typedIn = (sent: URLSearchParams): Typed => Object.fromEntries(sent);

/** The field that a problem is about: the one of its `param`, or the one that holds it. */
const isAbout = ({ name }: Field, problem: Problem | undefined): boolean => {
  const { param } = problem?.details ?? {};
  return param !== undefined && (param === name || param.startsWith(`${name}.`));
};

/** Returns whether a form has the field that a problem is about: else it is said above the form. */
export const hasFieldOf = (fields: Field[], problem: Problem): boolean =>
  fields.some((field) => isAbout(field, problem));

/** The fields of a form with what was typed, each with what is wrong with it. */
export const inputs = (fields: Field[], typed: Typed, problem?: Problem): Html =>
  html`${fields.map((field) => input(field, typed[field.name] ?? '', isAbout(field, problem) ? problem?.message : undefined))}`;

function input(field: Field, value: string, error: string | undefined): Html {
  const parts = { ...field, hint: field.description.replaceAll('`', ''), error };
  return fieldWith(parts, control(field, value, controlAttributes(parts)), 'optional');
}

const yes_or_no: [string, string][] = [
  ['true', 'Yes'],
  ['false', 'No'],
];

function control({ kind, options, is_required }: Field, value: string, attributes: Html): Html {
  if (kind === 'boolean') return choiceOf(attributes, yes_or_no, value, is_required);
  if (kind === 'choice')
    return choiceOf(
      attributes,
      options.map((option) => [option, option]),
      value,
      is_required,
    );
  if (kind === 'list' || kind === 'json' || kind === 'long')
    return html`<textarea ${attributes}>
${value}</textarea>${kind === 'list' && html`<p class="hint">One a line.</p>`}${kind === 'json' && html`<p class="hint">As JSON.</p>`}`;
  if (kind === 'time')
    return html`<input ${attributes} type="datetime-local" step="any" value="${value}"><p class="hint">UTC</p>`;
  if (kind === 'date') return html`<input ${attributes} type="date" value="${value}">`;
  return html`<input ${attributes} value="${value}"${is_figure.has(kind) && html` inputmode="${kind === 'number' ? 'numeric' : 'decimal'}"`}>`;
}
