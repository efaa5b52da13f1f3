/** Reports: a window of time with its plot, its rows, what changed since the window before, and the way into each row. */

import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { databaseTime } from '../core/values/clock.ts';
import { Problem } from '../core/values/problem.ts';
import { dayText, money, number, percentage, periodText, type Reader, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { plot } from '../pages/plot.ts';
import { problemOfInput } from '../pages/run.ts';
import { table } from '../pages/table.ts';
import { filter_names } from '../program/reports/report.ts';
import { listTitle, schemaOf } from './catalog.ts';
import { queryOf } from './list_page.ts';
import { withNames } from './named.ts';
import { noProgram } from './none_yet.ts';
import { hrefOf, shown } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

type Numbers = Record<string, number>;
type Row = Record<string, unknown>;

interface Report {
  report: string;
  currency: string;
  totals: Numbers;
  rows: Row[];
  previous_period?: { from: string; to: string };
  delta?: Record<string, { absolute?: number; absolute_minor?: number; change_bps: number | null }>;
  drill_down_config: { field: string; filter_type: string; value_prop: string; list: string };
}

const day_ms = 86_400_000;
const shown_rows = 200;

interface Window {
  from: string;
  to: string;
  /** As the fields of the page have them. */
  first: string;
  last: string;
  /** The problem of one of the fields, by its name. */
  wrong?: { name: string; message: string };
}

/** The window of the page, in days of UTC: the last thirty unless it is said. The day that is named last belongs to it. */
function windowOf(query: Record<string, string>): Window {
  const today = new Date(databaseTime()).toISOString().slice(0, 10);
  const last = query.last ?? today;
  const end = isDay(last) ? last : today;
  const first = query.first ?? new Date(Date.parse(end) - 29 * day_ms).toISOString().slice(0, 10);
  const not_a_day = [
    { name: 'first', value: first },
    { name: 'last', value: last },
  ].find(({ value }) => !isDay(value));
  const wrong = not_a_day
    ? { name: not_a_day.name, message: 'Choose a day, such as 2026-01-31.' }
    : first > last
      ? { name: 'last', message: 'Choose the same day as in “From”, or a later one.' }
      : undefined;
  const to = new Date(Date.parse(end) + day_ms).toISOString();
  return { first, last, from: `${first}T00:00:00Z`, to, ...(wrong ? { wrong } : {}) };
}

/** Returns whether a text is a day that there is, of a year with four digits. */
const isDay = (text: string): boolean => {
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined;
  return at !== undefined && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text) && text < '9999-12-31';
};

export async function reportsPage(visit: DashboardVisit) {
  const query = queryOf(visit.request.query);
  const { first, last, from, to, wrong } = windowOf(query);
  const operation = visit.catalog.operations.get('reports.get');
  const names = (operation && schemaOf(operation, 'params').properties?.report?.enum) ?? [];
  const report = names.includes(query.report) ? (query.report as string) : 'overview';
  const interval = ['day', 'week', 'month'].includes(query.interval ?? '') ? (query.interval as string) : 'day';
  const filters = Object.fromEntries(
    filter_names.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])),
  ) as Record<string, string>;
  const { answer, of, chosen } = await readPage(visit, async (use, { program_id }, tx) => {
    const [of] = await withNames(visit, use, [filters], program_id);
    if (program_id === undefined || wrong) return { answer: undefined, of };
    const window = { program_id, from, to, interval, limit: report === 'overview' ? undefined : shown_rows };
    const answer: Report | Problem = await use('reports.get', {
      params: { report },
      query: { ...window, ...filters },
    }).catch(problemOfInput);
    return { answer: answer instanceof Problem ? answer : await withRowNames(tx, answer, visit.reader), of };
  });
  const errors: Record<string, string> = wrong
    ? { [wrong.name]: wrong.message }
    : answer instanceof Problem
      ? { last: answer.message.replace("'interval'", '“By”') }
      : {};
  const said = (name: string) =>
    errors[name] !== undefined && html` aria-invalid="true" aria-describedby="${name}-error"`;
  const error = (name: string) =>
    errors[name] !== undefined && html`<p class="error" id="${name}-error">${errors[name]}</p>`;
  const choosing = html`<form class="inline" action="/dashboard/reports">
<div class="field"><label for="report">Report</label><select id="report" name="report">${names.map((name) => html`<option value="${name}"${name === report && html` selected`}>${words(String(name))}</option>`)}</select></div>
<div class="field"><label for="first">From</label><input id="first" name="first" type="date" value="${first}"${said('first')}>${error('first')}</div>
<div class="field"><label for="last">To, inclusive</label><input id="last" name="last" type="date" value="${last}"${said('last')}>${error('last')}</div>
<div class="field"><label for="interval">By</label><select id="interval" name="interval">${['day', 'week', 'month'].map((one) => html`<option${one === interval && html` selected`}>${one}</option>`)}</select></div>
${Object.entries(filters).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<button>Show</button></form>`;
  const narrowed = Object.entries(filters).map(
    ([name, value], nth) =>
      html`${nth > 0 && ' · '}${words(name.replace(/_id$/, ''))}: ${shown(visit, name, value, of as Row)}`,
  );
  const query_here = { report, first, last, interval };
  const body =
    wrong || answer instanceof Problem
      ? false
      : answer
        ? drawn(visit, answer, { ...query_here, ...filters }, { from, to })
        : noProgram(visit);
  const content = html`${choosing}${narrowed.length > 0 && html`<p>${narrowed} <a href="/dashboard/reports?${new URLSearchParams(query_here)}">Clear</a></p>`}${body}
<p class="hint">Days are those of UTC. EPC: earnings per click, the commissions divided by the clicks.</p>`;
  return { title: 'Reports', content, chosen };
}

