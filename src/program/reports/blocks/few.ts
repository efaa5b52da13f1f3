import sql, { join, raw } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import type { Asked } from '../asked.ts';
import type { Summed } from '../facts.ts';
import { fact_measures, type Metric } from '../metric.ts';
import { keySums, type Packed } from './block.ts';
import type { KeySums } from './key_sums.ts';

const names: Metric[] = [...fact_measures.counted, ...fact_measures.added];

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
  const sums = await keySums(tx, packed, { names });
  const members = sums && (await (asked.kind.key === 'group_id' ? byGroup(tx, asked) : byKey(tx, asked, packed, sums)));
  const rows = members && rowsOf(members, sums);
  if (!rows?.every(isExact)) return undefined;
  const columns = join(names.map((name) => raw(`r.${name}`)));
  const types = join(names.map((name) => raw(`${name} bigint`)));
  return {
    covered: packed.covered,
    rows: sql`
      select r.w, r.key collate "C", r.currency collate "C", ${columns}
      from json_to_recordset(${JSON.stringify(rows)}::json) as r (w integer, key text, currency text, ${types})`,
  };
}

const isExact = (row: Record<string, unknown>): boolean => names.every((name) => Number.isSafeInteger(row[name]));

/** A row, and the keys that are added up to it. */
interface Members {
  key: string;
  ids: number[];
}

/** The rows of each window and currency. */
function rowsOf(members: Members[], { keys, cells }: KeySums): Record<string, unknown>[] {
  return members.flatMap(({ key, ids }) => {
    const places = ids.map((id) => keys.of(id));
    return cells.map(({ w, currency, columns }) => {
      const sums = columns.map((column) => {
        let sum = 0;
        for (const place of places) sum += column[place] ?? 0;
        return sum;
      });
      return { w, key, currency, ...Object.fromEntries(names.map((name, nth) => [name, sums[nth]])) };
    });
  });
}

/** Partners by the groups that they are in today. */
const byGroup = (tx: Tx, { program }: Asked): Promise<Members[]> =>
  tx.all<Members>(sql`
    select coalesce(m.group_id, '') as key, json_agg(k.id) as ids
    from program.report_key k
    left join program.partner m on m.organization_id = ${tx.organization_id} and m.id = k.key
    where k.organization_id = ${tx.organization_id} and k.program_id = ${program.id} and k.dimension = 'partner_id'
    group by 1`);

function byKey(tx: Tx, { program }: Asked, { dimension }: Packed, { keys, cells }: KeySums): Promise<Members[]> {
  const columns = cells.flatMap((cell) => cell.columns);
  const ids: number[] = [];
  for (let place = 0; place < keys.size; place++)
    if (columns.some((column) => column[place])) ids.push(keys.at(place) as number);
  return tx.all<Members>(sql`
    select k.key, json_build_array(k.id) as ids
    from program.report_key k
    where k.organization_id = ${tx.organization_id} and k.program_id = ${program.id} and k.dimension = ${dimension} and k.id = any(${ids})`);
}
