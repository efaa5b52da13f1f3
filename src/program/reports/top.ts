import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Asked } from './asked.ts';
import type { Dimension, Noun } from './dimension.ts';
import { coverOf, facts, fromEdge, fromNotes, isIn, levelsOf, windowOf } from './facts.ts';
import { fact_measures, type Metric } from './metric.ts';
import type { Cover } from './span.ts';
import { answer, byCurrency, columnsOf, metric } from './statement.ts';

const columns = columnsOf(fact_measures);
const { counted } = fact_measures;

/** The dimensions that may have very many keys. */
const long: readonly string[] = ['partner_id', 'link_id', 'landing_page', 'customer_id'] satisfies Dimension[];
const most_shown = 1_000;

/** What a metric follows from; others are columns themselves. */
const sources: Partial<Record<Metric, Metric[]>> = {
  net_revenue_minor: ['revenue_minor', 'refunds_minor'],
  conversion_bps: ['customers', 'clicks'],
  epc_minor: ['commissions_minor', 'clicks'],
};

/** What is asked for where rows have an order. */
type Ordered = Asked & { order: NonNullable<Asked['order']> };

const sourcesOf = ({ order }: Ordered): Metric[] => sources[order.metric] ?? [order.metric];

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
 * @returns undefined where that is so from the beginning
 */
export function topStatement(tx: Tx, asked: Asked): Sql | undefined {
  const { kind, filters, bounds, order } = asked;
  if (!asked.is_summed || kind.key !== kind.dimension || !long.includes(kind.dimension)) return undefined;
  if (!order?.descending || order.limit > most_shown || Object.keys(filters).length > 0) return undefined;
  const covered = coverOf(asked, kind.dimension);
  if (covered === undefined) return undefined;
  const windows = bounds.slice(1).map((_, before) => before + 1);
  const everything: Asked = { ...asked, kind: { ...kind, dimension: '' } };
  const ordered: Ordered = { ...asked, order };
  return sql`
    with note (w, key, currency, ${columns}) as materialized (${fromNotes(tx, asked, covered)}),
    loose (w, key, currency, ${columns}) as materialized (${looseFacts(tx, ordered, covered)}),
    loose_key as materialized (${keysOfLoose(tx, asked)}),
    facts (w, key, currency, ${columns}) as materialized (${facts(tx, everything)}),
    total (w, key, currency, ${columns}) as materialized (${byCurrency(fact_measures, sql`facts`)}),
    ranked (w, key_id, value) as materialized (${ranked(tx, ordered, covered)}),
    least as materialized (${join(windows.map(leastOf(order.limit)), ' union all ')}),
    shown as materialized (${join(windows.map(topOf(tx, asked, order.limit)), ' union all ')}),
    shown_fact (w, key, currency, ${columns}) as (${shownFacts(tx, asked, covered)}),
    by_currency (w, key, currency, ${columns}) as materialized (${byCurrency(fact_measures, sql`shown_fact`)}),
    ${answer(asked, sql`total`, is_whole)}`;
}

/** A window is whole where it has as many rows as may be shown, or where it has nothing at all. */
const is_whole = sql`(select bool_and(l.value is not null or not exists (select from facts f where f.w = l.w)) from least l)`;

/** What is in no sum and has to do with the order of keys: what is not folded yet, and the facts where no span fits. */
function looseFacts(tx: Tx, asked: Ordered, { edges }: Cover): Sql {
  const nouns = sourcesOf(asked).flatMap((name) => noun_of[name] ?? []);
  const of_edges = edges.map((edge) => fromEdge(tx, asked, asked.kind.dimension, edge, { nouns }));
  return join([sql`select * from note`, ...of_edges], ' union all ');
}

/** The numbers of the keys of what is in no sum. Those that no sum has had yet have negative ones. */
const keysOfLoose = (tx: Tx, { program, kind }: Asked): Sql => sql`
  select l.key, coalesce(k.id, - row_number() over ()) as id
  from (select distinct l.key from loose l) l
  left join lateral (
    select k.id
    from program.report_key k
    where k.organization_id = ${tx.organization_id} and k.program_id = ${program.id} and k.dimension = ${kind.dimension} and k.key = l.key
    limit 1
  ) k on true`;

