import sql, { empty, join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from './transaction.ts';

type Values = Record<string, unknown>;

/**
 * Inserts one row of the tenant. Fields that are undefined keep their defaults; objects that are no arrays are stored as JSON.
 * @returns the number of rows written: 0 where `on_conflict` did nothing
 */
export async function insert(tx: Tx, table: string, values: Values, on_conflict: Sql = empty): Promise<number> {
  const given = defined({ organization_id: tx.organization_id, ...values });
  const columns = join(given.map(([column]) => raw(column)));
  const rows = await tx.all(
    sql`insert into ${raw(table)} (${columns}) values (${join(given.map(([, value]) => sql`${stored(value)}`))}) ${on_conflict} returning 1 as written`,
  );
  return rows.length;
}

/** Sets fields of one row of the tenant, and its `updated_at`. Fields that are undefined stay as they are. */
export async function update(tx: Tx, table: string, id: string, values: Values): Promise<void> {
  const given = defined({ ...values, updated_at: tx.now });
  const settings = join(given.map(([column, value]) => sql`${raw(column)} = ${stored(value)}`));
  await tx.all(sql`update ${raw(table)} set ${settings} where organization_id = ${tx.organization_id} and id = ${id}`);
}

const defined = (values: Values): [string, unknown][] =>
  Object.entries(values).filter(([, value]) => value !== undefined);

/** Text arrays go as arrays; lists of objects and objects as JSON. */
function stored(value: unknown): unknown {
  if (Array.isArray(value)) return value.some((item) => typeof item === 'object') ? JSON.stringify(value) : value;
  return value !== null && typeof value === 'object' && !Buffer.isBuffer(value) ? JSON.stringify(value) : value;
}
