import sql, { join, raw, type Sql } from 'sql-template-tag';
import { isCanceled } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Program, programs } from '../programs/program.ts';
import type { Asked, Read } from './asked.ts';
import type { Filters } from './dimension.ts';
import type { Kind } from './kind.ts';
import type { Metric, Totals } from './metric.ts';
import { reportStatement } from './statement.ts';
import { topStatement } from './top.ts';
import { type Interval, type Interval_, intervalsOf, type Window, type Windows } from './window.ts';

export interface Rows {
  totals: Totals & { other_currencies: Record<string, unknown>[] };
  rows: Record<string, unknown>[];
}

export interface Options {
  kind: Kind;
  filters: Filters;
  windows: Windows;
  timezone: string;
  interval: Interval;
  metric: Metric | undefined;
  descending: boolean;
  limit: number;
}

/** The memory of each sort and each sum of a report. To compile a statement (`jit`) takes longer than to run it. */
const work_mem = '64MB';
/** The time limit of a statement of a report: less than a request has, so that the answer names the remedy. */
export const statement_s = 9;

/**
 * A report's rows and totals, and those of the window before where it is asked for.
 * @param tx sees one state of the database
 * @throws Problem invalid_parameter where a statement takes too long
 */
export async function readReport(
  tx: Tx,
  program: Program,
  options: Options,
): Promise<{ current: Rows; previous: Rows | undefined }> {
  const summed = await tx.one<Pick<Asked, 'is_summed' | 'slices'>>(sql`
    select t.reports_ready as is_summed, set_config('work_mem', ${work_mem}, true), set_config('jit', 'off', true),
      set_config('statement_timeout', ${`${statement_s}s`}, true),
      (
        select coalesce(json_object_agg(s.dimension || ' ' || s.minutes, s.id), '{}')
        from program.report_slice s
        where s.organization_id = ${tx.organization_id} and s.program_id = t.id
      ) as slices
    from ${programs.from}
    where ${tenant(tx)} and t.id = ${program.id}`);
  const base = { program, ...summed, kind: options.kind, filters: options.filters };
  try {
    return await (options.kind.key === 'period' ? readOverview(tx, base, options) : readKeys(tx, base, options));
  } catch (error) {
    if (isCanceled(error)) throw tooLong();
    throw error;
  }
}

const tooLong = (): Problem =>
  new Problem(
    'invalid_parameter',
    `The report takes longer than ${statement_s} seconds. Use a shorter window ('from' and 'to'), or remove filters.`,
    { param: 'from' },
  );

type Base = Pick<Asked, 'program' | 'is_summed' | 'slices' | 'kind' | 'filters'>;

async function readKeys(tx: Tx, base: Base, { kind, windows, metric, descending, limit }: Options) {
  const { current, previous } = windows;
  const order = { metric: metric ?? kind.default_sort, descending: metric === undefined || descending, limit };
  const read = await readRows(tx, {
    ...base,
    bounds: [...(previous ? [previous.from] : []), current.from, current.to],
    previous_windows: previous ? 1 : 0,
    order,
  });
  const labels = await labelsOf(tx, kind, read);
  const rowsOf = (side: number): Record<string, unknown>[] =>
    read
      .filter((row) => !row.is_total && row.side === side)
      .map((row) => ({ ...keyed(kind, row.key, labels), ...shown(kind, row), other_currencies: othersOf(row) }));
  return {
    current: { totals: totalsOf(kind, read, 1), rows: rowsOf(1) },
    previous: previous && { totals: totalsOf(kind, read, 0), rows: rowsOf(0) },
  };
}

async function readRows(tx: Tx, asked: Asked): Promise<Read[]> {
  const top = topStatement(tx, asked);
  const first = top && (await withoutNestedLoops(tx, () => tx.all<Read>(top)));
  if (first?.every(({ is_whole }) => is_whole)) return first;
  const read = () => tx.all<Read>(reportStatement(tx, asked));
  const reads_all_sums = asked.is_summed && Object.keys(asked.filters).length === 0;
  return reads_all_sums ? withoutNestedLoops(tx, read) : read();
}

/**
 * Runs a statement without nested loops. Postgres does not know how many keys have sums, takes them for a few, and would compare each with each. The
 * three statements are sent at once, and run one after the other.
 * @param read sends one statement, and before it waits
 */