/** The value of each key, of those that have more than 0. */
function ranked(tx: Tx, asked: Ordered, covered: Cover): Sql {
  const { kind, program, order } = asked;
  const read = sourcesOf(asked);
  const counts = join(
    read.map((name) => {
      const is_set = sql`t.${raw(name)} is not null`;
      return (counted as readonly string[]).includes(name)
        ? is_set
        : sql`t.currency = ${program.currency} and ${is_set}`;
    }),
    ' or ',
  );
  const value = metric(kind.measures, order.metric, program.currency);
  const of_spans = levelsOf(covered.ranges).map(
    (level) => sql`
      select ${windowOf(covered)}, t.key_id, t.currency, ${join(read.map((name) => sql`t.${raw(name)}::bigint`))}
      from program.report_total t
      where ${isIn(tx, asked, kind.dimension, level)} and (${counts})`,
  );
  const of_loose = sql`
    select t.w, k.id, t.currency, ${join(read.map((name) => sql`t.${raw(name)}`))}
    from loose t join loose_key k on k.key = t.key
    where ${counts}`;
  return sql`
    select c.w, c.key_id, ${value}
    from (${join([...of_spans, of_loose], ' union all ')}) as c (w, key_id, currency, ${join(read.map((name) => raw(name)))})
    group by 1, 2
    having ${value} > 0`;
}

/** The value of the last row that is shown: null where there are fewer. */
const leastOf =
  (limit: number) =>
  (nth: number): Sql =>
    sql`select ${nth}::integer as w, (select r.value from ranked r where r.w = ${nth} order by r.value desc offset ${limit - 1} limit 1) as value`;

/** Rows with the same value are in the order of their keys, which are looked up for those alone that may be shown. */
const topOf =
  (tx: Tx, { program, kind }: Asked, limit: number) =>
  (nth: number): Sql =>
    sql`(
    select ${nth}::integer as w, r.key_id, r.key, row_number() over (order by r.value desc, r.key collate "C") as place
    from (
      select
        r.key_id, r.value,
        case
          when r.key_id < 0 then (select l.key from loose_key l where l.id = r.key_id)
          else (
            select k.key
            from program.report_key k
            where k.organization_id = ${tx.organization_id} and k.program_id = ${program.id} and k.dimension = ${kind.dimension} and k.id = r.key_id
          )
        end as key
      from ranked r
      where r.w = ${nth} and r.value >= (select l.value from least l where l.w = ${nth})
    ) r
    order by place
    limit ${limit}
  )`;

/** All that counts for the rows that are shown: sums by the numbers of their keys, and what is in no sum. */
function shownFacts(tx: Tx, asked: Asked, covered: Cover): Sql {
  const keys = sql`array(select distinct s.key from shown s)`;
  const of_edges = covered.edges.map((edge) => fromEdge(tx, asked, asked.kind.dimension, edge, { keys }));
  const of_spans = levelsOf(covered.ranges).map(
    (level) => sql`
      select ${windowOf(covered)} as w, t.*
      from program.report_total t
      where ${isIn(tx, asked, asked.kind.dimension, level)} and t.key_id = any(array(select s.key_id from shown s))`,
  );
  const measured = (alias: string): Sql =>
    join([...counted, ...fact_measures.added].map((name) => sql`${raw(`${alias}.${name}`)}::bigint`));
  return sql`
    select t.w, s.key, t.currency, ${measured('t')}
    from (${join(of_spans, ' union all ')}) t
    join shown s on s.w = t.w and s.key_id = t.key_id
    union all
    select l.w, l.key, l.currency, ${measured('l')}
    from (${join([sql`select * from note`, ...of_edges], ' union all ')}) as l (w, key, currency, ${columns})
    join shown s on s.w = l.w and s.key = l.key`;
}
