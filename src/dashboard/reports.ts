/** Reports: a window of time with its plot, its rows, what changed since the window before, and the way into each row. */

import { Problem } from '../core/values/problem.ts';
import { money, number, periodText, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { plot } from '../pages/plot.ts';
import { table } from '../pages/table.ts';
import { filter_names } from '../program/reports/report.ts';
import { schemaOf } from './catalog.ts';
import { queryOf } from './list_page.ts';
import { hrefOf } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

type Numbers = Record<string, number>;
type Row = Record<string, unknown>;

interface Report {
  report: string;
  currency: string;
  totals: Numbers;
  rows: Row[];
  delta?: Record<string, { change?: number; change_bps?: number | null; [name: string]: unknown }>;
  drill_down_config: { field: string; filter_type: string; value_prop: string; list: string };
}

const day_ms = 86_400_000;
const shown_rows = 200;

/** The window of the page, in days of UTC: the last thirty unless it is said. The day that is named last belongs to it. */
function windowOf(query: Record<string, string>): { from: string; to: string; first: string; last: string } {
  const today = new Date().toISOString().slice(0, 10);
  const isDay = (text: string | undefined): text is string => text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text);
  const last = isDay(query.last) ? query.last : today;
  const first = isDay(query.first) ? query.first : new Date(Date.parse(last) - 29 * day_ms).toISOString().slice(0, 10);
  const end = new Date(Date.parse(last) + day_ms);
  return {
    first,
    last,
    from: `${first}T00:00:00Z`,
    to: Number.isNaN(end.getTime()) ? `${last}T00:00:00Z` : end.toISOString(),
  };
}

export async function reportsPage(visit: DashboardVisit) {
  const query = queryOf(visit.request.query);
  const { first, last, from, to } = windowOf(query);
  const operation = visit.catalog.operations.get('reports.get');
  const names = (operation && schemaOf(operation, 'params').properties?.report?.enum) ?? [];
  const report = names.includes(query.report) ? (query.report as string) : 'overview';
  const interval = ['day', 'week', 'month'].includes(query.interval ?? '') ? (query.interval as string) : 'day';
  const filters = Object.fromEntries(
    filter_names.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])),
  ) as Record<string, string>;
  const { answer, chosen } = await readPage(visit, async (use, { program_id }) => ({
    answer:
      program_id === undefined
        ? undefined
        : ((await use('reports.get', {
            params: { report },
            query: {
              program_id,
              from,
              to,
              interval,
              limit: report === 'overview' ? undefined : shown_rows,
              ...filters,
            },
          }).catch((error) => {
            if (error instanceof Problem && error.status === 400) return error;
            throw error;
          })) as Report | Problem),
  }));
  const choosing = html`<form class="inline" action="/dashboard/reports">
<div class="field"><label for="report">Report</label><select id="report" name="report">${names.map((name) => html`<option value="${name}"${name === report && html` selected`}>${words(String(name))}</option>`)}</select></div>
<div class="field"><label for="first">From</label><input id="first" name="first" type="date" value="${first}"></div>
<div class="field"><label for="last">To, inclusive</label><input id="last" name="last" type="date" value="${last}"></div>
<div class="field"><label for="interval">By</label><select id="interval" name="interval">${['day', 'week', 'month'].map((one) => html`<option${one === interval && html` selected`}>${one}</option>`)}</select></div>
${Object.entries(filters).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<button>Show</button></form>`;
  const narrowed = Object.entries(filters).map(([name, value]) => `${words(name)}: ${value}`);
  const query_here = { report, first, last, interval };
  const body =
    answer instanceof Problem
      ? notice(answer.message, true)
      : answer
        ? drawn(visit, answer, { ...query_here, ...filters }, { from, to })
        : html`<p class="none">There is no program yet.</p>`;
  const content = html`${choosing}${narrowed.length > 0 && html`<p>${narrowed.join(' · ')} <a href="/dashboard/reports?${new URLSearchParams(query_here)}">Clear</a></p>`}${body}
<p class="hint">Days are those of UTC.</p>`;
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
        ? `${value / 100} %`
        : number(value, reader);
  const metrics = Object.keys(report.totals).filter((name) => typeof report.totals[name] === 'number');
  const main = metrics.includes('revenue_minor')
    ? 'revenue_minor'
    : (metrics.find((name) => name.endsWith('_minor')) ?? (metrics[0] as string));
  const key = keyOf(report);
  const cards = metrics.map(
    (name) =>
      html`<li class="card"><strong>${shown(name, report.totals[name] as number)}</strong>${words(name)}${changeOf(report, name)}</li>`,
  );
  const columns = [
    { title: words(key), cell: (row: Row) => drilled(visit, report, row, key, query, window) },
    ...metrics.map((name) => ({
      title: words(name),
      is_number: true,
      cell: (row: Row) => (typeof row[name] === 'number' ? shown(name, row[name] as number) : '–'),
    })),
  ];
  const csv = new URLSearchParams({ report: report.report, ...window, ...filtersIn(query), format: 'csv' });
  return html`<ul class="cards">${cards}</ul>
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

function changeOf({ delta }: Report, name: string): Html | false {
  const change = Object.entries(delta?.[name] ?? {}).find(
    ([key, value]) => key.endsWith('_bps') && typeof value === 'number',
  )?.[1] as number | undefined;
  return (
    change !== undefined &&
    html`<span class="hint"> ${change > 0 && '+'}${(change / 100).toFixed(1)} % against the window before</span>`
  );
}

const names_of_rows = ['handle', 'name', 'code', 'url'];

/** A row leads to its own report by day, and its records to their list. */
function drilled(
  { catalog }: DashboardVisit,
  report: Report,
  row: Row,
  key: string,
  query: Record<string, string>,
  window: { from: string; to: string },
): Html {
  const { filter_type, list } = report.drill_down_config;
  const value = row[key] === null ? 'none' : String(row[key]);
  const name =
    names_of_rows.map((one) => row[one]).find((one) => typeof one === 'string') ?? (row[key] === null ? 'None' : value);
  const inside = new URLSearchParams({ ...query, report: 'overview', [filter_type]: value });
  const records = new URLSearchParams({ ...filtersIn(query), [filter_type]: value, ...window });
  const href = hrefOf(catalog, value);
  return html`${report.report === 'overview' || report.report === 'payouts' ? name : html`<a href="/dashboard/reports?${inside}">${name}</a>`} <a class="hint" href="/dashboard/${list}?${records}">${list}</a>${href && html` <a class="hint" href="${href}">record</a>`}`;
}
