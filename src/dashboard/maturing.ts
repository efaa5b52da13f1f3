/** When commissions mature: a month of days with what will be paid of each, by currency. */
import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { databaseTime } from '../core/values/clock.ts';
import { money, number, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { table } from '../pages/table.ts';
import { queryOf } from './list_page.ts';
import { type DashboardVisit, readPage } from './visit.ts';

/** The sums of a month are of so many commissions at most, from its first day on: a page costs the same in a program of whatever size. */
const most_read = 20_000;
const day_ms = 86_400_000;

interface Sum {
  /** `2026-12-01`, of UTC. */
  day: string;
  currency: string;
  status: string;
  amount_minor: number;
  commissions: number;
}

/** The statuses of what is not paid yet. Others are read too, and count to the most that are. */
const open_statuses = new Set(['pending', 'approved', 'due', 'on_hold']);

const isMonth = (text: string | undefined): text is string =>
  text !== undefined && /^[2-9]\d{3}-(?:0[1-9]|1[0-2])$/.test(text);
const monthOf = (at: Date): string => at.toISOString().slice(0, 7);
const firstOf = (month: string, months_later = 0): Date =>
  new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)) - 1 + months_later, 1));

export async function maturingPage(visit: DashboardVisit) {
  const { month: wanted } = queryOf(visit.request.query);
  const month = isMonth(wanted) ? wanted : monthOf(new Date(databaseTime()));
  const [from, to] = [firstOf(month), firstOf(month, 1)];
  const { sums, chosen } = await readPage(visit, async (_, { program_id }, tx) => ({
    sums: program_id === undefined ? [] : await sumsOf(tx, program_id, from, to),
  }));
  const is_cut = sums.reduce((sum, { commissions }) => sum + commissions, 0) > most_read;
  const last_day = sums.at(-1)?.day;
  const open = sums.filter(({ day, status }) => open_statuses.has(status) && !(is_cut && day === last_day));
  const to_month = (months: number) => monthOf(firstOf(month, months));
  const name = new Intl.DateTimeFormat(visit.reader.language, { month: 'long', year: 'numeric', timeZone: 'UTC' });
  const content = html`<p class="pages"><a href="/dashboard/maturing?month=${to_month(-1)}">Month before</a> <a href="/dashboard/maturing?month=${to_month(1)}">Month after</a> <a href="/dashboard/commissions">All commissions</a></p>
<p>What is not paid yet, by the day on which its holding period ends. Days are those of UTC.</p>
${is_cut && notice(`More than ${number(most_read, visit.reader)} commissions mature in this month: the days from ${last_day} on are not added up. Their lists are complete.`, true)}
${totals(visit, open)}
<h2>${name.format(from)}</h2>${calendar(visit, open, { from, to }, is_cut ? last_day : undefined)}`;
  return { title: 'Maturing commissions', content, chosen };
}

/** By the index of maturity, and of the first ones alone. */
const sumsOf = (tx: Tx, program_id: string, from: Date, to: Date): Promise<Sum[]> =>
  tx.all<Sum>(sql`
    with maturing as (
      select t.mature_at, t.currency, t.status, t.amount_minor
      from program.commission t
      where t.organization_id = ${tx.organization_id} and t.program_id = ${program_id} and t.deleted_at is null
        and t.mature_at >= ${from.toISOString()}::timestamptz and t.mature_at < ${to.toISOString()}::timestamptz
      order by t.mature_at, t.id
      limit ${most_read + 1}
    )
    select
      (m.mature_at at time zone 'UTC')::date::text as day, m.currency, m.status,
      sum(m.amount_minor)::bigint as amount_minor, count(*) as commissions
    from maturing m
    group by 1, 2, 3
    order by 1, 2, 3`);

function totals(visit: DashboardVisit, sums: Sum[]): Html {
  const by = Map.groupBy(sums, ({ currency, status }) => `${currency} ${status}`);
  const rows = [...by.values()].map((those) => ({
    ...(those[0] as Sum),
    amount_minor: those.reduce((sum, one) => sum + one.amount_minor, 0),
    commissions: those.reduce((sum, one) => sum + one.commissions, 0),
  }));
  return table(
    'Totals of the month',
    [
      { title: 'Status', cell: ({ status }) => html`<span class="status">${words(status)}</span>` },
      { title: 'Currency', cell: ({ currency }) => currency },
      { title: 'Commissions', is_number: true, cell: (row) => number(row.commissions, visit.reader) },
      { title: 'Amount', is_number: true, cell: (row) => money(row.amount_minor, row.currency, visit.reader) },
    ],
    rows,
    'Nothing matures in this month that is not paid.',
  );
}

const weekdays = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

/** Weeks from Monday on. */
function calendar(
  visit: DashboardVisit,
  sums: Sum[],
  { from, to }: { from: Date; to: Date },
  cut: string | undefined,
): Html {
  const by_day = Map.groupBy(sums, ({ day }) => day);
  const before = (from.getUTCDay() + 6) % 7;
  const days = Math.round((to.getTime() - from.getTime()) / day_ms);
  const weeks = Array.from({ length: Math.ceil((before + days) / 7) }, (_, week) =>
    weekdays.map((_, nth) => week * 7 + nth - before),
  );
  const today = new Date(databaseTime()).toISOString().slice(0, 10);
  const cell = (nth: number): Html => {
    if (nth < 0 || nth >= days) return html`<td></td>`;
    const at = new Date(from.getTime() + nth * day_ms);
    const day = at.toISOString().slice(0, 10);
    const window = new URLSearchParams({
      from: at.toISOString(),
      to: new Date(at.getTime() + day_ms).toISOString(),
    });
    const amounts = amountsOf(by_day.get(day) ?? []);
    const is_linked = amounts.length > 0 || (cut !== undefined && day >= cut);
    const name = html`<time datetime="${day}">${nth + 1}</time>${day === today && html` <span class="status">today</span>`}`;
    return html`<td>${is_linked ? html`<a href="/dashboard/see/commissions.maturing?${window}">${name}</a>` : name}${amounts.map(([currency, amount_minor]) => html`<p>${money(amount_minor, currency, visit.reader)}</p>`)}${cut !== undefined && day >= cut && html`<p class="hint">not added up</p>`}</td>`;
  };
  return html`<div class="table" tabindex="0" role="region" aria-label="Calendar"><table class="calendar">
<thead><tr>${weekdays.map((day) => html`<th scope="col"><abbr title="${day}">${day.slice(0, 3)}</abbr></th>`)}</tr></thead>
<tbody>${weeks.map(
    (week) => html`<tr>${week.map(cell)}</tr>
`,
  )}</tbody></table></div>`;
}

const amountsOf = (sums: Sum[]): [currency: string, amount_minor: number][] =>
  [...Map.groupBy(sums, ({ currency }) => currency)].map(([currency, those]) => [
    currency,
    those.reduce((sum, { amount_minor }) => sum + amount_minor, 0),
  ]);
