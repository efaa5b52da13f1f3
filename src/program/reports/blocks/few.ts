import sql, { join, raw } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import type { Asked } from '../asked.ts';
import { isKeyOf, type Summed } from '../facts.ts';
import { fact_columns } from '../metric.ts';
import { keySums, type Packed } from './block.ts';
import { MemberNumbers } from './key_numbers.ts';
import type { KeySums } from './key_sums.ts';
import { recordsOf } from './records.ts';

/** All measures of the keys of a span are read, and written into a statement, where it has no more than so many. */
const most_keys = 500;

/** Whether a report has few rows: groups are few, whatever the number of their partners. */
export const hasFewKeys = ({ kind }: Asked, { listed }: Packed): boolean =>
  kind.key === 'group_id' || listed.every(({ key_count }) => key_count <= most_keys);

/**
 * What the spans of a report with few rows come to.
 * @param tx sees one state of the database
 * @returns undefined where Postgres is to add them up
 */
export async function fewSums(tx: Tx, asked: Asked, packed: Packed): Promise<Summed | undefined> {
  const rows = await (asked.kind.key === 'group_id' ? byGroup(tx, asked, packed) : byKey(tx, asked, packed));
  if (!rows?.every(isExact)) return undefined;
  const columns = join(fact_columns.map((name) => raw(`r.${name}`)));
  return {
    covered: packed.covered,
    rows: sql`
      select r.w, r.key collate "C", r.currency collate "C", ${columns}
      from ${recordsOf(rows, { w: 'integer', key: 'text', currency: 'text' })}`,
  };
}

const isExact = (row: Record<string, unknown>): boolean =>
  fact_columns.every((name) => Number.isSafeInteger(row[name]));

/** The rows of each window and currency, of keys by their numbers. */
const rowsOf = ({ cells }: KeySums, keys: { key: string; number: number }[]): Record<string, unknown>[] =>
  cells.flatMap(({ w, currency, columns }) =>
    keys.map(({ key, number }) => {
      const sums = fact_columns.map((name, nth) => [name, columns[nth]?.[number] ?? 0]);
      return { w, key, currency, ...Object.fromEntries(sums) };
    }),
  );

/** Partners by the groups that they are in today. */
async function byGroup(tx: Tx, asked: Asked, packed: Packed): Promise<Record<string, unknown>[] | undefined> {
  const groups = await tx.all<{ key: string; ids: number[] }>(sql`
    select coalesce(m.group_id, '') as key, json_agg(k.id) as ids
    from program.report_key k
    left join program.partner m on m.organization_id = ${tx.organization_id} and m.id = k.key
    where ${isKeyOf(tx, asked, 'partner_id')}
    group by 1`);
  using sums = await keySums(tx, packed, { names: fact_columns, numbers: new MemberNumbers(groups) });
  return (
    sums &&
    rowsOf(
      sums,
      groups.map(({ key }, number) => ({ key, number })),
    )
  );
}

async function byKey(tx: Tx, asked: Asked, packed: Packed): Promise<Record<string, unknown>[] | undefined> {
  using sums = await keySums(tx, packed, { names: fact_columns });
  if (!sums) return undefined;
  const columns = sums.cells.flatMap((cell) => cell.columns);
  const ids: number[] = [];
  for (let number = 0; number < sums.keys.size; number++)
    if (columns.some((column) => column[number])) ids.push(sums.keys.at(number) as number);
  const keys = await tx.all<{ key: string; id: number }>(sql`
    select k.key, k.id
    from program.report_key k
    where ${isKeyOf(tx, asked, packed.dimension)} and k.id = any(${ids})`);
  return rowsOf(
    sums,
    keys.map(({ key, id }) => ({ key, number: sums.keys.of(id) })),
  );
}
