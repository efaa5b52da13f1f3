/** Rows of any table, of which a test says no more than it needs. */
import pg from 'pg';
import type { Json } from './harness.ts';

const fillers: Record<string, unknown> = {
  integer: 1,
  bigint: 1,
  smallint: 1,
  boolean: false,
  bytea: Buffer.of(0),
  'text[]': '{}',
  jsonb: '{}',
  json: '{}',
  'timestamp with time zone': new Date().toISOString(),
};

/**
 * Inserts a row with these columns; the others that must have a value get one of their type. Neither keys nor triggers are asked.
 * @param url of a superuser
 */
export async function insertRow(url: string, table: string, given: Json): Promise<void> {
  const by = new pg.Client({ connectionString: url });
  await by.connect();
  try {
    await by.query('set session_replication_role = replica');
    const { rows: columns } = await by.query(
      `select a.attname as name, format_type(a.atttypid, null) as type
        from pg_attribute a
        where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped and a.attnotnull and not a.atthasdef`,
      [table],
    );
    const filled = Object.fromEntries(columns.map(({ name, type }: Json) => [name, fillers[type] ?? 'x']));
    const row = { ...filled, ...given };
    const names = Object.keys(row);
    const places = names.map((_, nth) => `$${nth + 1}`);
    await by.query(`insert into ${table} (${names.join(', ')}) values (${places.join(', ')})`, Object.values(row));
  } finally {
    await by.end();
  }
}
