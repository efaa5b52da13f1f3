/** The first page: what waits for a person, and the last thirty days. */

import type { Operation } from '../core/resource/operation.ts';
import { databaseTime } from '../core/values/clock.ts';
import { counted, money, number, periodText } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { plot } from '../pages/plot.ts';
import type { Use } from '../pages/run.ts';
import { actionTitle } from './catalog.ts';
import { noProgram } from './none_yet.ts';
import { mayDo } from './roles.ts';
import { type DashboardVisit, readPage } from './visit.ts';

/** Lists with records that wait for a person: the noun of the list, and the status of those that wait. */
const waiting = [
  { title: 'Applications to review', tag: 'applications', status: 'pending' },
  { title: 'Risk flags', tag: 'risk_flags', status: 'open' },
  { title: 'Payout batches to approve', tag: 'payout_batches', status: 'awaiting_approval' },
  { title: 'Failed payouts', tag: 'payouts', status: 'failed' },
  { title: 'Commissions on hold', tag: 'commissions', status: 'on_hold' },
  { title: 'Open disputes', tag: 'disputes', status: 'open' },
  { title: 'Claims of sales', tag: 'sale_claims', status: 'open' },
  { title: 'Webhook endpoints that are off', tag: 'webhook_endpoints', status: 'disabled' },
];

/** Pages where each record that waits has its decision beside it. Others are shown in their list. */
const queues: Record<string, string> = {
  applications: '/dashboard/review',
  risk_flags: '/dashboard/risk',
  webhook_endpoints: '/dashboard/webhooks',
};

const addressOf = ({ tag, status }: (typeof waiting)[number]): string =>
  queues[tag] ?? `/dashboard/${tag}?status=${status}`;

const days = 30;

export async function homePage(visit: DashboardVisit) {
  const { counts, report, steps, chosen } = await readPage(visit, async (use, { program_id }) => {
    if (program_id === undefined) return { counts: [], report: undefined, steps: [] };
    const report = mayDo(visit.role, 'reports:read') ? await lastDays(use, program_id) : undefined;
    const is_quiet = report === undefined || report.totals.sales === 0;
    return {
      counts: await countsOf(visit, use, program_id),
      report,
      steps: is_quiet ? await firstSteps(visit, use, program_id) : [],
    };
  });
  return {
    title: 'Home',
    chosen,
    content:
      chosen.program_id === undefined
        ? noProgram(visit)
        : html`${steps.length > 0 && begin(steps)}${cards(visit, counts)}${report && drawn(visit, report)}`,
  };
}

/** The steps before a program earns anybody a commission: the noun of the list that has one then, what to do, and why. */
const needed = [
  { tag: 'rules', operation: 'rules.create', why: 'It says what a sale earns a partner.' },
  {
    tag: 'partners',
    operation: 'partners.create',
    why: 'Or give partners the address where they apply: see Settings.',
  },
  {
    tag: 'sales',
    page: '/dashboard/integrations',
    title: 'Connect your shop',
    why: 'Your billing processor, or your server, reports sales.',
  },
];

type Needed = (typeof needed)[number];

/** The steps that are not done yet. */
async function firstSteps(
  { catalog, role }: DashboardVisit,
  use: Use,
  program_id: string,
): Promise<(Needed & { href: string; text: string })[]> {
  const steps = await Promise.all(
    needed.map(async (step) => {
      const operation = catalog.operations.get(step.operation ?? '');
      if (step.operation && !(operation && mayDo(role, operation.scope))) return [];
      const { data } = await use(`${step.tag}.list`, { query: { program_id, limit: 1 } });
      if (data.length > 0) return [];
      return [
        {
          ...step,
          href: step.page ?? `/dashboard/do/${step.operation}`,
          text: step.title ?? actionTitle(catalog, operation as Operation),
        },
      ];
    }),
  );
  return steps.flat();
}

const begin = (steps: { href: string; text: string; why: string }[]): Html =>
  html`<h2>First steps</h2><ol>${steps.map(({ href, text, why }) => html`<li><a href="${href}">${text}</a>. ${why}</li>`)}</ol>`;

type Count = (typeof waiting)[number] & { count: number };

async function countsOf({ catalog }: DashboardVisit, use: Use, program_id: string): Promise<Count[]> {
  const lists = waiting.filter(({ tag }) => catalog.operations.has(`${tag}.list`));
  return Promise.all(
    lists.map(async (one) => {
      const { total_count } = await use(`${one.tag}.list`, { query: { program_id, limit: 1, status: one.status } });
      return { ...one, count: total_count };
    }),
  );
}

const cards = ({ reader }: DashboardVisit, counts: Count[]): Html => {
  const open = counts.filter(({ count }) => count > 0);
  return html`<h2>Waiting for you</h2>${
    open.length === 0
      ? html`<p class="none">Nothing waits for you.</p>`
      : html`<ul class="cards">${open.map((one) => html`<li><a class="card" href="${addressOf(one)}"><strong>${counted(one.count, reader)}</strong>${one.title}</a></li>`)}</ul>`
  }`;
};

function lastDays(use: Use, program_id: string) {
  const to = new Date(Math.ceil(databaseTime() / 86_400_000) * 86_400_000);
  const from = new Date(to.getTime() - days * 86_400_000);
  return use('reports.get', {
    params: { report: 'overview' },
    query: { program_id, from: from.toISOString(), to: to.toISOString(), interval: 'day' },
  });
}

// biome-ignore lint/suspicious/noExplicitAny: the reply of reports.get
function drawn({ reader }: DashboardVisit, { rows, totals, currency }: any): Html {
  const shown = (value: number) => money(value, currency, reader);
  const figures: [string, string][] = [
    ['Revenue', shown(totals.revenue_minor)],
    ['Commissions', shown(totals.commissions_minor)],
    ['Sales', number(totals.sales, reader)],
    ['Customers', number(totals.customers, reader)],
    ['Clicks', number(totals.clicks, reader)],
  ];
  return html`<h2>Last ${days} days</h2>
<ul class="cards">${figures.map(([title, value]) => html`<li class="card"><strong>${value}</strong>${title}</li>`)}</ul>
${plot(
  'Revenue by day',
  rows.map(({ period, revenue_minor }: { period: string; revenue_minor: number }) => ({
    label: periodText(period, reader),
    value: revenue_minor,
  })),
  shown,
)}<p><a href="/dashboard/reports">All reports</a></p>`;
}
