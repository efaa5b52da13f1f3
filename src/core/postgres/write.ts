import { isDeepStrictEqual } from 'node:util';
import sql, { empty, join, raw, type Sql } from 'sql-template-tag';
import { type Tx, together } from './transaction.ts';

export type Values = Record<string, unknown>;

/**
 * Inserts one row of the tenant. Fields that are undefined keep their defaults; objects that are no arrays are stored as JSON.
 * @param returning columns of the row, which is called `t`
 * @returns the row, or undefined where `on_conflict` did nothing
 */
export function insert<Row extends object>(
  tx: Tx,
  table: string,
  values: Values,
  { on_conflict = empty, returning = sql`1` }: { on_conflict?: Sql; returning?: Sql } = {},
): Promise<Row | undefined> {
  const given = defined({ organization_id: tx.organization_id, ...values });
  const columns = join(given.map(([column]) => raw(column)));
  const row = join(given.map(([, value]) => sql`${stored(value)}`));
  return tx.maybe<Row>(
    sql`insert into ${raw(table)} as t (${columns}) values (${row}) ${on_conflict} returning ${returning}`,
  );
}

/**
 * Inserts rows of the tenant that have the same fields, in their order. Where one lacks a value it is null, whatever the column's default.
 * @param ending what follows the rows: `on conflict`, `returning`; the table is called `t`
 */
export function insertion(tx: Tx, table: string, rows: object[], ending: Sql = empty): Sql {
  const columns = raw(['organization_id', ...Object.keys(rows[0] as object)].join(', '));
  const given = JSON.stringify(rows.map((row) => ({ organization_id: tx.organization_id, ...row })));
  return sql`
    insert into ${raw(table)} as t (${columns})
    select ${columns} from json_populate_recordset(null::${raw(table)}, ${given}::json)
    ${ending}`;
}

/**
 * Inserts many rows of the tenant, in a statement for all that give the same fields.
 * @returns them by id, in no order
 */
export async function insertAll<Row extends { id: string }>(
  tx: Tx,
  table: string,
  rows: (Values & { id: string })[],
  returning: Sql,
): Promise<Map<string, Row>> {
  const given = rows.map((row) => Object.fromEntries(defined(row)));
  const alike = Map.groupBy(given, (row) => Object.keys(row).join());
  const inserted = [...alike.values()].map((those) =>
    tx.all<Row>(insertion(tx, table, those, sql`returning ${returning}`)),
  );
  return new Map((await together(inserted)).flat().map((row) => [row.id, row]));
}

/**
 * Sets fields of one row of the tenant, and its `updated_at` where that changes one of them. Fields that are undefined stay as they are.
 * @returns the row as it is now
 */
export function update<Row extends object>(
  tx: Tx,
  table: string,
  id: string,
  values: Values,
  returning: Sql = sql`1`,
): Promise<Row | undefined> {
  const given = defined(values).map(([column, value]) => ({ column, value: stored(value) }));
  const settings = given.map(({ column, value }) => sql`${raw(column)} = ${value}`);
  const differs = given.map(({ column, value }) => sql`t.${raw(column)} is distinct from ${value}`);
  const changed = join([sql`false`, ...differs], ' or ');
  const touched = sql`updated_at = case when ${changed} then ${tx.now}::timestamptz else t.updated_at end`;
  return tx.maybe<Row>(
    sql`update ${raw(table)} as t set ${join('updated_at' in values ? settings : [...settings, touched])}
      where t.organization_id = ${tx.organization_id} and t.id = ${id} returning ${returning}`,
  );
}

const defined = (values: Values): [string, unknown][] =>
  Object.entries(values).filter(([, value]) => value !== undefined);

/** Text arrays go as arrays; lists of objects and objects as JSON. */
function stored(value: unknown): unknown {
  if (Array.isArray(value)) return value.some((item) => typeof item === 'object') ? JSON.stringify(value) : value;
  return value !== null && typeof value === 'object' && !Buffer.isBuffer(value) ? JSON.stringify(value) : value;
}

/** The fields in which a record is another than before, `updated_at` aside: what an event reports as changed must have changed. */
export const changesOf = <Record_ extends object>(before: Record_, after: Record_): (keyof Record_ & string)[] =>
  (Object.keys(after) as (keyof Record_ & string)[]).filter(
    (field) => field !== 'updated_at' && !isDeepStrictEqual(before[field], after[field]),
  );
