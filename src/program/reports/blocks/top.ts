import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import type { Asked } from '../asked.ts';
import { type Noun, quarter_minutes } from '../dimension.ts';
import { facts, fromEdge, fromNotes, isIn, levelsOf, windowOf } from '../facts.ts';
import { fact_columns, fact_measures, type Metric } from '../metric.ts';
import type { Cover } from '../span.ts';
import { answer, byCurrency, columnsOf } from '../statement.ts';
import { keySums, type Packed, quarterSums } from './block.ts';
import type { KeySums } from './key_sums.ts';
import { recordsOf } from './records.ts';

const columns = columnsOf(fact_measures);
const counted: readonly Metric[] = fact_measures.counted;
const most_shown = 1_000;

/** What a metric follows from, and how; others are columns themselves. Shares are rounded half up, as they are in rows. */
const derived: Partial<Record<Metric, { from: [Metric, Metric]; of(a: number, b: number): number }>> = {
  net_revenue_minor: { from: ['revenue_minor', 'refunds_minor'], of: (revenue, refunds) => revenue - refunds },
  conversion_bps: { from: ['customers', 'clicks'], of: (customers, clicks) => share(10_000 * customers, clicks) },
  epc_minor: { from: ['commissions_minor', 'clicks'], of: share },
};

function share(of: number, among: number): number {
  return among === 0 ? 0 : Math.floor((2 * of + among) / (2 * among));
}

/** What is asked for where rows have an order. */
type Ordered = Asked & { order: NonNullable<Asked['order']> };

const measured = (alias: string): Sql => join(fact_columns.map((name) => sql`${raw(`${alias}.${name}`)}::bigint`));

const sourcesOf = ({ order }: Ordered): Metric[] => derived[order.metric]?.from ?? [order.metric];

/** Which facts have something in a column. */
const noun_of: Partial<Record<Metric, Noun>> = {
  ...{
    clicks: 'click',
    referrals: 'referral',
    leads: 'lead',
    customers: 'customer',
    sales: 'sale',
    revenue_minor: 'sale',
  },
  ...{ refunds_minor: 'refund', commissions_minor: 'commission', clawbacks_minor: 'clawback', paid_minor: 'paid' },
};

/**
 * A report that shows the first of many keys. It ranks the keys by the metric alone, reads all metrics of those that it shows, and takes the
 * totals from the sums of everything together. Where a window has fewer keys with more than 0 than are to be shown, the reply is not whole: which
 * keys have something else follows from all metrics of all keys alone, so that `reportStatement` has to be run.
 * @param tx sees one state of the database
 * @returns undefined where that is so from the beginning
 */
export async function topStatement(tx: Tx, asked: Asked, packed: Packed): Promise<Sql | undefined> {
  const { kind, program, order } = asked;
  const { covered } = packed;
  if (!order?.descending || order.limit > most_shown) return undefined;
  const firsts = await rank(tx, { ...asked, order }, packed);
  if (!firsts) return undefined;
  const candidates = firsts.flatMap(({ rows }) => rows);
  const quarters = await quarterSums(tx, packed, fact_columns, candidates);
  if (!quarters) return undefined;
  const everything: Asked = { ...asked, kind: { ...kind, dimension: '' } };
  const short = firsts.filter(({ is_full }) => !is_full).map(({ w }) => w);
  return sql`
    with note (w, key, currency, ${columns}) as materialized (${fromNotes(tx, asked, covered)}),
    facts (w, key, currency, ${columns}) as materialized (${facts(tx, everything)}),
    total (w, key, currency, ${columns}) as materialized (${byCurrency(fact_measures, sql`facts`)}),
    candidate as materialized (
      select
        c.w, c.key_id, c.value,
        coalesce(
          c.loose_key,
          (
            select k.key
            from program.report_key k
            where k.organization_id = ${tx.organization_id} and k.program_id = ${program.id} and k.dimension = ${kind.dimension} and k.id = c.key_id
          )
        ) as key
      from unnest(
        ${candidates.map(({ w }) => w)}::integer[], ${candidates.map(({ id }) => id)}::bigint[],
        ${candidates.map(({ value }) => value)}::bigint[], ${candidates.map(({ key }) => key)}::text[] collate "C"
      ) as c (w, key_id, value, loose_key)
    ),
    shown as materialized (
      select r.w, r.key_id, r.key, r.place
      from (select c.*, row_number() over (partition by c.w order by c.value desc, c.key collate "C") as place from candidate c) r
      where r.place <= ${order.limit}
    ),
    quarter as materialized (${ofQuarters(quarters, candidates)}),
    shown_fact (w, key, currency, ${columns}) as (${shownFacts(tx, asked, covered)}),
    by_currency (w, key, currency, ${columns}) as materialized (${byCurrency(fact_measures, sql`shown_fact`)}),
    ${answer(asked, sql`total`, sql`not exists (select from facts f where f.w = any(${short}::integer[]))`)}`;
}

