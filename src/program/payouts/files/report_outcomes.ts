/** Matches a bank's report with payments, and reads their outcomes. Entries that do not fit are listed, and change nothing. */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { Problem } from '../../../core/values/problem.ts';
import type { AttemptStatus } from '../attempt.ts';
import type { BankReport } from '../bank/bank_report.ts';
import type { BookedTransfer, BookingReport } from '../bank/camt054.ts';
import { bankIdentifier, isAttemptKey } from '../bank/identifier.ts';
import { type Debtor, paymentInformationId } from '../bank/pain001.ts';
import { type BankStatus, isRejected, type StatusReport, strengthOf, type TransferStatus } from '../bank/pain002.ts';
import { saysDuplicate } from '../bank/reason.ts';
import type { PayoutErrorCode } from '../rails/rail.ts';
import { blocksOf } from './file_content.ts';

/** The outcome of a payment. */
export interface ReportedPayment {
  attempt_id: string;
  payout_id: string;
  outcome: 'paid' | 'failed' | 'returned';
  reference: string | null;
  at: string | null;
  error_code: PayoutErrorCode | null;
  error_message: string | null;
  /** The amount that the bank kept of a returned payment. */
  fee_minor?: number | null;
  /** The references of its booking. Left out: it is a status, and none is booked. */
  references?: string[];
  /** It came back because the payee's bank has it already. */
  is_duplicate?: boolean;
}

/** A part of the report that changes nothing, and why. Null: it names no payment of the batch. */
export interface NotApplied {
  payout_id: string | null;
  end_to_end_id: string | null;
  reason: string;
}

export interface ReportContent {
  payments: ReportedPayment[];
  /** Payments that the bank has accepted before: they stay as they are. */
  unchanged: string[];
  not_applied: NotApplied[];
  /** Payments whose outcome is not final yet. */
  waiting: number;
  /** Payments of the account that are not of this batch. */
  not_of_batch: number;
  /** The file that the bank says it has accepted, at least some of it. */
  accepted_file?: string;
}

interface Sent {
  id: string;
  payout_id: string;
  file_id: string | null;
  amount_minor: number;
  currency: string;
  status: AttemptStatus;
  execution_date: string;
}

/** @throws Problem invalid_parameter */
export const contentOfReport = (
  tx: Tx,
  services: Pick<Services, 'vault'>,
  batch_id: string,
  report: BankReport,
): Promise<ReportContent> =>
  report.kind === 'pain.002' ? ofStatuses(tx, batch_id, report) : ofBookings(tx, services, batch_id, report);

async function ofStatuses(tx: Tx, batch_id: string, report: StatusReport): Promise<ReportContent> {
  const { message_id, statuses } = report;
  const file = await tx.maybe(sql`
    select from program.payout_file t where ${tenant(tx)} and t.batch_id = ${batch_id} and t.id = ${message_id}`);
  if (!file) throw refused(`The report is about the file '${message_id}', which is not a file of this batch.`);
  const sent = await sentWhere(tx, sql`t.file_id = ${message_id}`);
  const own = statuses.filter(({ end_to_end_id }) => sent.has(end_to_end_id));
  if (own.length === 0 && statuses.length > 0) {
    throw refused(
      `The report names the payment '${bankIdentifier((statuses[0] as TransferStatus).end_to_end_id)}', and none of the file ${bankIdentifier(message_id)}.`,
    );
  }
  const listed = own.map((status): Listed => ({ one: sent.get(status.end_to_end_id) as Sent, status, booked: status }));
  const { reached, unknown } = await reachedBelow(tx, report, sent);
  const plain: Said[] = [...listed.filter(({ status }) => status.ignored_because === null), ...reached];
  const is_doubted = plain.some(({ status }) => status.of_file) && (await isAccepted(tx, batch_id, message_id, sent));
  const all = is_doubted ? plain.map(doubted) : plain;
  const said = (outcome: BankStatus['outcome']) => all.filter(({ status }) => status.outcome === outcome);
  const doubtful = said('doubtful');
  return {
    payments: [...said('paid'), ...said('failed')].map(paymentOfStatus),
    unchanged: [...said('unchanged'), ...doubtful.filter(({ one }) => hasFailed(one))].map(({ one }) => one.payout_id),
    not_applied: [
      ...listed.flatMap(({ one, status: { ignored_because } }) =>
        ignored_because === null ? [] : [notApplied(one, ignored_because)],
      ),
      ...said('unchanged').map(({ one, status }) => notApplied(one, duplicateOf(status))),
      ...doubtful
        .filter(({ one }) => !hasFailed(one))
        .map(({ one, status }) => notApplied(one, one.status === 'paid' ? settled_already : doubtOf(one, status))),
      ...[...report.unnamed, ...unknown].map((reason) => ({ payout_id: null, end_to_end_id: null, reason })),
    ],
    waiting: said('waiting').length,
    not_of_batch: statuses.length - own.length,
    ...(accepts(report) ? { accepted_file: message_id } : {}),
  };
}

