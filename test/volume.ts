/** Counts the blocks that transactions touch: those behind many others are compared with those at first. */
import { raw } from 'sql-template-tag';
import t from 'tap';
import { type Tx, transaction } from '../src/core/postgres/transaction.ts';
import { type Json, type Rail, sql } from './harness.ts';

export const many = 5_000;
/** Blocks that do not count: pages that planning looks at, and what the session did before. */
export const more = 50;

interface Copies {
  organization_id: string;
  count?: number;
}

export interface Volume {
  /** The blocks that the transactions touch which write measured tables in `work`: the fewest of some times, of sessions that have planned their statements. */
  touched(work: () => Promise<unknown>): Promise<number>;
  /** The fewest blocks that a check reads in some tries, in a transaction of an organization. Null: of the whole service. */
  checked(organization_id: string | null, check: (tx: Tx) => Promise<unknown>): Promise<number>;
  /** Tests that each work touches as many blocks once `fill` has put many others under the same parents as it did before. */
  compare(works: Record<string, () => Promise<unknown>>, fill: () => Promise<unknown>): Promise<void>;
  /** Copies a row of an organization so many times, without what requests do, with ids of their own. @param differing columns that are unique, each an expression of `n` */
  copy(copies: Copies, table: string, row: Json, differing?: Record<string, string>): Promise<void>;
}

const touched_blocks = sql`(
  select sum(pg_stat_get_xact_blocks_fetched(c.oid))::bigint from pg_class c
  where c.relnamespace in ('core'::regnamespace, 'webhooks'::regnamespace, 'program'::regnamespace, 'recruitment'::regnamespace))`;

/** @param tables whose writers are measured: with the schema */
export async function openVolume(rail: Rail, tables: string[]): Promise<Volume> {
  await noteTouched(rail, tables);
  const touched: Volume['touched'] = async (work) => {
    const counts: number[] = [];
    for (let nth = 0; nth < 6; nth++) {
      await rail.query(sql`truncate public.touched`);
      await work();
      const [row] = await rail.query<{ blocks: number }>(sql`
        select coalesce(sum(t.blocks), 0)::integer as blocks
        from (select max(blocks) as blocks from public.touched group by transaction) as t`);
      counts.push(row?.blocks as number);
    }
    return Math.min(...counts);
  };
  return {
    touched,
    async compare(works, fill) {
      const at_first: Record<string, number> = {};
      for (const [name, work] of Object.entries(works)) at_first[name] = await touched(work);
      await fill();
      for (const [name, work] of Object.entries(works))
        t.test(`${name} touches as many blocks behind ${many} others`, async (t) => {
          const now = await touched(work);
          t.comment(`${name}: ${at_first[name]}, ${now}`);
          t.ok((at_first[name] as number) > 10, 'something is measured');
          t.ok(now <= (at_first[name] as number) + more, `${at_first[name]} at first, ${now} then`);
        });
    },
    async checked(organization_id, check) {
      const counts: number[] = [];
      const read = sql`select ${touched_blocks}::integer as blocks`;
      for (let nth = 0; nth < 3; nth++) {
        await transaction(rail.store, { organization_id, request_id: null }, async (tx) => {
          // Blocks that the session has read before may be among them.
          const before = await tx.one<{ blocks: number }>(read);
          await check(tx);
          counts.push((await tx.one<{ blocks: number }>(read)).blocks - before.blocks);
        });
      }
      return Math.min(...counts);
    },
    async copy(copies, table, row, differing = {}) {
      const is_measured = tables.includes(table);
      const measured = raw(table);
      if (is_measured) await rail.query(sql`alter table ${measured} disable trigger touched`);
      await copyTo(rail, copies, table, row, differing);
      if (is_measured) await rail.query(sql`alter table ${measured} enable trigger touched`);
    },
  };
}

/** Has each transaction that writes one of the tables note, at its end, what it has touched until then. */
async function noteTouched(rail: Rail, tables: string[]): Promise<void> {
  await rail.query(sql`create table public.touched (transaction xid8, blocks bigint)`);
  await rail.query(sql`
    create function public.note_touched() returns trigger language plpgsql security definer as $$
    begin
      insert into public.touched (transaction, blocks) select pg_current_xact_id(), ${touched_blocks};
      perform pg_stat_force_next_flush();
      return null;
    end $$`);
  for (const table of tables)
    await rail.query(sql`
      create constraint trigger touched after insert or update or delete on ${raw(table)} deferrable initially deferred
      for each row execute function public.note_touched()`);
}

async function copyTo(
  rail: Rail,
  { organization_id, count = many }: Copies,
  table: string,
  row: Json,
  differing: Record<string, string>,
): Promise<void> {
  const [{ columns } = { columns: '' }] = await rail.query<{ columns: string }>(sql`
    select string_agg(quote_ident(a.attname), ', ') as columns from pg_attribute a
    where a.attrelid = ${table}::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      and a.attname not in ('inserted_in', 'changed_in')`);
  const values = columns
    .split(', ')
    .map((column) => differing[column] ?? (column === 'id' ? `core.new_id(split_part(s.id, '_', 1))` : `s.${column}`));
  const into = raw(table);
  await rail.query(sql`
    insert into ${into} (${raw(columns)}) select ${raw(values.join())} from ${into} s, generate_series(1, ${count}::integer) as n
    where s.organization_id = ${organization_id} and s.id = ${row.id}`);
}
