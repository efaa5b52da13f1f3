import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';

/** Counts a program's records of a noun, of these kinds, from the sums that are kept as they are written. */
export const totalOf =
  (noun: string, kinds = sql`true`) =>
  (tx: Tx, subject_id: string): Sql =>
    sql`
    select coalesce(sum(n.rows), 0)::bigint as count
    from program.totals_of(${tx.organization_id}, ${[subject_id]}) n
    where n.noun = ${noun} and ${kinds}`;

/** A counter of a subject `s`: which column is added up, over which of the subject's totals `n`. */
export interface Counter {
  sum: 'rows' | 'amount_minor';
  where: Sql;
}

/** Counts all rows of a noun. */
export const rowsOf = (noun: string): Counter => ({ sum: 'rows', where: sql`n.noun = ${noun}` });

/** Adds up amounts in the subject's own currency. */
export const moneyOf = (noun: string): Counter => ({
  sum: 'amount_minor',
  where: sql`n.noun = ${noun} and n.kind in (s.currency, s.currency || ' paid')`,
});

/** The counters of programs, partners, links, coupons or groups, by their ids. */
export async function countersOf(
  tx: Tx,
  subjects: { id: string; currency?: unknown }[],
  counters: Record<string, Counter>,
): Promise<Map<string, Record<string, number>>> {
  const sums = Object.entries(counters).map(
    ([name, { sum, where }]) => sql`${safeSum(sql`sum(n.${raw(sum)}) filter (where ${where})`)} as ${raw(name)}`,
  );
  const ids = subjects.map(({ id }) => id);
  const currencies = subjects.map(({ currency }) => currency ?? null);
  const totals = await tx.all<Record<string, number> & { id: string }>(sql`
    select s.id, ${join(sums)}
    from unnest(${ids}::text[], ${currencies}::text[]) as s (id, currency)
    left join program.totals_of(${tx.organization_id}, ${ids}) n on n.subject_id = s.id
    group by s.id`);
  return new Map(totals.map(({ id, ...counts }) => [id, counts]));
}

/** A sum, limited to the integers that JSON carries exactly. */
export const safeSum = (sum: Sql): Sql =>
  sql`least(greatest(coalesce(${sum}, 0), ${Number.MIN_SAFE_INTEGER}), ${Number.MAX_SAFE_INTEGER})::bigint`;

/** Adds what was written since to the tallies, until `limit` counts are added, for all tenants: for the scheduled task only. @returns how many */
export async function foldTallies(tx: Tx, limit: number): Promise<number> {
  const { folded } = await tx.one<{ folded: number }>(sql`select program.fold_tallies(${limit}) as folded`);
  return folded;
}