function drawn(
  visit: DashboardVisit,
  report: Report,
  query: Record<string, string>,
  window: { from: string; to: string },
): Html {
  const { reader } = visit;
  const shown = (name: string, value: number): string =>
    name.endsWith('_minor')
      ? money(value, report.currency, reader)
      : name.endsWith('_bps')
        ? percentage(value, reader)
        : number(value, reader);
  const metrics = Object.keys(report.totals).filter((name) => typeof report.totals[name] === 'number');
  const main = metrics.includes('revenue_minor')
    ? 'revenue_minor'
    : (metrics.find((name) => name.endsWith('_minor')) ?? (metrics[0] as string));
  const key = keyOf(report);
  const cards = metrics.map(
    (name) =>
      html`<li class="card"><strong>${shown(name, report.totals[name] as number)}</strong>${words(name)}${changeOf(report, name, shown)}</li>`,
  );
  const columns = [
    { title: words(key.replace(/_id$/, '')), cell: (row: Row) => drilled(visit, report, row, key, query, window) },
    ...metrics.map((name) => ({
      title: words(name),
      is_number: true,
      cell: (row: Row) => (typeof row[name] === 'number' ? shown(name, row[name] as number) : '–'),
    })),
  ];
  const csv = new URLSearchParams({ report: report.report, ...window, ...filtersIn(query), format: 'csv' });
  const { previous_period: before } = report;
  const last = before && new Date(Date.parse(before.to) - day_ms).toISOString();
  return html`<ul class="cards">${cards}</ul>
${before && html`<p class="hint">Before: ${dayText(before.from, reader)} to ${dayText(String(last), reader)}</p>`}
${
  key === 'period' &&
  plot(
    words(main),
    report.rows.map((row) => ({ label: periodText(String(row.period), reader), value: Number(row[main] ?? 0) })),
    (value) => shown(main, value),
  )
}
${table('Rows of the report', columns, report.rows.slice(0, shown_rows), 'Nothing happened in this window. Choose another one.')}
<p class="pages"><a href="/dashboard/file/reports.get?${csv}">All rows as CSV</a></p>`;
}

const filtersIn = (query: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(query).filter(([name]) => filter_names.includes(name)));

/** The property of a row that names it. */
const keyOf = ({ drill_down_config: { value_prop } }: Report): string => value_prop;

/** The value of the window before, and the change since. */
function changeOf(
  { delta, totals }: Report,
  name: string,
  shown: (name: string, value: number) => string,
): Html | false {
  const { change_bps, absolute, absolute_minor } = delta?.[name] ?? {};
  const difference = absolute_minor ?? absolute;
  if (difference === undefined) return false;
  const change =
    typeof change_bps === 'number' && change_bps !== 0
      ? ` (${change_bps > 0 ? '+' : ''}${(change_bps / 100).toFixed(1)} %)`
      : '';
  return html`<span class="hint"> ${shown(name, (totals[name] as number) - difference)} before${change}</span>`;
}

/** Customers and batches have no name in a report: they are named by their address, and by their day. */
async function withRowNames(tx: Tx, report: Report, reader: Reader): Promise<Report> {
  const ids = report.rows.map((row) => row[keyOf(report)]).filter((id) => typeof id === 'string');
  const of = (
    {
      customers: sql`select t.id, t.email as name from program.customer t`,
      payouts: sql`select t.id, t.created_at as name from program.payout_batch t`,
    } as Record<string, Sql>
  )[report.report];
  if (of === undefined || ids.length === 0) return report;
  const found = await tx.all<{ id: string; name: string | null }>(
    sql`${of} where t.organization_id = ${tx.organization_id} and t.id = any(${ids})`,
  );
  const names = new Map(
    found.map(({ id, name }) => [id, name !== null && isDay(name.slice(0, 10)) ? dayText(name, reader) : name]),
  );
  return { ...report, rows: report.rows.map((row) => ({ ...row, name: names.get(String(row[keyOf(report)])) })) };
}

const names_of_rows = ['handle', 'name', 'code', 'url'];

/** A row leads to its own report by day, and its records to their list. */
function drilled(
  visit: DashboardVisit,
  report: Report,
  row: Row,
  key: string,
  query: Record<string, string>,
  window: { from: string; to: string },
): Html {
  const { filter_type, list } = report.drill_down_config;
  const { reader } = visit;
  const value = row[key] === null ? 'none' : String(row[key]);
  const name =
    names_of_rows.map((one) => row[one]).find((one) => typeof one === 'string') ??
    (row[key] === null ? 'None' : key === 'period' ? periodText(value, reader) : value);
  const inside = new URLSearchParams({ ...query, report: 'overview', [filter_type]: value });
  const records = new URLSearchParams({ ...filtersIn(query), [filter_type]: value, ...window });
  const href = hrefOf(visit.catalog, value);
  return html`${report.report === 'overview' || report.report === 'payouts' ? name : html`<a href="/dashboard/reports?${inside}">${name}</a>`} <a class="hint" href="/dashboard/${list}?${records}">${listTitle(list)}</a>${href && html` <a class="hint" href="${href}">Details</a>`}`;
}
