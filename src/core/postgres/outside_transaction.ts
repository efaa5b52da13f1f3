/** Migrations that run outside a transaction, so that an index can be built while others write. */
import type pg from 'pg';

/** How such a file begins. */
const mark = /^-- Runs outside a transaction\b/;

const concurrent_index =
  /^create\s+(?:unique\s+)?index\s+concurrently\s+(if\s+not\s+exists\s+)?([a-z_0-9]+)\s+on\s+(?:only\s+)?([a-z_0-9]+)\./i;

export const runsOutside = ({ text }: { text: string }): boolean => mark.test(text);

/**
 * Runs the statements of a file one by one, each by itself. If one fails, or the process dies, all of them run again the next time: each must
 * be safe to repeat. What an index that was not finished left behind is dropped first.
 * @throws Error when an index is not created `if not exists`
 */
export async function runOutside(client: pg.Client, text: string): Promise<void> {
  for (const statement of statementsOf(text)) {
    const [creates, if_not_exists, index, schema] = concurrent_index.exec(statement) ?? [];
    if (creates && !if_not_exists) throw new Error(`the index ${index} must be created with 'if not exists'`);
    if (index && schema) await dropUnfinished(client, schema, index);
    await client.query(statement);
  }
}

/** Statements are separated by an empty line, so that the body of a function or of a `do` holds none. */
const statementsOf = (text: string): string[] =>
  text
    .replaceAll(/^--.*\n/gm, '')
    .split(/\n\s*\n/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');

/** Postgres keeps an index that could not be finished, as invalid: writes maintain it, and nothing reads it. */
async function dropUnfinished(client: pg.Client, schema: string, index: string): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_index i on i.indexrelid = c.oid
    where n.nspname = $1 and c.relname = $2 and not i.indisvalid`,
    [schema, index],
  );
  for (const { name } of rows) await client.query(`drop index concurrently ${name}`);
}
