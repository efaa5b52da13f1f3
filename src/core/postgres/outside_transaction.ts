/** Migrations that run outside a transaction, so that an index can be built while others write. */
import type pg from 'pg';

/** The first line of such a file. */
const mark = /^-- Runs outside a transaction\b/;

const concurrent_index =
  /^create\s+(?<unique>unique\s+)?index\s+concurrently\s+(?<once>if\s+not\s+exists\s+)?(?<name>\w+)\s+on\s+(?<schema>\w+)\.(?<table>\w+)\s+(?<rest>.*)$/is;

/** The parts of a `create index concurrently`. */
type Index = Record<'name' | 'schema' | 'table' | 'rest', string> & { unique?: string; once?: string };

export const runsOutside = ({ text }: { text: string }): boolean => mark.test(text);

/**
 * Runs the statements of a file one by one, each by itself. If one fails, or the process dies, all of them run again the next time: each must
 * be safe to repeat. What an index that was not finished left behind is dropped first. An index of a partitioned table is built on each
 * partition.
 * @param lock_timeout_ms how long a statement waits for a lock that keeps others waiting; an index that is built concurrently keeps nobody
 * @throws Error when an index is not created `if not exists`
 */
export async function runOutside(client: pg.Client, text: string, lock_timeout_ms: number): Promise<void> {
  await client.query(`set lock_timeout = ${lock_timeout_ms}`);
  for (const statement of statementsOf(text)) {
    const index = concurrent_index.exec(statement)?.groups as Index | undefined;
    if (!index) await client.query(statement);
    else if (!index.once) throw new Error(`the index ${index.name} must be created with 'if not exists'`);
    else if (await isPartitioned(client, index)) await buildOnPartitions(client, index, lock_timeout_ms);
    else await build(client, index, lock_timeout_ms);
  }
}

/** Statements are separated by an empty line, so that the body of a function or of a `do` holds none. */
const statementsOf = (text: string): string[] =>
  text
    .replaceAll(/^--.*\n/gm, '')
    .split(/\n\s*\n/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');

async function build(client: pg.Client, index: Index, lock_timeout_ms: number): Promise<void> {
  const { unique = '', name, schema, table, rest } = index;
  await client.query('set lock_timeout = 0');
  await dropUnfinished(client, index);
  await client.query(`create ${unique}index concurrently if not exists ${name} on ${schema}.${table} ${rest}`);
  await client.query(`set lock_timeout = ${lock_timeout_ms}`);
}

/** Postgres keeps an index that could not be finished, as invalid: writes maintain it, and nothing reads it. */
async function dropUnfinished(client: pg.Client, { schema, name }: Index): Promise<void> {
  const { rows } = await client.query(
    `select from pg_index i where i.indexrelid = to_regclass(format('%I.%I', $1::text, $2::text)) and not i.indisvalid`,
    [schema, name],
  );
  if (rows.length > 0) await client.query(`drop index concurrently ${schema}.${name}`);
}

async function isPartitioned(client: pg.Client, { schema, table }: Index): Promise<boolean> {
  const { rows } = await client.query(
    `select from pg_class c where c.oid = to_regclass(format('%I.%I', $1::text, $2::text)) and c.relkind = 'p'`,
    [schema, table],
  );
  return rows.length > 0;
}

/** The parent's index comes first, empty, so that partitions made meanwhile have theirs. It is valid once those of all partitions belong to it. */
async function buildOnPartitions(client: pg.Client, index: Index, lock_timeout_ms: number): Promise<void> {
  const { unique = '', name, schema, table, rest } = index;
  await client.query(`create ${unique}index if not exists ${name} on only ${schema}.${table} ${rest}`);
  const { rows } = await client.query<{ partition: string }>(
    `select p.relname as partition
    from pg_inherits h
    join pg_class p on p.oid = h.inhrelid
    where h.inhparent = $1::regclass
      and not exists (
        select from pg_inherits x join pg_index i on i.indexrelid = x.inhrelid where x.inhparent = $2::regclass and i.indrelid = p.oid
      )
    order by p.relname`,
    [`${schema}.${table}`, `${schema}.${name}`],
  );
  for (const { partition } of rows) {
    const own_name = `${partition}_${name}`;
    await build(client, { ...index, name: own_name, table: partition }, lock_timeout_ms);
    await client.query(`alter index ${schema}.${name} attach partition ${schema}.${own_name}`);
  }
}
