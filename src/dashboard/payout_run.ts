/** The payout run: what is due, the batches that are under way, and the next step of each. */

import type { Operation } from '../core/resource/operation.ts';
import { Problem } from '../core/values/problem.ts';
import { money, number, time, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { perform } from '../pages/run.ts';
import { table } from '../pages/table.ts';
import { queryOf } from './list_page.ts';
import { noProgram } from './none_yet.ts';
import { mayDo, mayRun } from './roles.ts';
import { type Record_, shown } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

export type Amounts = { currency: string; payouts: number; amount_minor: number }[];

interface Preview {
  amounts: Amounts;
  not_eligible: { reason: string; count: number }[];
}

const most_batches = 20;
/** Up to so many partners, what is due is added up at once; of more, when a person asks for it. */
const most_partners = 1_000;

/** The next step, by the status of a batch: an operation on it, or nothing that a person does. */
const steps: Record<string, { say: string; operations: [name: string, title: string][] }> = {
  generating: { say: 'A worker is creating its payouts.', operations: [] },
  awaiting_approval: {
    say: 'Somebody else than the person who created it approves it.',
    operations: [['payout_batches.approve', 'Approve']],
  },
  ready: { say: 'Send it. Bank transfers become a file for your bank.', operations: [['payout_batches.send', 'Send']] },
  sent: {
    say: 'Give the file to your bank. Once the bank has paid, upload its report, or mark the batch as paid by hand.',
    operations: [['payout_batches.mark_paid', 'Mark as paid by hand']],
  },
  completed: { say: 'Every payout is paid, failed or deleted.', operations: [] },
};

export async function payoutRunPage(visit: DashboardVisit) {
  const { program, rails, batches, partners, chosen } = await readPage(visit, async (use, { program_id }) => {
    if (program_id === undefined) return { program: {}, rails: [], batches: [], partners: 0 };
    const [program, rails, batches, partners] = await Promise.all([
      use('programs.get', { params: { id: program_id } }),
      use('rails.list', { params: { id: program_id } }),
      use('payout_batches.list', { query: { program_id, limit: most_batches } }),
      use('partners.list', { query: { program_id, limit: 1 } }),
    ]);
    return {
      ...{ program: program as Record_, rails: rails.data as Record_[] },
      ...{ batches: batches.data as Record_[], partners: partners.total_count as number },
    };
  });
  const { program_id } = chosen;
  if (program_id === undefined) return { title: 'Payout run', chosen, content: noProgram(visit) };
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
    'There is no batch yet. Create one once something is due.',
  )}
<h2>How you pay</h2>${accounts(visit, program, rails)}`;
  return { title: 'Payout run', content, chosen };
}

/** Shows what a batch that was created now would hold. It creates nothing. */
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
  html`<ul class="cards">${amounts.map(({ currency, payouts, amount_minor }) => html`<li class="card"><strong>${money(amount_minor, currency, visit.reader)}</strong>${number(payouts, visit.reader)} ${payouts === 1 ? 'payout' : 'payouts'}</li>`)}</ul>
${amounts.length === 0 && html`<p class="none">Nothing is due. Commissions are due when their holding period is over: see <a href="/dashboard/maturing">Maturing commissions</a>.</p>`}
${amounts.length > 0 && html`<p><a href="/dashboard/commissions?status=due">The commissions that are due</a></p>`}
${not_eligible.length > 0 && html`<p>Not paid now: ${not_eligible.map(({ reason, count }) => `${words(reason).toLowerCase()} (${count})`).join(', ')}.</p>`}
${amounts.length > 0 && html`<ul class="actions"><li><a class="button" href="/dashboard/do/payout_batches.create?only=program_id,cutoff,due_at">Create a batch</a></li></ul>`}`;

/** Says what comes next for a batch, with the links to it. */
export function nextStep({ role, catalog }: DashboardVisit, { id, status, files }: Record_): Html {
  const is_sent = status === 'ready' && Array.isArray(files) && files.length > 0;
  const { say, operations } = steps[is_sent ? 'sent' : String(status)] ?? { say: '', operations: [] };
  const open = operations.filter(([name]) => mayRun(role, catalog.operations.get(name) as Operation));
  const file =
    is_sent &&
    mayDo(role, 'payouts:send') &&
    html` <a href="/dashboard/file/payout_batches.export?id=${id}">Download the bank’s file</a> ·`;
  const report =
    is_sent && mayDo(role, 'payouts:write') && html` <a href="/dashboard/payout_batches/${id}">Upload the report</a>`;
  return html`<span class="long">${say}${file}${report}${open.map(([name, title], nth) => html`${(nth > 0 || report) && ' ·'} <a href="/dashboard/do/${name}?id=${id}">${title}</a>`)}</span>`;
}

/** Methods that need an account that pays. */
const methods_with_account = new Set(['bank_transfer', 'wire', 'paypal', 'wise', 'stripe']);

/** The methods that the program pays by, each with the account that pays: without one nothing is sent. */
const accounts = ({ role }: DashboardVisit, { id, payout_methods }: Record_, rails: Record_[]): Html =>
  table(
    'Accounts that pay',
    [
      { title: 'Method', cell: ({ method }) => words(method) },
      {
        title: 'Account',
        cell: ({ rail }) => (rail ? `${rail.account ?? ''} …${rail.hint ?? ''}` : 'Not set up: nothing is sent by it'),
      },
      {
        title: 'Change',
        cell: ({ method, rail }) =>
          mayDo(role, 'payouts:send') &&
          html`<a href="/dashboard/do/rails.put?${new URLSearchParams({ id: String(id), rail: method, back: '/dashboard/payout_run' })}">${rail ? 'Change' : 'Set it up'}</a>`,
      },
    ],
    (payout_methods as string[])
      .filter((method) => methods_with_account.has(method))
      .map((method) => ({ method, rail: rails.find(({ rail }) => rail === method) })),
    'Partners are paid by hand.',
  );
