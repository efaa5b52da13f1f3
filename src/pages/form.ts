/** The texts that a form shows of a record, and the body that is typed in it. */
import { Problem } from '../core/values/problem.ts';
import { isBlank, type Row, rowsOf } from './rows.ts';
import type { Field, Typed } from './schema_fields.ts';

/** Returns what a form shows of a record. */
export const typedOf = (fields: Field[], record: object): Typed =>
  Object.assign({}, ...fields.map((field) => shown(field, field.name, valueAt(record, field.name))));

const valueAt = (record: object, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | null | undefined)?.[key], record);

function shown({ kind, fields = [] }: Field, name: string, value: unknown): Typed {
  const below = (prefix: string, record: object): Typed =>
    Object.fromEntries(Object.entries(typedOf(fields, record)).map(([key, typed]) => [`${prefix}.${key}`, typed]));
  if (kind === 'group') return below(name, value ?? {});
  if (kind === 'rows' || kind === 'pairs') {
    const rows: object[] =
      kind === 'rows'
        ? ((value ?? []) as object[])
        : Object.entries(value ?? {}).map(([key, one]) => ({ key, value: one }));
    return Object.assign({}, ...rows.map((row, nth) => below(`${name}.${nth}`, row)));
  }
  return { [name]: textOf(kind, value) };
}

function textOf(kind: Field['kind'], value: unknown): string {
  // A text that would be read as JSON is written as JSON.
  const is_plain = typeof value === 'string' && value !== '' && !isJson(value);
  if (kind === 'any') return is_plain ? value : (JSON.stringify(value) ?? '');
  if (value === null || value === undefined) return '';
  if (Array.isArray(value)) return value.join('\n');
  if (kind === 'time') return String(value).replace(/(?::00)?(?:\.000)?Z$/, '');
  return String(value);
}

/**
 * Returns the body that a form says. What is left empty is left out.
 * @param before what the form showed first, of an update: what has not changed is left out, and what was emptied is null
 * @throws Problem where a pair of a map has no name, or the name of another
 */
export function bodyOf(fields: Field[], typed: Typed, before?: Typed): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const field of fields) {
    const value = typedValue(field, typed);
    const isSame = before && JSON.stringify(value) === JSON.stringify(typedValue(field, before));
    if (isSame || (!before && value === undefined)) continue;
    set(body, field.name.split('.'), value === undefined ? emptied(field) : value);
  }
  return body;
}

function emptied({ is_nullable, kind }: Field): unknown {
  if (is_nullable) return null;
  if (kind === 'list' || kind === 'numbers' || kind === 'rows') return [];
  return kind === 'pairs' || kind === 'group' ? {} : '';
}

/** The value that is typed in a field; undefined where none is. */
function typedValue(field: Field, typed: Typed): unknown {
  const { name, kind } = field;
  if (!field.fields) return (typed[name] ?? '') === '' ? undefined : read(kind, typed[name] as string);
  const rows = rowsOf(field, typed).filter((row) => !isBlank(row, typed));
  // Of one that must be there, each field that is missing is said.
  if (rows.length === 0) return kind === 'group' && field.is_required ? {} : undefined;
  if (kind === 'pairs') return mapOf(field, rows, typed);
  const objects = rows.map(({ prefix, fields }) => {
    const own: Record<string, unknown> = {};
    for (const one of fields) {
      const value = typedValue(one, typed);
      if (value !== undefined) set(own, one.name.slice(prefix.length).split('.'), value);
    }
    return own;
  });
  return kind === 'group' ? objects[0] : objects;
}

function mapOf({ label }: Field, rows: Row[], typed: Typed): Record<string, unknown> | undefined {
  const map = new Map<string, unknown>();
  for (const { prefix, fields } of rows) {
    const [of_key, of_value] = fields as [Field, Field];
    const key = typed[of_key.name] ?? '';
    const refuse = (code: 'missing_parameter' | 'invalid_parameter', said: string): Problem =>
      new Problem(code, `${said} in '${label}'.`, { param: `${prefix}key` });
    if (key.trim() === '') throw refuse('missing_parameter', `Type the ${of_key.label.toLowerCase()} of each value`);
    if (map.has(key)) throw refuse('invalid_parameter', `'${key}' stands twice`);
    const value = typedValue(of_value, typed);
    if (value !== undefined || of_value.is_nullable) map.set(key, value ?? null);
  }
  return map.size === 0 ? undefined : Object.fromEntries(map);
}

/** A time as browsers send it has no zone, and no seconds where they are 0: those of the dashboard are UTC. */
export function withZone(typed: string): string {
  const [, minute, second = ':00'] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d(?:\.\d+)?)?$/.exec(typed) ?? [];
  return minute === undefined ? typed : `${minute}${second}Z`;
}

/** Passes on what cannot be read as it was typed: the schema refuses it and names the field. */
function read(kind: Field['kind'], value: string): unknown {
  if (kind === 'boolean') return value === 'true';
  if (kind === 'list') return linesOf(value);
  if (kind === 'numbers') return linesOf(value).map(figureOf);
  if (kind === 'time') return withZone(value);
  if (figures.has(kind)) return figureOf(value);
  const text = value.replaceAll('\r\n', '\n');
  return kind === 'any' && isJson(text) ? JSON.parse(text) : text;
}

export const figures = new Set<Field['kind']>(['number', 'money', 'percent', 'rate', 'threshold']);
const figureOf = (text: string): unknown => (/^-?\d+(?:\.\d+)?$/.test(text.trim()) ? Number(text) : text);
const linesOf = (text: string): string[] => text.split('\n').flatMap((line) => line.trim() || []);

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
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

/** The texts of a form that was sent. A field with several values has each on a line. */
export const typedIn = (sent: URLSearchParams): Typed =>
  Object.fromEntries([...new Set(sent.keys())].map((name) => [name, sent.getAll(name).join('\n')]));
