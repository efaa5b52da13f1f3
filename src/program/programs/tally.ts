import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';

/** How many of a noun a program has, or an organization programs: for resources whose tables are tallied (`program.tallied`). */
export const totalOf =
  (noun: string) =>
  (tx: Tx, subject_id: string): Sql =>
    sql`
    select coalesce(sum(n.rows), 0)::bigint as count
    from program.totals_of(${tx.organization_id}, ${[subject_id]}) n
    where n.noun = ${noun}`;

/** One of a subject's counters: what is added up, over which of the totals `n` of the subject `s`. */
export interface Counter {
  of: 'rows' | 'amount_minor';
  where: Sql;
}

/** Counts all rows of a noun. */
export const rowsOf = (noun: string): Counter => ({ of: 'rows', where: sql`n.noun = ${noun}` });

/** Adds up money in the subject's own currency. */
export const moneyOf = (noun: string): Counter => ({
  of: 'amount_minor',
  where: sql`n.noun = ${noun} and n.kind in (s.currency, s.currency || ' paid')`,
});

/** The counters of programs, partners, links, coupons or groups, by their ids. */
export async function countersOf(
  tx: Tx,
  subjects: { id: string; currency?: unknown }[],
  counters: Record<string, Counter>,
): Promise<Map<string, Record<string, number>>> {
  const sums = Object.entries(counters).map(
    ([name, { of, where }]) => sql`${safeSum(sql`sum(n.${raw(of)}) filter (where ${where})`)} as ${raw(name)}`,
  );
  const ids = subjects.map(({ id }) => id);
  const currencies = subjects.map(({ currency }) => currency ?? null);
  const counted = await tx.all<Record<string, number> & { id: string }>(sql`
    select s.id, ${join(sums)}
    from unnest(${ids}::text[], ${currencies}::text[]) as s (id, currency)
    left join program.totals_of(${tx.organization_id}, ${ids}) n on n.subject_id = s.id
    group by s.id`);
  return new Map(counted.map(({ id, ...figures }) => [id, figures]));
}

/** A sum as an integer that JSON carries exactly: what is beyond them shows as the last of them. */
export const safeSum = (sum: Sql): Sql =>
  sql`least(greatest(coalesce(${sum}, 0), ${Number.MIN_SAFE_INTEGER}), ${Number.MAX_SAFE_INTEGER})::bigint`;

/** Folds up to so many notes of writes into the tallies, over all tenants: for the scheduled task alone. @returns how many */
export async function foldTallies(tx: Tx, most: number): Promise<number> {
  const { folded } = await tx.one<{ folded: number }>(sql`select program.fold_tallies(${most}) as folded`);
  return folded;
}