/** Those of a window that may be shown: some more than may be, where the last of them have the same value. */
interface First {
  w: number;
  /** Keys that are in no sum yet have negative ids, and say what they are. */
  rows: { w: number; id: number; value: number; key: string | null }[];
  /** Whether there are as many as may be shown, with more than 0. */
  is_full: boolean;
}

/** @returns of each window */
async function rank(tx: Tx, asked: Ordered, packed: Packed): Promise<First[] | undefined> {
  const { program, bounds, order } = asked;
  const names = sourcesOf(asked);
  const currency = names.some((name) => counted.includes(name)) ? undefined : program.currency;
  const reading = readLoose(tx, asked, packed.covered); // Postgres is at it while sums are added up here
  reading.catch(() => {}); // its failure is thrown where it is awaited
  using sums = await keySums(tx, packed, { names, currency });
  const loose = await reading;
  if (!sums) return undefined;
  const loose_keys = addLoose(sums, loose);
  if (!sums.is_exact) return undefined;
  const firsts: First[] = [];
  for (let w = 1; w < bounds.length; w++) {
    const { above, tied, is_full } = firstOf(valuesOf(asked, sums, w), order.limit);
    const rowOf = ({ number, value }: Valued) => {
      const id = sums.keys.at(number) as number;
      return { w, id, value, key: loose_keys.get(id) ?? null };
    };
    const rows = tied.map(rowOf);
    const ids = rows.map(({ id }) => id);
    const first = await firstByKey(tx, asked, ids, order.limit - above.length);
    firsts.push({ w, rows: [...above.map(rowOf), ...rows.filter(({ id }) => first.has(id))], is_full });
  }
  return firsts;
}

/** So many are ranked by their keys where they are read. */
const most_tied = 200;

/** Of keys with the same value those that come first, and those that are in no sum yet. Where all have the same price, there are very many. */
async function firstByKey(tx: Tx, { program, kind }: Asked, ids: number[], count: number): Promise<Set<number>> {
  if (ids.length <= most_tied) return new Set(ids);
  const first = await tx.all<{ id: number }>(sql`
    select k.id
    from program.report_key k
    where k.organization_id = ${tx.organization_id} and k.program_id = ${program.id} and k.dimension = ${kind.dimension}
      and k.id = any(${`{${ids.join()}}`}::bigint[])
    order by k.key
    limit ${count}`);
  return new Set([...first.map(({ id }) => id), ...ids.filter((id) => id < 0)]);
}

type Loose = { w: number; id: number | null; key: string; currency: string };

/** What is in no sum and has to do with the order of keys: what is not folded yet, and the facts where no span fits. */
function readLoose(tx: Tx, asked: Ordered, covered: Cover): Promise<Loose[]> {
  const { program, kind } = asked;
  const names = sourcesOf(asked);
  const nouns = names.flatMap((name) => noun_of[name] ?? []);
  const of_edges = covered.edges.map((edge) => fromEdge(tx, asked, kind.dimension, edge, { nouns }));
  return tx.all<Loose>(sql`
    with loose (w, key, currency, ${columns}) as (
      ${join([fromNotes(tx, asked, covered), ...of_edges], ' union all ')}
    ),
    by_currency as materialized (
      select l.w, l.key, l.currency, ${join(names.map((name) => sql`coalesce(program.bigint_sum(l.${raw(name)}), 0) as ${raw(name)}`))}
      from loose l
      group by 1, 2, 3
    )
    select
      l.*,
      (
        select k.id
        from program.report_key k
        where k.organization_id = ${tx.organization_id} and k.program_id = ${program.id} and k.dimension = ${kind.dimension} and k.key = l.key
      ) as id
    from by_currency l`);
}

