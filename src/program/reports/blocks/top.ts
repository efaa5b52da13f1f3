import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import type { Asked } from '../asked.ts';
import type { Noun } from '../dimension.ts';
import { facts, fromEdge, fromNotes, isKeyOf } from '../facts.ts';
import { fact_columns, fact_measures, type Metric } from '../metric.ts';
import type { Cover } from '../span.ts';
import { answer, byCurrency, columnsOf } from '../statement.ts';
import { chosenSums, keySums, type Packed } from './block.ts';
import type { KeySums } from './key_sums.ts';
import { recordsOf } from './records.ts';

const columns = columnsOf(fact_measures);
const counted: readonly Metric[] = fact_measures.counted;
const most_shown = 1_000;

/** What a metric follows from, and how; others are columns themselves. Shares are rounded half away from zero, as they are in rows. */
const derived: Partial<Record<Metric, { from: [Metric, Metric]; of(a: number, b: number): number }>> = {
  net_revenue_minor: { from: ['revenue_minor', 'refunds_minor'], of: (revenue, refunds) => revenue - refunds },
  conversion_bps: { from: ['customers', 'clicks'], of: (customers, clicks) => share(10_000 * customers, clicks) },
  epc_minor: { from: ['commissions_minor', 'clicks'], of: share },
};