/** "The one way out of `paid`" is a return. */
export const settled_already =
  'The payout is paid, and a rejection does not undo that: it may be of a second copy. If the payment came back, send the camt.054 notification that says so, or record it with mark_returned.';

const hasFailed = ({ status }: Sent): boolean => status === 'failed' || status === 'returned';

/** ACTC, ACCP, ACSP and the like, and PART: the bank has found the file, or some of it, to be in order. */
const accepts = ({ group, payment_informations, statuses }: StatusReport): boolean =>
  [group, ...payment_informations, ...statuses].some(({ status }) => /^(?:AC[A-Z]{2}|PART)$/.test(status ?? ''));

/** Returns whether it is known that the bank has the file: an earlier report says so, or one of its payments was made. */
async function isAccepted(tx: Tx, batch_id: string, file_id: string, sent: Map<string, Sent>): Promise<boolean> {
  if ([...sent.values()].some(({ status }) => status === 'paid' || status === 'returned')) return true;
  const report = await tx.maybe(sql`
    select from program.payout_report t
    where ${tenant(tx)} and t.batch_id = ${batch_id} and t.kind = 'pain.002' and t.result ->> 'accepted_file' = ${file_id}
    limit 1`);
  return report !== undefined;
}

/** The file may be a second copy of the one that was accepted: its rejection is none of the payments. */
const doubted = (said: Said): Said =>
  said.status.of_file ? { ...said, status: { ...said.status, outcome: 'doubtful' } } : said;

/** A payment, and the report's status of it. */
interface Said {
  one: Sent;
  status: BankStatus;
  booked?: Pick<TransferStatus, 'at' | 'external_id'>;
}

interface Listed extends Said {
  status: TransferStatus;
}

const duplicateOf = ({ reason_code, reason_text }: BankStatus): string =>
  `The bank has the payment already, and refused a second copy (${reason_code}).${reason_text === null ? '' : ` ${reason_text}`}`;

/** The code and the words of a bank. */
const reasonOf = ({ status, reason_code, reason_text }: BankStatus): string =>
  [status, reason_code, reason_text].filter((part) => part !== null).join(' ');

function doubtOf({ payout_id }: Sent, status: BankStatus): string {
  const why = status.of_file
    ? 'but has accepted the file before: it may have rejected a second copy'
    : saysDuplicate(status)
      ? 'maybe as a second copy of one that it has'
      : 'without a reason that means for certain that the payment was not made';
  return `The bank has rejected it (${reasonOf(status)}), ${why}. Ask the bank. If the payment was not made, record that with POST /v1/payouts/${payout_id}/mark_failed.`;
}

export const notApplied = ({ id, payout_id }: Pick<Sent, 'id' | 'payout_id'>, reason: string): NotApplied => ({
  ...{ payout_id, end_to_end_id: bankIdentifier(id), reason },
});

interface Below {
  /** The payments that the report does not list, and whose file or payment information it rejects. */
  reached: Said[];
  /** Rejections of a payment information that is not in the file. */
  unknown: string[];
}

async function reachedBelow(tx: Tx, report: StatusReport, sent: Map<string, Sent>): Promise<Below> {
  const listed = new Set(report.statuses.map(({ end_to_end_id }) => end_to_end_id));
  const others = [...sent.values()].filter(({ id }) => !listed.has(id));
  const rejected = report.payment_informations.filter(isRejected);
  if (rejected.length === 0 && !isRejected(report.group)) return { reached: [], unknown: [] };
  const blocks = (await blocksOf(tx, report.message_id)).map((block, at) => ({
    ...block,
    id: paymentInformationId(report.message_id, at),
  }));
  const keyOf = ({ currency, execution_date }: { currency: string; execution_date: string }) =>
    `${currency} ${execution_date}`;
  // A payment that may have been made is no failure.
  rejected.sort((one, other) => strengthOf(one) - strengthOf(other));
  const statuses = new Map(rejected.map((status) => [status.payment_information_id, status]));
  const by_key = new Map(blocks.map((block) => [keyOf(block), statuses.get(block.id)]));
  const reached = others.flatMap((one) => {
    const status = by_key.get(keyOf(one)) ?? report.group;
    return isRejected(status) ? [{ one, status }] : [];
  });
  const unknown = (isRejected(report.group) ? [] : rejected)
    .filter(({ payment_information_id }) => !blocks.some(({ id }) => id === payment_information_id))
    .map(
      ({ payment_information_id }) =>
        `The report rejects the payment information '${payment_information_id ?? ''}', which is not in the file ${bankIdentifier(report.message_id)}.`,
    );
  return { reached, unknown };
}

const paymentOfStatus = ({
  one: { id, payout_id },
  status: { outcome, status, error_code, reason_code, reason_text },
  booked: { at, external_id } = { at: null, external_id: null },
}: Said): ReportedPayment => ({
  ...{ attempt_id: id, payout_id, outcome: outcome as 'paid' | 'failed', reference: external_id, at, error_code },
  error_message: outcome === 'failed' ? (reason_text ?? inWords('rejected', reason_code ?? status)) : null,
});