async function withoutNestedLoops<T>(tx: Tx, read: () => Promise<T>): Promise<T> {
  const set = (value: 'on' | 'off') => tx.all(sql`select set_config('enable_nestloop', ${value}, true)`);
  const [, found] = await Promise.all([set('off'), read(), set('on')]);
  return found;
}

/** An overview has a row for each interval, also where nothing happened. */
async function readOverview(tx: Tx, base: Base, options: Options) {
  const { kind, windows, interval, timezone } = options;
  const { current, previous } = windows;
  const before = previous ? await intervalsOf(tx, previous, interval, timezone) : [];
  const now = await intervalsOf(tx, current, interval, timezone);
  const bounds = boundsOf(before, now, windows);
  const asked: Asked = { ...base, bounds, previous_windows: before.length, order: undefined };
  const read = await tx.all<Read>(reportStatement(tx, asked));
  const by_window = new Map(read.filter((row) => !row.is_total).map((row) => [row.nth, row]));
  const rowsOf = (intervals: Interval_[], offset: number) =>
    sorted(
      intervals.map((one, index) => {
        const row = by_window.get(offset + index + 1);
        return { ...one, ...shown(kind, row), other_currencies: othersOf(row) };
      }),
      options,
    );
  return {
    current: { totals: totalsOf(kind, read, 1), rows: rowsOf(now, before.length) },
    previous: previous && { totals: totalsOf(kind, read, 0), rows: rowsOf(before, 0) },
  };
}

/** The beginning of each interval, and the end of the last. An empty window has none: its bounds are equal. */
function boundsOf(before: Interval_[], now: Interval_[], { current, previous }: Windows): string[] {
  const starts = [...before, ...now].map(({ from }) => from);
  return starts.length > 0
    ? [...starts, current.to]
    : [(previous as Window | undefined)?.from ?? current.from, current.to];
}

/** In the order of time, unless the query says otherwise. */
function sorted<Row extends object>(rows: Row[], { metric, descending, limit }: Options): Row[] {
  if (metric === undefined) return rows.slice(0, limit);
  const value = (row: Row): number => (row as Record<string, number>)[metric] as number;
  return rows.toSorted((a, b) => (descending ? value(b) - value(a) : value(a) - value(b))).slice(0, limit);
}

/** The metrics of a report, 0 where there is nothing. */
const shown = (kind: Kind, row: Partial<Read> | undefined): Totals =>
  Object.fromEntries(kind.metrics.map((name) => [name, row?.[name] ?? 0]));

const othersOf = (row: Pick<Read, 'other_currencies'> | undefined): Read['other_currencies'] =>
  (row?.other_currencies ?? []).toSorted((a, b) => (a.currency < b.currency ? -1 : 1));

function totalsOf(kind: Kind, read: Read[], side: number): Rows['totals'] {
  const totals = read.find((row) => row.is_total && row.side === side);
  return { ...shown(kind, totals), other_currencies: othersOf(totals) };
}

/** A deleted row stays, with the status that it had. */
const label = (field: string): Sql =>
  field === 'status'
    ? sql`case when t.deleted_at is null then t.status else 'deleted' end as status`
    : raw(`t.${field}`);

type Labels = Map<string, Record<string, unknown>>;

async function labelsOf(tx: Tx, { labels }: Kind, read: Read[]): Promise<Labels> {
  const keys = [...new Set(read.filter(({ is_total }) => !is_total).map(({ key }) => key))];
  if (!labels || keys.length === 0) return new Map();
  const found = await tx.all<{ id: string }>(sql`
    select t.id, ${join(labels.fields.map(label))}
    from ${raw(labels.table)} t
    where t.organization_id = ${tx.organization_id} and t.id = any(${keys})`);
  return new Map(found.map(({ id, ...fields }) => [id, fields]));
}

/** Returns the key of a row, and its labels. */
function keyed({ key: name, labels: { fields } = { table: '', fields: [] } }: Kind, key: string, labels: Labels) {
  const nothing = Object.fromEntries(fields.map((field) => [field, null]));
  return { [name]: key === '' ? null : key, ...nothing, ...labels.get(key) };
}
