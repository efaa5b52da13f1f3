import sql, { join, raw, type Sql } from 'sql-template-tag';
import { fact_columns } from '../metric.ts';

type Type = 'integer' | 'bigint' | 'text';

const measures = Object.fromEntries(fact_columns.map((name) => [name, 'bigint' as const]));

/**
 * Rows of sums for a statement, as rows `r`. Postgres reads an array for each column in half the time of the same rows as JSON.
 * @param fields what they have besides the measures, each with its type
 */
export function recordsOf(rows: Record<string, unknown>[], fields: Record<string, Type>): Sql {
  const types = { ...fields, ...measures };
  const names = Object.keys(types);
  const arrays = names.map((name) => {
    const type = types[name] as Type;
    const values = rows.map((row) => row[name]);
    return sql`${type === 'text' ? values : numbersOf(values)}::${raw(type)}[]`;
  });
  return sql`unnest(${join(arrays)}) as r (${join(names.map((name) => raw(name)))})`;
}

/** As Postgres reads an array: to give pg each number takes longer. */
const numbersOf = (values: unknown[]): string => `{${values.map((value) => value ?? 'null').join()}}`;
