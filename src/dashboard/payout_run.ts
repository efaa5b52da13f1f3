/** The payout run: what is due, the batches that are under way, and the next step of each. */

import type { Operation } from '../core/resource/operation.ts';
import { Problem } from '../core/values/problem.ts';
import { money, number, time, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { perform } from '../pages/run.ts';
import { table } from '../pages/table.ts';
import { queryOf } from './list_page.ts';
import { mayDo, mayRun } from './roles.ts';
import { type Record_, shown } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

interface Preview {
  amounts: { currency: string; payouts: number; amount_minor: number }[];
  not_eligible: { reason: string; count: number }[];
}

const most_batches = 20;
/** Of more partners, what is due is added up when a person asks for it. */
const most_partners = 1_000;

/** What comes next, by the status of a batch: an operation on it, or nothing that a person does. */
const steps: Record<string, { say: string; operations: [name: string, title: string][] }> = {
  generating: { say: 'A worker is creating its payouts.', operations: [] },
  awaiting_approval: {
    say: 'Somebody else than the person who created it approves it.',
    operations: [['payout_batches.approve', 'Approve']],
  },
  ready: {
    say: 'Send it. Sending makes the file for your bank, whose report you take in afterwards.',
    operations: [
      ['payout_batches.send', 'Send'],
      ['payout_batches.take_in_report', 'Take in a report of the bank'],
      ['payout_batches.mark_paid', 'Mark as paid by hand'],
    ],
  },
  completed: { say: 'Every payout is paid, failed or deleted.', operations: [] },
};

export async function payoutRunPage(visit: DashboardVisit) {
  const { batches, partners, chosen } = await readPage(visit, async (use, { program_id }) => {
    if (program_id === undefined) return { batches: [], partners: 0 };
    const [batches, partners] = await Promise.all([
      use('payout_batches.list', { query: { program_id, limit: most_batches } }),
      use('partners.list', { query: { program_id, limit: 1 } }),
    ]);
    return { batches: batches.data as Record_[], partners: partners.total_count as number };
  });
  const { program_id } = chosen;
  if (program_id === undefined)
    return { title: 'Payout run', chosen, content: html`<p class="none">There is no program yet.</p>` };
  const may_see = mayDo(visit.role, 'payouts:write');
  const is_wanted = partners <= most_partners || queryOf(visit.request.query).show === 'due';
  const preview = may_see && is_wanted ? await previewOf(visit, program_id) : undefined;
  const content = html`<h2>Due now</h2>${preview instanceof Problem ? notice(preview.message, true) : preview && due(visit, preview)}${may_see && !is_wanted && html`<p><a class="button plain" href="/dashboard/payout_run?show=due">Add up what is due</a></p>`}
<h2>Batches</h2>${table(
    'Batches of payouts',
    [
      {
        title: 'Batch',
        cell: ({ id, created_at }) =>
          html`<a href="/dashboard/payout_batches/${id}">${time(String(created_at), visit.reader)}</a>`,
      },
      { title: 'Status', cell: (row) => shown(visit, 'status', row.status, row) },
      { title: 'Amounts', cell: ({ progress }) => sums(visit, (progress as Pick<Preview, 'amounts'>).amounts) },
      { title: 'Next step', cell: (row) => nextStep(visit, row) },
    ],
    batches,
    'There is no batch yet.',
  )}`;
  return { title: 'Payout run', content, chosen };
}

/** What a batch that was created now would hold. It creates nothing. */
const previewOf = (visit: DashboardVisit, program_id: string): Promise<Preview | Problem> =>
  perform(visit, 'payout_batches.create', { body: { program_id, preview: true } }).catch((error) => {
    if (error instanceof Problem && error.status < 500) return error;
    throw error;
  });

const sums = ({ reader }: DashboardVisit, amounts: Preview['amounts']): Html | string =>
  amounts.length === 0
    ? '–'
    : html`${amounts.map(({ currency, payouts, amount_minor }, nth) => html`${nth > 0 && ', '}${money(amount_minor, currency, reader)} in ${number(payouts, reader)}`)}`;

const due = (visit: DashboardVisit, { amounts, not_eligible }: Preview): Html =>
  html`<ul class="cards">${amounts.map(({ currency, payouts, amount_minor }) => html`<li class="card"><strong>${money(amount_minor, currency, visit.reader)}</strong>${number(payouts, visit.reader)} payouts</li>`)}</ul>
${amounts.length === 0 && html`<p class="none">Nothing is due.</p>`}
${not_eligible.length > 0 && html`<p>Not paid now: ${not_eligible.map(({ reason, count }) => `${words(reason).toLowerCase()} (${count})`).join(', ')}.</p>`}
${amounts.length > 0 && html`<ul class="actions"><li><a class="button" href="/dashboard/do/payout_batches.create">Create a batch</a></li></ul>`}`;

function nextStep({ role, catalog }: DashboardVisit, { id, status }: Record_): Html {
  const { say, operations } = steps[String(status)] ?? { say: '', operations: [] };
  const open = operations.filter(([name]) => mayRun(role, catalog.operations.get(name) as Operation));
  const links = open.map(([name, title]) => html` <a href="/dashboard/do/${name}?id=${id}">${title}</a>`);
  const file =
    status === 'ready' &&
    mayDo(role, 'payouts:send') &&
    html` <a href="/dashboard/see/payout_batches.export?id=${id}">Download the bank’s file</a>`;
  return html`<span class="long">${say}${links}${file}</span>`;
}
