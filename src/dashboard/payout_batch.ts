/** A batch of payouts: what comes next, what it pays and does not pay, its files and the bank's reports. And a payout that failed. */
import { capitalized, money, number, time } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import type { Use } from '../pages/run.ts';
import { facts, table } from '../pages/table.ts';
import { reportForm } from './bank_report.ts';
import { type Amounts, nextStep } from './payout_run.ts';
import { actionList, recordContent, underWay } from './record_page.ts';
import { relatedContent } from './related.ts';
import { mayDo } from './roles.ts';
import { type Record_, shown } from './values.ts';
import type { DashboardVisit } from './visit.ts';

interface Batch extends Record_ {
  id: string;
  status: string;
  progress: { payouts: number; amounts: Amounts; not_eligible: { reason: string; count: number }[] };
  not_sent: { reason: string; reason_text: string; count: number }[];
  files: { file: number; method: string; payouts: number; created_at: string }[];
}

export async function batchContent(visit: DashboardVisit, record: Record_, use: Use): Promise<Html> {
  const batch = record as Batch;
  const { id, status, program_id, files, not_sent } = batch;
  const waiting = await use('payouts.list', { query: { program_id, batch_id: id, status: 'pending', limit: 1 } });
  const was_sent = new URLSearchParams(visit.request.url.split('?')[1]).get('done') === 'payout_batches.send';
  const is_sending = was_sent && not_sent.length === 0 && waiting.data.length > 0;
  const next = is_sending ? 'A worker is sending its payouts.' : nextStep(visit, batch);
  const state = html`${sums(visit, batch)}<p><strong>Next:</strong> ${next}</p>${left(batch)}`;
  return html`${is_sending || status === 'generating' ? underWay(state) : state}
${facts([
  ['Status', shown(visit, 'status', status, batch)],
  ...['due_at', 'cutoff', 'created_by_user_id', 'approved_by_user_id', 'approved_at']
    .filter((name) => batch[name] !== null)
    .map((name): [string, unknown] => [titles[name] ?? name, shown(visit, name, batch[name], batch)]),
])}
${files.length > 0 && filesOf(visit, batch)}
${files.length > 0 && status === 'ready' && html`<h2>Report of the bank</h2>${reportForm(visit, id)}`}
${await relatedContent(visit, use, 'payout_batches', batch)}
<h2>More</h2>${actionList(visit, 'payout_batches', { id }, batch, ['approve', 'send', 'take_in_report'])}`;
}

const titles: Record<string, string> = {
  due_at: 'Due',
  cutoff: 'Commissions that matured before',
  created_by_user_id: 'Created by',
  approved_by_user_id: 'Approved by',
  approved_at: 'Approved',
};

const sums = ({ reader }: DashboardVisit, { progress }: Batch): Html =>
  html`<ul class="cards">${progress.amounts.map(({ currency, payouts, amount_minor }) => html`<li class="card"><strong>${money(amount_minor, currency, reader)}</strong>${number(payouts, reader)} ${payouts === 1 ? 'payout' : 'payouts'}</li>`)}</ul>`;

/** Lists what is not paid by the batch, and what was not sent, each with the reason. */
const left = ({ progress, not_sent }: Batch): Html =>
  html`${progress.not_eligible.length > 0 && html`<p>Not in it: ${progress.not_eligible.map(({ reason, count }) => `${reason.replaceAll('_', ' ')} (${count})`).join(', ')}.</p>`}
${not_sent.map(({ count, reason, reason_text }) => notice(html`${count} not sent. ${reason === 'no_credentials' ? html`The account that pays is not set up: see <a href="/dashboard/payout_run">Payout run</a>.` : reason_text}`, true))}`;

const filesOf = (visit: DashboardVisit, { id, files }: Batch): Html =>
  html`<h2>Files for the bank</h2>${table(
    'Files for the bank',
    [
      { title: 'Made', cell: ({ created_at }) => time(created_at, visit.reader) },
      { title: 'Method', cell: ({ method }) => capitalized(method.replaceAll('_', ' ')) },
      { title: 'Payouts', is_number: true, cell: ({ payouts }) => number(payouts, visit.reader) },
      {
        title: 'File',
        cell: ({ file }) =>
          mayDo(visit.role, 'payouts:send')
            ? html`<a href="/dashboard/file/payout_batches.export?${new URLSearchParams({ id, file: String(file) })}">Download</a>`
            : '–',
      },
    ],
    files,
    '',
  )}`;

/** A payout; one that failed says what can be done. */
export async function payoutContent(visit: DashboardVisit, payout: Record_, use: Use): Promise<Html> {
  const id = String(payout.id);
  return html`${payout.status === 'failed' && failed(payout)}${recordContent(visit, 'payouts', id, payout, await relatedContent(visit, use, 'payouts', payout))}`;
}

const failed = ({ error_message, error_code, partner_id }: Record_): Html =>
  notice(
    html`The payment failed${typeof error_code === 'string' && `: ${error_code.replaceAll('_', ' ')}`}. ${error_message ?? ''} Ask <a href="/dashboard/partners/${partner_id}">the partner</a> where to pay, then retry it. Or delete it: its commissions are due again, and the next batch includes them.`,
    true,
  );
