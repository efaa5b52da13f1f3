/** The fields of a form, read off the schema of an operation's body. */
import { z } from 'zod';
import { override, type Schema, saidOutside, typesOf } from '../core/description/json_schema.ts';
import { words } from './format.ts';

export interface Field {
  /** The path of the value in the body: `reward.rate_value`. */
  name: string;
  label: string;
  description: string;
  /**
   * `money` is in minor units, `percent` in basis points, `rate` one of them, and `threshold` money or a number: people type decimals, see the
   * dashboard's `amounts.ts`. `choices` is a list of some options. `any` is JSON or a text. `rows`, `pairs` (of a name and a value) and `group` (one object) have `fields`.
   */
  kind:
    | 'text'
    | 'long'
    | 'number'
    | 'money'
    | 'percent'
    | 'rate'
    | 'threshold'
    | 'boolean'
    | 'choice'
    | 'choices'
    | 'list'
    | 'numbers'
    | 'any'
    | 'time'
    | 'date'
    | 'kept'
    | 'rows'
    | 'pairs'
    | 'group';
  options: string[];
  /** The names of the options, where they are ids. */
  names?: Record<string, string>;
  is_required: boolean;
  is_nullable: boolean;
  /** The fields of a row, of the pair or of the object, by their names in it. */
  fields?: Field[];
}

/** The texts that are typed in a form, by the names of its fields. A row of a list has its number in the name: `questions.0.label`. */
export type Typed = Record<string, string>;

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
    // A schema that refers to itself is any JSON.
    if (name === undefined || within.includes(name)) return own;
    return { ...(inlined(named[name], [...within, name]) as object), ...own };
  };
  return saidOutside(inlined(whole, []) as Schema);
}

/** The fields of an object. An object in it that is always there has its fields among them. */
export const fieldsOf = (schema: Schema, prefix = ''): Field[] =>
  Object.entries(schema.properties ?? {}).flatMap(([key, given]) => {
    const name = prefix + key;
    const { own, is_nullable } = withoutNull(given);
    if (own.properties && !is_nullable && prefix === '') return fieldsOf(own, `${name}.`);
    const is_required = prefix === '' && (schema.required ?? []).includes(key);
    const description = given.description ?? own.description ?? '';
    return [{ name, label: words(name), description, is_required, is_nullable, ...kindOf(own, key) }];
  });

function withoutNull(schema: Schema): { own: Schema; is_nullable: boolean } {
  const others = (schema.anyOf ?? schema.oneOf)?.filter(({ type }) => type !== 'null');
  if (others) {
    const is_nullable = others.length < (schema.anyOf ?? schema.oneOf ?? []).length;
    return { own: others.length === 1 ? (others[0] as Schema) : joined(schema, others), is_nullable };
  }
  return { own: schema, is_nullable: [schema.type].flat().includes('null') };
}

/** One schema in place of several: the types of all. A number among texts is written as one. */
function joined({ description }: Schema, all: Schema[]): Schema {
  const types = [...new Set(all.flatMap(typesOf))];
  const type = types.every((one) => one === 'string' || one === 'integer') ? ['string'] : types;
  return { type, ...(description ? { description } : {}) };
}

function kindOf(schema: Schema, key: string): Pick<Field, 'kind' | 'options' | 'fields'> {
  const options = optionsOf(schema);
  if (options.length > 0) return { kind: 'choice', options };
  const [type, ...others] = typesOf(schema);
  if (type === undefined || others.length > 0) return { kind: 'any', options };
  if (type === 'array') return { ...listKindOf(schema), options };
  if (type === 'object') return { ...objectKindOf(schema, key), options };
  if (type === 'integer') return { kind: unitOf(key), options };
  if (type === 'number') return { kind: 'number', options };
  if (type === 'boolean') return { kind: 'boolean', options };
  if (schema.format === 'date-time') return { kind: 'time', options };
  if (schema.format === 'date') return { kind: 'date', options };
  const is_long = ((schema.maxLength ?? 0) > 500 && !key.endsWith('url')) || long_texts.test(key);
  return { kind: is_long ? 'long' : 'text', options };
}

function listKindOf({ items = {} }: Schema): Pick<Field, 'kind' | 'fields'> {
  if (items.properties) {
    const fields = fieldsOf(items).map((field) => (field.name === 'id' ? { ...field, kind: 'kept' as const } : field));
    return { kind: 'rows', fields };
  }
  const types = typesOf(items).join();
  return { kind: types === 'string' ? 'list' : types === 'integer' ? 'numbers' : 'any' };
}

/** Maps of amounts: minor units by currency. */
export const amounts_by_currency = new Set(['min_payouts', 'payout_limits']);

function objectKindOf(schema: Schema, key: string): Pick<Field, 'kind' | 'fields'> {
  if (schema.properties) return { kind: 'group', fields: fieldsOf(schema) };
  const is_of_money = amounts_by_currency.has(key);
  const { own, is_nullable } = withoutNull(
    typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {},
  );
  const common = { description: '', is_required: true, is_nullable: false, options: [] };
  const value = { ...common, is_nullable, label: is_of_money ? 'Amount' : 'Value' };
  return {
    kind: 'pairs',
    fields: [
      { ...common, name: 'key', label: is_of_money ? 'Currency' : 'Name', kind: 'text' },
      { ...value, name: 'value', ...(is_of_money ? { kind: 'money' as const } : kindOf(own, '')) },
    ],
  };
}

/** The unit of an integer, where its name says it. */
function unitOf(key: string): Field['kind'] {
  if (key.endsWith('_minor')) return 'money';
  if (key.endsWith('_bps')) return 'percent';
  if (key === 'rate_value') return 'rate';
  return key === 'from' ? 'threshold' : 'number';
}

const long_texts = /^(?:text|body|html|reason|rejection_reason|csv|xml|note|description)$/;
const optionsOf = ({ enum: values, const: only }: Schema): string[] =>
  values ? values.map(String) : only === undefined ? [] : [String(only)];
