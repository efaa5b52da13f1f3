/** Says what `rail migrate` would do to a database: what it locks, whom that keeps waiting, and for how long. */
import type pg from 'pg';
import { type Mode, modes, type Work } from './locks.ts';
import { inTransactions, pendingFiles } from './migrate.ts';
import { type Effect, effectsOf, keepsWriters, whatIsNotOnline } from './online.ts';
import { runsOutside } from './outside_transaction.ts';
import { statementsOf } from './statements.ts';

export interface PlannedTable {
  table: string;
  /** As Postgres counted them last. */
  rows: number;
  bytes: number;
  lock: Mode;
  work: Work;
  keeps_waiting: 'nobody' | 'writers' | 'everybody';
  /** For how long it holds the lock, rounded up. */
  seconds: number;
}

export interface Step {
  files: string[];
  in_transaction: boolean;
  tables: PlannedTable[];
}

export interface Plan {
  is_new: boolean;
  steps: Step[];
  warnings: string[];
}

/** The bytes that a small server goes through in a second: a guess on the careful side. */
const bytes_per_s: Record<Exclude<Work, 'none'>, number> = { reads: 200e6, indexes: 40e6, writes: 20e6 };
const statement_s = 0.003;

interface Size {
  table: string;
  rows: number;
  bytes: number;
}

/** @throws Error as `migrate` does, where the database cannot be migrated */
export async function planMigration(on: Pick<pg.ClientBase, 'query'>, folder?: string): Promise<Plan> {
  const { rows } = await on.query<{ is_new: boolean }>(`select to_regclass('migration.applied') is null as is_new`);
  if (rows[0]?.is_new) return { is_new: true, steps: [], warnings: [] };
  const files = await pendingFiles(on, folder);
  const sizes = await readSizes(
    on,
    files.flatMap(({ text }) => statementsOf(text)).flatMap(({ words }) => words),
  );
  const isThere = (name: string) => sizes.has(name);
  const effects = effectsOf(files, isThere);
  const steps = inTransactions(files).map((group) => {
    const names = group.map(({ name }) => name);
    const in_transaction = group[0] !== undefined && !runsOutside(group[0]);
    const own = effects.filter(({ file }) => names.includes(file));
    return { files: names, in_transaction, tables: tablesOf(own, sizes, in_transaction) };
  });
  const migrations = files.filter(({ name }) => name.startsWith('migrations/'));
  return { is_new: false, steps, warnings: whatIsNotOnline(migrations, isThere) };
}

/** The tables, views and indexes of some names. Those of a partitioned table are its partitions' together; an index has the size of its table. */
async function readSizes(on: Pick<pg.ClientBase, 'query'>, words: string[]): Promise<Map<string, Size>> {
  const names = [
    ...new Set(words.map((word) => word.replace(/^'/, '')).flatMap((word) => [word, word.replace(/\.\w+$/, '')])),
  ];
  const { rows } = await on.query<Size & { name: string }>(
    `select n.name, t.oid::regclass::text as table, s.bytes::float8 as bytes, s.rows::float8 as rows
    from unnest($1::text[]) as n (name)
    join pg_class c on c.oid = to_regclass(n.name)
    left join pg_index i on i.indexrelid = c.oid
    join pg_class t on t.oid = coalesce(i.indrelid, c.oid)
    cross join lateral (
      select sum(pg_table_size(p.relid)) as bytes, sum(greatest(r.reltuples, 0)) as rows
      from (select t.oid as relid union select p.relid from pg_partition_tree(t.oid) p) p
      join pg_class r on r.oid = p.relid
    ) s
    where n.name like '%.%'`,
    [names.filter((name) => /^[a-z_][a-z_0-9]*\.[a-z_][a-z_0-9]*$/.test(name))],
  );
  return new Map(rows.map(({ name, ...size }) => [name, size]));
}

/** In a transaction a lock is held from its statement to the last one; outside of one, for its own statement. */
function tablesOf(effects: Effect[], sizes: Map<string, Size>, in_transaction: boolean): PlannedTable[] {
  const planned = new Map<string, PlannedTable>();
  for (const { locks } of effects) {
    const seconds = statement_s + locks.reduce((sum, one) => sum + secondsOf(one.work, sizes.get(one.table)), 0);
    if (in_transaction) for (const table of planned.values()) table.seconds += seconds;
    for (const { table: name, mode, work } of locks) {
      const size = sizes.get(name) as Size;
      const known = planned.get(size.table);
      const lock = known && modes.indexOf(known.lock) > modes.indexOf(mode) ? known.lock : mode;
      planned.set(size.table, {
        ...size,
        lock,
        work: known && known.work !== 'none' ? known.work : work,
        keeps_waiting: lock === 'ACCESS EXCLUSIVE' ? 'everybody' : keepsWriters({ mode: lock }) ? 'writers' : 'nobody',
        // The longest of a table's statements, where each is one by itself; known ones of a transaction are counted above.
        seconds: known ? (in_transaction ? known.seconds : Math.max(known.seconds, seconds)) : seconds,
      });
    }
  }
  return [...planned.values()]
    .map((table) => ({ ...table, seconds: Math.ceil(table.seconds) }))
    .toSorted(
      (a, b) =>
        b.seconds - a.seconds || modes.indexOf(b.lock) - modes.indexOf(a.lock) || a.table.localeCompare(b.table),
    );
}

const secondsOf = (work: Work, size: Size | undefined): number =>
  work === 'none' || !size ? 0 : size.bytes / bytes_per_s[work];