/** @param among not below 0 */
function share(of: number, among: number): number {
  if (among === 0) return 0;
  const rest = Math.abs(of) % among;
  return Math.sign(of) * ((Math.abs(of) - rest) / among + (2 * rest >= among ? 1 : 0));
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

/** Keys that may turn out to have nothing at all, so that others are shown instead. */
const spareFor = (limit: number): number => 20 + Math.ceil(limit / 4);

/**
 * A report that shows the first of many keys. It ranks the keys by the metric alone, reads all metrics of those that it may show, and takes the
 * totals from the sums of everything together. Keys with nothing at all are found out last, so that in the rare case that there are many of them
 * the reply is not whole, and `reportStatement` has to be run.
 * @param tx sees one state of the database
 * @returns undefined where that is so from the beginning
 */
export async function topStatement(tx: Tx, asked: Asked, packed: Packed): Promise<Sql | undefined> {
  const { kind, order } = asked;
  const { covered } = packed;
  if (!order || order.limit > most_shown) return undefined;
  const ranked = await rank(tx, { ...asked, order }, packed);
  if (!ranked) return undefined;
  const { firsts, most } = ranked;
  const candidates = firsts.flatMap(({ rows }) => rows);
  const sums = await chosenSums(tx, packed, fact_columns, candidates);
  if (!sums) return undefined;
  const everything: Asked = { ...asked, kind: { ...kind, dimension: '' } };
  const cut = firsts.filter(({ is_cut }) => is_cut).map(({ w }) => w);
  const is_whole = sql`not exists (
    select from unnest(${cut}::integer[]) as c (w) where (select count(*) from by_key k where k.w = c.w) < ${order.limit})`;
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
            where ${isKeyOf(tx, asked, kind.dimension)} and k.id = c.key_id
          )
        ) as key
      from unnest(
        ${candidates.map(({ w }) => w)}::integer[], ${candidates.map(({ id }) => id)}::bigint[],
        ${candidates.map(({ value }) => value)}::bigint[], ${candidates.map(({ key }) => key)}::text[] collate "C"
      ) as c (w, key_id, value, loose_key)
    ),
    ranked as materialized (
      select r.w, r.key_id, r.key, r.place
      from (
        select c.*, row_number() over (partition by c.w order by c.value ${raw(order.descending ? 'desc' : 'asc')}, c.key collate "C") as place
        from candidate c
      ) r
      where r.place <= ${most}
    ),
    summed as materialized (${ofSums(sums, candidates)}),
    ranked_fact (w, key, currency, ${columns}) as (${rankedFacts(tx, asked, covered)}),
    by_currency (w, key, currency, ${columns}) as materialized (${byCurrency(fact_measures, sql`ranked_fact`)}),
    ${answer(asked, sql`total`, is_whole)}`;
}

/** Those of a window that may be shown: some more than may be, where the last of them have the same value. */
interface First {
  w: number;
  /** Keys that are in no sum yet have negative ids, and say what they are. */
  rows: { w: number; id: number; value: number; key: string | null }[];
  /** Whether there may be others behind them. */
  is_cut: boolean;
}

/** Of each window the keys that may be shown, of which no more than `most` are. */
interface Ranked {
  firsts: First[];
  most: number;
}

/**
 * The fewest facts are read where the first keys have more than 0 of the metric. Where there are too few of these, all keys that have anything are
 * ranked.
 * @returns undefined where a sum is beyond the integers that a number holds
 */
async function rank(
  tx: Tx,
  asked: Ordered,
  packed: Packed,
  finds_all = !asked.order.descending,
): Promise<Ranked | undefined> {
  const { program, bounds, order } = asked;
  const names = sourcesOf(asked);
  const currency = names.some((name) => counted.includes(name)) ? undefined : program.currency;
  const nouns = finds_all ? undefined : names.flatMap((name) => noun_of[name] ?? []);
  const reading = readLoose(tx, asked, packed.covered, nouns); // Postgres is at it while sums are added up here
  reading.catch(() => {}); // its failure is thrown where it is awaited
  using sums = await keySums(tx, packed, { names, currency, finds_all });
  const loose = await reading;
  if (!sums) return undefined;
  const loose_keys = addLoose(sums, loose);
  if (!sums.is_exact) return undefined;
  const most = order.limit + (finds_all ? spareFor(order.limit) : 0);
  const ranges = Array.from({ length: bounds.length - 1 }, (_, nth) => {
    const found = finds_all ? sums.found.in(nth + 1) : undefined;
    return firstOf({ values: valuesOf(asked, sums, nth + 1), found }, order.descending, most);
  });
  if (!finds_all && !ranges.every(({ is_cut }) => is_cut)) return rank(tx, asked, packed, true);
  const idOf = (number: number) => sums.keys.at(number) as number;
  const firsts = ranges.map(async ({ before, tied, is_cut }, nth) => {
    const count = most - before.length;
    const ids = await firstByKey(tx, asked, tied.numbers.map(idOf), { count, among: sums.keys.size });
    const last = ids.map((id) => ({ id, value: tied.value }));
    const rows = [...before.map(({ number, value }) => ({ id: idOf(number), value })), ...last];
    const w = nth + 1;
    return { w, rows: rows.map((row) => ({ ...row, w, key: loose_keys.get(row.id) ?? null })), is_cut };
  });
  return { firsts: await Promise.all(firsts), most };
}

/** So many are ranked by their keys where they are read. */
const most_tied = 200;
/** Where they are more than this share of all keys, the first are soon found among all. */
const many = 1 / 50;

/**
 * Of keys with the same value those that come first, and those that are in no sum yet. Where all have the same price, there are very many.
 * @param among how many keys there are
 */
async function firstByKey(
  tx: Tx,
  asked: Asked,
  ids: number[],
  { count, among }: { count: number; among: number },
): Promise<number[]> {
  if (ids.length <= most_tied) return ids;
  const known = ids.filter((id) => id >= 0);
  const chosen = known.length <= many * among ? keysAfter(tx, asked, { ids: known, most: count }) : undefined;
  const first = chosen ? (await chosen).map(({ id }) => id) : await firstOfMany(tx, asked, known, count);
  return [...first, ...ids.filter((id) => id < 0)];
}

async function firstOfMany(tx: Tx, asked: Asked, ids: number[], count: number): Promise<number[]> {
  const wanted = new Set(ids);
  const first: number[] = [];
  let after: string | undefined;
  for (let most = 2 * count; first.length < Math.min(count, ids.length); most *= 4) {
    const keys = await keysAfter(tx, asked, { after, most });
    first.push(...keys.map(({ id }) => id).filter((id) => wanted.has(id)));
    if (keys.length < most) break;
    after = keys.at(-1)?.key;
  }
  return first.slice(0, count);
}

/** Keys of the dimension in their order: those behind `after`, or those that have `ids`. */
function keysAfter(
  tx: Tx,
  asked: Asked,
  { after, ids, most }: { after?: string | undefined; ids?: number[]; most: number },
): Promise<{ id: number; key: string }[]> {
  const is_wanted = ids ? sql`k.id = any(${`{${ids.join()}}`}::bigint[])` : sql`true`;
  const comes_after = after === undefined ? sql`true` : sql`k.key > ${after}`;
  return tx.all(sql`
    select k.id, k.key
    from program.report_key k
    where ${isKeyOf(tx, asked, asked.kind.dimension)} and ${is_wanted} and ${comes_after}
    order by k.key
    limit ${most}`);
}

type Loose = { w: number; id: number | null; key: string; currency: string };

/**
 * What is in no sum: what is not folded yet, and the facts where no span fits.
 * @param nouns the facts that are read there; undefined: all
 */
function readLoose(tx: Tx, asked: Ordered, covered: Cover, nouns: Noun[] | undefined): Promise<Loose[]> {
  const { kind } = asked;
  const names = sourcesOf(asked);
  const read = nouns ? { nouns } : {};
  const of_edges = covered.edges.map((edge) => fromEdge(tx, asked, kind.dimension, edge, read));
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
        where ${isKeyOf(tx, asked, kind.dimension)} and k.key = l.key
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

interface Values {
  /** By the numbers of keys. */
  values: Float64Array;
  /** Which of them are ranked; undefined: those with more than 0. */
  found: Uint8Array | undefined;
}

interface Range {
  before: { number: number; value: number }[];
  tied: { numbers: number[]; value: number };
  /** Whether others come behind them. */
  is_cut: boolean;
}

/** The keys before the one in the place `most`, and those with the same value as that one. */
function firstOf({ values, found }: Values, descending: boolean, most: number): Range {
  const sign = descending ? 1 : -1;
  const last = lastOf({ values, found }, sign, most);
  const before: Range['before'] = [];
  const numbers: number[] = [];
  for (let number = 0; number < values.length; number++) {
    const value = values[number] as number;
    if (!(found ? found[number] : value > 0) || (last !== undefined && sign * value < last)) continue;
    if (sign * value === last) numbers.push(number);
    else before.push({ number, value });
  }
  return { before, tied: { numbers, value: sign * (last ?? 0) }, is_cut: last !== undefined };
}

/** The value in the place `most`, with its sign, from the highest down; undefined where there are fewer. */
function lastOf({ values, found }: Values, sign: 1 | -1, most: number): number | undefined {
  let highest = new Float64Array(0);
  let waiting: number[] = [];
  let floor = found ? Number.NEGATIVE_INFINITY : 0;
  const sort = () => {
    highest = Float64Array.from([...highest, ...waiting])
      .sort()
      .reverse()
      .slice(0, most);
    waiting = [];
    if (highest.length === most) floor = highest[most - 1] as number;
  };
  for (let number = 0; number < values.length; number++) {
    const value = sign * (values[number] as number);
    if (value <= floor || (found && !found[number])) continue;
    waiting.push(value);
    if (waiting.length >= 4 * most) sort();
  }
  sort();
  return highest[most - 1];
}

/** What the spans come to, of keys that may be shown; most sums are 0, and left out. */
function ofSums({ keys, cells }: KeySums, candidates: { w: number; id: number }[]): Sql {
  const rows = candidates.flatMap(({ w, id }) => {
    const place = keys.of(id);
    return cells
      .filter((cell) => cell.w === w && cell.columns.some((column) => column[place]))
      .map(({ currency, columns: sums }) => ({
        ...{ w, key_id: id, currency },
        ...Object.fromEntries(fact_columns.map((name, nth) => [name, sums[nth]?.[place] || undefined])),
      }));
  });
  return sql`
    select r.w, r.key_id, r.currency collate "C" as currency, ${columns}
    from ${recordsOf(rows, { w: 'integer', key_id: 'bigint', currency: 'text' })}`;
}

/** All that counts for the keys that may be shown: sums by their numbers, and what is in no sum. */
function rankedFacts(tx: Tx, asked: Asked, covered: Cover): Sql {
  const keys = sql`array(select distinct r.key from ranked r)`;
  const of_edges = covered.edges.map((edge) => fromEdge(tx, asked, asked.kind.dimension, edge, { keys }));
  return sql`
    select s.w, r.key, s.currency, ${columns}
    from summed s
    join ranked r on r.w = s.w and r.key_id = s.key_id
    union all
    select l.w, l.key, l.currency, ${measured('l')}
    from (${join([sql`select * from note`, ...of_edges], ' union all ')}) as l (w, key, currency, ${columns})
    join ranked r on r.w = l.w and r.key = l.key`;
}
