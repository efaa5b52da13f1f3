import { formatMoney } from '../../program/payouts/money_text.ts';
import { type Kind, kinds } from '../../program/reports/kind.ts';
import type { Metric } from '../../program/reports/metric.ts';
import type { ReportReply } from '../../program/reports/report.ts';
import { bar, changeText, narrowed, sparkline } from '../../program/reports/summary/chart.ts';
import { table } from '../output/table.ts';

const bar_width = 24;
const most_columns = 60;

/** The metrics of each row on a terminal; the rest is in --csv and --json. */
const shown: Metric[] = [
  ...(['clicks', 'customers', 'conversion_bps', 'sales', 'revenue_minor', 'refunds_minor'] as const),
  ...(['commissions_minor', 'paid_minor', 'payouts', 'pending_minor', 'processing_minor', 'failed_minor'] as const),
];
const sparks: Metric[] = ['clicks', 'sales', 'revenue_minor', 'commissions_minor'];

/**
 * A report for people: what it is of, its totals with their change, sparklines of an overview, and its rows with bars.
 * @param sort what the rows were asked to be ordered by
 */
export function linesOf(found: ReportReply, sort: string | undefined): string[] {
  const kind: Kind = kinds[found.report];
  return [
    `${found.report} of ${found.program_id}, ${local(found.from, found)} to ${local(found.to, found)} (${found.timezone})`,
    '',
    ...totalLines(found),
    '',
    ...(kind.key === 'period' ? [...sparkLines(found), ''] : []),
    ...rowLines(found, kind, sort?.replace(/^-/, '') as Metric | undefined),
    ...otherLines(found),
  ];
}

const local = (at: string, { timezone }: ReportReply): string =>
  new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short', timeStyle: 'short' }).format(new Date(at));

function totalLines({ totals, delta, currency }: ReportReply): string[] {
  const rows = shown
    .filter((name) => totals[name] !== undefined)
    .map((name) => [
      nameOf(name),
      cellOf(name, totals[name] ?? 0, currency),
      delta?.[name] ? changeText(delta[name].change_bps) : '',
    ]);
  return table(['TOTAL', '', 'CHANGE'], rows, '');
}

function sparkLines({ rows }: ReportReply): string[] {
  if (rows.length < 2) return [];
  const in_time = rows.toSorted((a, b) => Date.parse(a.from ?? '') - Date.parse(b.from ?? ''));
  const width = Math.max(...sparks.map((name) => nameOf(name).length));
  return sparks.map((name) => {
    const values = in_time.map((row) => row[name] ?? 0);
    return `${nameOf(name).padEnd(width)}  ${sparkline(narrowed(values, most_columns))}`;
  });
}

function rowLines({ rows, totals, currency }: ReportReply, kind: Kind, sorted_by: Metric | undefined): string[] {
  const pictured = sorted_by ?? kind.default_sort;
  const metrics = [...new Set([...shown, pictured])].filter((name) => totals[name] !== undefined);
  const most = Math.max(0, ...rows.map((row) => row[pictured] ?? 0));
  const names = [kind.key, ...(kind.labels?.fields ?? [])].slice(0, 2);
  const cells = rows.map((row) => [
    ...names.map((name) => String((row as Record<string, unknown>)[name] ?? 'none').slice(0, 48)),
    ...metrics.map((name) => cellOf(name, row[name] ?? 0, currency)),
    bar(row[pictured] ?? 0, most, bar_width),
  ]);
  const head = [...names.map((name) => name.toUpperCase()), ...metrics.map((name) => nameOf(name).toUpperCase())];
  return table([...head, ''], cells, 'Nothing happened in this window.');
}

function otherLines({ totals }: ReportReply): string[] {
  const { other_currencies } = totals;
  if (other_currencies.length === 0) return [];
  return ['', `Not included: money in ${other_currencies.map(({ currency }) => currency).join(', ')} (see --json).`];
}

const nameOf = (name: Metric): string => name.replace(/_(minor|bps)$/, '').replaceAll('_', ' ');

function cellOf(name: Metric, value: number, currency: string): string {
  if (name.endsWith('_minor')) return formatMoney(value, currency);
  if (name.endsWith('_bps')) return `${(value / 100).toFixed(2)} %`;
  return value.toLocaleString('en');
}