/** @returns the keys that have no number yet, by those that they are given here */
function addLoose(sums: KeySums, rows: Loose[]): Map<number, string> {
  const unknown = new Map<string, number>();
  for (const row of rows) {
    if (row.id === null && !unknown.has(row.key)) unknown.set(row.key, -1 - unknown.size);
    sums.add({ ...row, id: row.id ?? (unknown.get(row.key) as number) });
  }
  return new Map([...unknown].map(([key, id]) => [id, key]));
}

/** The metric of each key in a window: counts over all currencies, money in the program's. */
function valuesOf(asked: Ordered, sums: KeySums, w: number): Float64Array {
  const [first, second] = sourcesOf(asked).map((name) =>
    sums.column(w, name, counted.includes(name) ? undefined : asked.program.currency),
  ) as [Float64Array, Float64Array | undefined];
  const follows = derived[asked.order.metric];
  return follows && second ? first.map((value, place) => follows.of(value, second[place] as number)) : first;
}

interface Valued {
  number: number;
  value: number;
}

/** The keys with more than the last value that is shown, and those with that value. */
function firstOf(values: Float64Array, limit: number) {
  const least = leastOf(values, limit);
  const above: Valued[] = [];
  const tied: Valued[] = [];
  for (let number = 0; number < values.length; number++) {
    const value = values[number] as number;
    if (value > 0 && value >= (least ?? 0)) (value === least ? tied : above).push({ number, value });
  }
  return { above, tied, is_full: least !== undefined };
}

/** The value in the place `limit`, of those above 0 from the highest down; undefined where there are fewer. */
function leastOf(values: Float64Array, limit: number): number | undefined {
  let highest = new Float64Array(0);
  let waiting: number[] = [];
  let floor = 0;
  const sort = () => {
    highest = Float64Array.from([...highest, ...waiting])
      .sort()
      .reverse()
      .slice(0, limit);
    waiting = [];
    if (highest.length === limit) floor = highest[limit - 1] as number;
  };
  for (let place = 0; place < values.length; place++) {
    const value = values[place] as number;
    if (value <= floor) continue;
    waiting.push(value);
    if (waiting.length >= 4 * limit) sort();
  }
  sort();
  return highest[limit - 1];
}

/** What the quarters of days come to, of keys that may be shown. */
function ofQuarters({ keys, cells }: KeySums, candidates: { w: number; id: number }[]): Sql {
  const rows = candidates.flatMap(({ w, id }) => {
    const place = keys.of(id);
    return cells
      .filter((cell) => cell.w === w && cell.columns.some((column) => column[place]))
      .map(({ currency, columns: sums }) => ({
        ...{ w, key_id: id, currency },
        ...Object.fromEntries(fact_columns.map((name, nth) => [name, sums[nth]?.[place]])),
      }));
  });
  return sql`
    select r.w, r.key_id, r.currency collate "C" as currency, ${columns}
    from ${recordsOf(rows, 'w integer, key_id bigint, currency text')}`;
}

/** All that counts for the rows that are shown: sums by the numbers of their keys, and what is in no sum. */
function shownFacts(tx: Tx, asked: Asked, covered: Cover): Sql {
  const keys = sql`array(select distinct s.key from shown s)`;
  const of_edges = covered.edges.map((edge) => fromEdge(tx, asked, asked.kind.dimension, edge, { keys }));
  const levels = levelsOf(covered.ranges.filter(({ minutes }) => minutes !== quarter_minutes));
  const of_spans = levels.map(
    (level) => sql`
      select ${windowOf(covered)} as w, t.key_id, t.currency, ${measured('t')}
      from program.report_total t
      where ${isIn(tx, asked, asked.kind.dimension, level)} and t.key_id = any(array(select s.key_id from shown s))`,
  );
  return sql`
    select t.w, s.key, t.currency, ${columns}
    from (${join([sql`select * from quarter`, ...of_spans], ' union all ')}) as t (w, key_id, currency, ${columns})
    join shown s on s.w = t.w and s.key_id = t.key_id
    union all
    select l.w, l.key, l.currency, ${measured('l')}
    from (${join([sql`select * from note`, ...of_edges], ' union all ')}) as l (w, key, currency, ${columns})
    join shown s on s.w = l.w and s.key = l.key`;
}
