/** Fields that hold other fields: rows of a list, pairs of a map, and objects. What is typed in them stands beside the rest, by longer names. */
import type { Field, Typed } from './schema_fields.ts';

export interface Row {
  /** The beginning of the names of its fields: `questions.0.`. */
  prefix: string;
  fields: Field[];
}

/** The rows of a field that something is typed in, or was. An object is one row. @param adds_blank one more, to type in */
export function rowsOf({ name, kind, fields = [] }: Field, typed: Typed, adds_blank = false): Row[] {
  const row = (prefix: string): Row => ({
    prefix,
    fields: fields.map((field) => ({ ...field, name: prefix + field.name })),
  });
  if (kind === 'group') return [row(`${name}.`)];
  const numbers = Object.keys(typed).flatMap((key) => {
    const [, number] = key.startsWith(`${name}.`) ? (/^(\d{1,3})\./.exec(key.slice(name.length + 1)) ?? []) : [];
    return number === undefined ? [] : [Number(number)];
  });
  const all = [...new Set(numbers)].sort((a, b) => a - b);
  if (adds_blank) all.push((all.at(-1) ?? -1) + 1);
  return all.map((number) => row(`${name}.${number}.`));
}

/** The fields of a form that have a control of their own. */
export const leavesOf = (fields: Field[], typed: Typed): Field[] =>
  fields.flatMap((field) =>
    field.fields ? rowsOf(field, typed).flatMap((row) => leavesOf(row.fields, typed)) : [field],
  );

/** Returns whether nothing is typed in a row. An id that it had does not count. */
export const isBlank = ({ fields }: Row, typed: Typed): boolean =>
  leavesOf(fields, typed).every(({ name, kind }) => kind === 'kept' || (typed[name] ?? '').trim() === '');

/** Numbers the rows anew without the blank ones, as the body has them: an error names a row by its number there. */
export function withoutBlankRows(fields: Field[], typed: Typed): Typed {
  const kept = { ...typed };
  for (const field of fields) {
    if (!field.fields) continue;
    for (const name of Object.keys(kept)) if (name.startsWith(`${field.name}.`)) delete kept[name];
    const rows = rowsOf(field, typed).filter((row) => field.kind === 'group' || !isBlank(row, typed));
    for (const [nth, { prefix, fields: inner }] of rows.entries()) {
      const own = withoutBlankRows(inner, typed);
      const to = field.kind === 'group' ? prefix : `${field.name}.${nth}.`;
      for (const { name } of leavesOf(inner, own)) kept[to + name.slice(prefix.length)] = own[name] ?? '';
    }
  }
  return kept;
}