async function ofBookings(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  batch_id: string,
  report: BookingReport,
): Promise<ReportContent> {
  const ids = report.transfers.map(({ end_to_end_id }) => end_to_end_id);
  const sent = await sentWhere(
    tx,
    sql`t.id = any(${ids.filter(isAttemptKey)}) and t.payout_id in (
      select p.id from program.payout p where p.organization_id = t.organization_id and p.batch_id = ${batch_id}
    )`,
  );
  if (sent.size === 0) throw refused('The notification names no payment of this batch by its EndToEndId.');
  const accounts = await accountsOf(tx, services, batch_id);
  const payments: ReportedPayment[] = [];
  const not_applied: NotApplied[] = [];
  const seen = new Set<string>();
  for (const transfer of report.transfers) {
    const one = sent.get(transfer.end_to_end_id);
    if (!one) continue;
    const key = `${one.id} ${transfer.outcome}`;
    const reason =
      transfer.ignored_because ??
      misfit(one, transfer, accounts.get(one.file_id ?? '')) ??
      (transfer.references.length === 0 && seen.has(key) ? without_reference : null);
    seen.add(key);
    if (reason === null) payments.push(paymentOfBooking(one, transfer));
    else not_applied.push(notApplied(one, reason));
  }
  const others = ids.length - payments.length - not_applied.length;
  return { payments, unchanged: [], not_applied, waiting: 0, not_of_batch: others + report.without_id };
}

const without_reference =
  'The notification has the payment more than once, here without a reference (AcctSvcrRef): whether that is another payment is unknown. Ask the bank for a notification that has the reference of each.';

/** The IBANs that the files of a batch pay from, by file. */
async function accountsOf(tx: Tx, { vault }: Pick<Services, 'vault'>, batch_id: string): Promise<Map<string, string>> {
  const files = await tx.all<{ id: string; debtor: Buffer }>(sql`
    select t.id, t.debtor from program.payout_file t where ${tenant(tx)} and t.batch_id = ${batch_id} and t.debtor is not null`);
  return new Map(files.map(({ id, debtor }) => [id, (JSON.parse(vault.decrypt(debtor, id)) as Debtor).iban]));
}

/** Returns the reason why a booking is not that of the payment: one on another account is another payment, whatever its EndToEndId. Null: it is. */
function misfit(one: Sent, { account, amounts, outcome }: BookedTransfer, iban: string | undefined): string | null {
  if (account !== null && iban !== undefined && account !== iban)
    return `The notification is on the account ending in ${account.slice(-4)}, and the payment was sent from the account ending in ${iban.slice(-4)}. Send the notification of that account.`;
  if (amounts.length === 0 || keptOf(one, amounts, outcome) !== null) return null;
  const booked = amounts.map(({ amount_minor, currency }) => `${amount_minor} ${currency}`).join(' and ');
  return `The notification says ${booked} in minor units, and ${one.amount_minor} ${one.currency} were sent. Ask the bank which is true, or record it by hand.`;
}

/** Returns the amount that was kept of a returned payment: nothing of one that was paid. Null: none of the amounts can be that of the payment. */
function keptOf(
  { amount_minor, currency }: Sent,
  amounts: BookedTransfer['amounts'],
  outcome: BookedTransfer['outcome'],
): number | null {
  const in_currency = amounts.filter((amount) => amount.currency === currency).map((amount) => amount.amount_minor);
  if (in_currency.includes(amount_minor)) return 0;
  const less = in_currency.filter((one) => one > 0 && one < amount_minor);
  return outcome === 'returned' && less.length > 0 ? amount_minor - Math.max(...less) : null;
}

function paymentOfBooking(one: Sent, transfer: BookedTransfer): ReportedPayment {
  const { outcome, amounts, at, external_id, references, reason_code, reason_text } = transfer;
  const is_return = outcome === 'returned';
  return {
    ...{ attempt_id: one.id, payout_id: one.payout_id, outcome: is_return ? 'returned' : 'paid' },
    ...{ reference: external_id, at, error_code: is_return ? 'returned' : null },
    error_message: is_return ? (reason_text ?? inWords('returned', reason_code)) : null,
    ...{ fee_minor: keptOf(one, amounts, outcome) || null, references },
    ...(is_return && saysDuplicate(transfer) ? { is_duplicate: true } : {}),
  };
}

const inWords = (what: string, code: string | null): string =>
  `The bank has ${what} the payment${code === null ? '' : `: ${code}`}.`;

async function sentWhere(tx: Tx, where: Sql): Promise<Map<string, Sent>> {
  const rows = await tx.all<Sent>(sql`
    select t.id, t.payout_id, t.file_id, t.amount_minor, t.currency, t.status, t.state ->> 'execution_date' as execution_date
    from program.payout_attempt t
    where ${tenant(tx)} and ${where}`);
  return new Map(rows.map((row) => [row.id, row]));
}

const refused = (message: string): Problem =>
  new Problem('invalid_parameter', `${message} Nothing was changed.`, { param: 'document' });
