import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Asked } from './asked.ts';
import type { Dimension } from './dimension.ts';
import { coverOf, facts, fromEdge, fromNotes, isKeyOf, spanRows } from './facts.ts';
import { fact_columns, fact_measures } from './metric.ts';
import type { Cover } from './span.ts';
import { answer, byCurrency, columnsOf, metric, sourcesOf } from './statement.ts';

const columns = columnsOf(fact_measures);

/** The dimensions that may have very many keys. */
const long: readonly string[] = ['partner_id', 'link_id', 'landing_page', 'customer_id'] satisfies Dimension[];
const most_shown = 1_000;

/** A request whose rows have an order. */
type Ordered = Asked & { order: NonNullable<Asked['order']> };

/** Keys that may turn out to have nothing at all, so that others are shown instead. */
const candidatesOf = ({ order }: Ordered): number => order.limit + 20 + Math.ceil(order.limit / 4);

/**
 * A report that shows the first of many keys. It ranks the keys by the metric alone, reads all metrics of those that it may show, and takes the
 * totals from the sums of everything together. Keys with nothing at all are found out last: in the rare case that there are many of them the reply
 * is not whole, and `reportStatement` has to be run.
 * @returns undefined where that is so from the beginning
 */
export function topStatement(tx: Tx, asked: Asked): Sql | undefined {
  const { kind, filters, bounds, order } = asked;
  if (!asked.is_summed || kind.key !== kind.dimension || !long.includes(kind.dimension)) return undefined;
  if (!order || order.limit > most_shown || Object.keys(filters).length > 0) return undefined;
  const covered = coverOf(asked, kind.dimension);
  if (covered === undefined) return undefined;
  const windows = bounds.slice(1).map((_, before) => before + 1);
  const everything: Asked = { ...asked, kind: { ...kind, dimension: '' } };
  const ordered: Ordered = { ...asked, order };
  return sql`
    with loose (w, key, currency, ${columns}) as materialized (${looseFacts(tx, asked, covered)}),
    loose_key as materialized (${keysOfLoose(tx, asked)}),
    facts (w, key, currency, ${columns}) as (${facts(tx, everything)}),
    total (w, key, currency, ${columns}) as materialized (${byCurrency(fact_measures, sql`facts`)}),
    ranked (w, key_id, value) as materialized (${ranked(tx, ordered, covered)}),
    candidate as materialized (${join(windows.map(firstOf(tx, ordered)), ' union all ')}),
    candidate_fact (w, key, currency, ${columns}) as (${candidateFacts(tx, asked, covered)}),
    by_currency (w, key, currency, ${columns}) as materialized (${byCurrency(fact_measures, sql`candidate_fact`)}),
    ${answer(asked, sql`total`, isWhole(ordered, windows))}`;
}

/** A window is whole where as many of its candidates as may be shown have something, or where it has no other keys. */
function isWhole(asked: Ordered, windows: number[]): Sql {
  const each = windows.map(
    (w) => sql`(
      (select count(*) from by_key k where k.w = ${w}) >= ${asked.order.limit}
      or (select count(*) from candidate c where c.w = ${w}) < ${candidatesOf(asked)}
    )`,
  );
  return sql`(select ${join(each, ' and ')})`;
}

/** Builds the rows that are in no sum: those not folded yet, and the facts where no span fits. */
const looseFacts = (tx: Tx, asked: Asked, covered: Cover): Sql =>
  join(
    [fromNotes(tx, asked, covered), ...covered.edges.map((edge) => fromEdge(tx, asked, asked.kind.dimension, edge))],
    ' union all ',
  );

/** The numbers of the keys of what is in no sum. Those that no sum has had yet have negative ones. */
const keysOfLoose = (tx: Tx, asked: Asked): Sql => sql`
  select l.key, coalesce(k.id, - row_number() over ()) as id
  from (select distinct l.key from loose l) l
  left join lateral (
    select k.id
    from program.report_key k
    where ${isKeyOf(tx, asked, asked.kind.dimension)} and k.key = l.key
    limit 1
  ) k on true`;

/** The value of each key. */
function ranked(tx: Tx, asked: Ordered, covered: Cover): Sql {
  const { kind, program, order } = asked;
  const read = sourcesOf(order.metric);
  return sql`
    select c.w, c.key_id, ${metric(kind.measures, order.metric, program.currency)}
    from (
      select t.w, t.key_id, t.currency, ${join(read.map((name) => sql`t.${raw(name)}::bigint`))}
      from (${spanRows(tx, asked, kind.dimension, covered, sql`true`)}) t
      union all
      select t.w, k.id, t.currency, ${join(read.map((name) => sql`t.${raw(name)}`))}
      from loose t
      join loose_key k on k.key = t.key
    ) as c (w, key_id, currency, ${join(read.map((name) => raw(name)))})
    group by 1, 2`;
}

/** The first keys of a window. Those with the same value are in the order of their keys, which are looked up for those alone that may be among them. */
const firstOf =
  (tx: Tx, asked: Ordered) =>
  (nth: number): Sql => {
    const { descending } = asked.order;
    const most = candidatesOf(asked);
    const direction = raw(descending ? 'desc' : 'asc');
    return sql`(
    select ${nth}::integer as w, r.key_id, r.key
    from (
      select
        r.key_id, r.value,
        case
          when r.key_id < 0 then (select l.key from loose_key l where l.id = r.key_id)
          else (select k.key from program.report_key k where ${isKeyOf(tx, asked, asked.kind.dimension)} and k.id = r.key_id)
        end as key
      from ranked r
      where r.w = ${nth} and r.value ${raw(descending ? '>=' : '<=')} (
        select ${raw(descending ? 'min' : 'max')}(l.value)
        from (select l.value from ranked l where l.w = ${nth} order by l.value ${direction} limit ${most}) l
      )
    ) r
    order by r.value ${direction}, r.key collate "C"
    limit ${most}
  )`;
  };

/** All that counts for the candidates: sums by the numbers of their keys, and what is in no sum. */
function candidateFacts(tx: Tx, asked: Asked, covered: Cover): Sql {
  const are_candidates = sql`t.key_id = any(array(select c.key_id from candidate c))`;
  const measured = (alias: string): Sql => join(fact_columns.map((name) => sql`${raw(`${alias}.${name}`)}::bigint`));
  return sql`
    select t.w, c.key, t.currency, ${measured('t')}
    from (${spanRows(tx, asked, asked.kind.dimension, covered, are_candidates)}) t
    join candidate c on c.w = t.w and c.key_id = t.key_id
    union all
    select l.w, l.key, l.currency, ${measured('l')}
    from loose l
    join candidate c on c.w = l.w and c.key = l.key`;
}
