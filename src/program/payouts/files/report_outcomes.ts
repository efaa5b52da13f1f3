/** Which payments a bank's report tells of, and what it says of them. A report with one that does not fit is refused as a whole. */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { Problem } from '../../../core/values/problem.ts';
import type { BankReport } from '../bank/bank_report.ts';
import type { BookedTransfer, BookingReport } from '../bank/camt054.ts';
import { bankIdentifier } from '../bank/identifier.ts';
import { type Debtor, paymentInformationId } from '../bank/pain001.ts';
import type { BankStatus, StatusReport, TransferStatus } from '../bank/pain002.ts';
import type { PayoutErrorCode } from '../rails/rail.ts';
import { blocksOf } from './file_content.ts';

/** What became of a payment. */
export interface Told {
  attempt_id: string;
  payout_id: string;
  outcome: 'paid' | 'failed' | 'returned';
  reference: string | null;
  at: string | null;
  error_code: PayoutErrorCode | null;
  error_message: string | null;
}

export interface ReportContent {
  told: Told[];
  /** Payments whose outcome is not final yet. */
  waiting: number;
  /** Payments of the account that are not of this batch. */
  not_of_batch: number;
}

interface Sent {
  id: string;
  payout_id: string;
  file_id: string | null;
  amount_minor: number;
  currency: string;
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
  if (!file) throw refused(`The report is on the file '${message_id}', which is not a file of this batch.`);
  const sent = await sentWhere(tx, sql`t.file_id = ${message_id}`);
  const stranger = statuses.find(({ end_to_end_id }) => !sent.has(end_to_end_id));
  if (stranger) {
    throw refused(
      `The report names the payment '${stranger.end_to_end_id}', which is not in the file ${bankIdentifier(message_id)}.`,
    );
  }
  const listed = statuses
    .filter(({ outcome }) => outcome !== 'waiting')
    .map((status) => toldOfStatus(sent.get(status.end_to_end_id) as Sent, status, status));
  const unlisted = await reachedBelow(tx, report, sent);
  return { told: [...listed, ...unlisted], waiting: statuses.length - listed.length, not_of_batch: 0 };
}

/** The payments that the report does not list, and whose file or payment information it rejects. */
async function reachedBelow(tx: Tx, report: StatusReport, sent: Map<string, Sent>): Promise<Told[]> {
  const listed = new Set(report.statuses.map(({ end_to_end_id }) => end_to_end_id));
  const others = [...sent.values()].filter(({ id }) => !listed.has(id));
  if (report.group.outcome === 'failed') return others.map((one) => toldOfStatus(one, report.group));
  const rejected = report.payment_informations.filter(({ outcome }) => outcome === 'failed');
  if (rejected.length === 0) return [];
  const blocks = (await blocksOf(tx, report.message_id)).map((block, at) => ({
    ...block,
    id: paymentInformationId(report.message_id, at),
  }));
  return rejected.flatMap((status) => {
    const block = blocks.find(({ id }) => id === status.payment_information_id);
    if (!block) {
      throw refused(
        `The report rejects the payment information '${status.payment_information_id ?? ''}', which is not in the file ${bankIdentifier(report.message_id)}.`,
      );
    }
    return others
      .filter(({ currency, execution_date }) => currency === block.currency && execution_date === block.execution_date)
      .map((one) => toldOfStatus(one, status));
  });
}

const toldOfStatus = (
  { id, payout_id }: Sent,
  { outcome, status, error_code, reason_code, reason_text }: BankStatus,
  { at, external_id }: Pick<TransferStatus, 'at' | 'external_id'> = { at: null, external_id: null },
): Told => ({
  ...{ attempt_id: id, payout_id, outcome: outcome as 'paid' | 'failed', reference: external_id, at, error_code },
  error_message: outcome === 'failed' ? (reason_text ?? inWords('rejected', reason_code ?? status)) : null,
});

async function ofBookings(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  batch_id: string,
  report: BookingReport,
): Promise<ReportContent> {
  const booked = report.transfers.filter(({ outcome }) => outcome !== 'ignored');
  const ids = report.transfers.map(({ end_to_end_id }) => end_to_end_id);
  const sent = await sentWhere(
    tx,
    sql`t.id = any(${ids}) and t.payout_id in (
      select p.id from program.payout p where p.organization_id = t.organization_id and p.batch_id = ${batch_id}
    )`,
  );
  if (sent.size === 0) throw refused('The notification names no payment of this batch by its EndToEndId.');
  const own = booked.filter(({ end_to_end_id }) => sent.has(end_to_end_id));
  const accounts = await accountsOf(tx, services, batch_id);
  for (const transfer of own)
    refuseOtherAccount(transfer, accounts.get(sent.get(transfer.end_to_end_id)?.file_id ?? ''));
  const told = own.map((transfer) => toldOfBooking(sent.get(transfer.end_to_end_id) as Sent, transfer));
  const strangers = ids.filter((id) => !sent.has(id)).length;
  return { told, waiting: ids.length - strangers - told.length, not_of_batch: strangers + report.without_id };
}

/** The IBANs that the files of a batch pay from, by file. */
async function accountsOf(tx: Tx, { vault }: Pick<Services, 'vault'>, batch_id: string): Promise<Map<string, string>> {
  const files = await tx.all<{ id: string; debtor: Buffer }>(sql`
    select t.id, t.debtor from program.payout_file t where ${tenant(tx)} and t.batch_id = ${batch_id} and t.debtor is not null`);
  return new Map(files.map(({ id, debtor }) => [id, (JSON.parse(vault.decrypt(debtor, id)) as Debtor).iban]));
}

/** What is booked on another account is another payment, whatever its EndToEndId. @throws Problem invalid_parameter */
function refuseOtherAccount({ account, end_to_end_id }: BookedTransfer, iban: string | undefined): void {
  if (account === null || iban === undefined || account === iban) return;
  throw refused(
    `The notification is on the account ending in ${account.slice(-4)}, and ${bankIdentifier(end_to_end_id)} was sent from the account ending in ${iban.slice(-4)}. Send the notification of that account.`,
  );
}

/** @throws Problem invalid_parameter */
function toldOfBooking(one: Sent, transfer: BookedTransfer): Told {
  const { outcome, amount_minor, currency, at, external_id, reason_code, reason_text } = transfer;
  if (amount_minor !== null && (amount_minor !== one.amount_minor || currency !== one.currency)) {
    throw refused(
      `The notification says of ${one.id} ${amount_minor} ${currency} in minor units, and ${one.amount_minor} ${one.currency} were sent. Ask the bank which is true.`,
    );
  }
  const is_return = outcome === 'returned';
  return {
    ...{ attempt_id: one.id, payout_id: one.payout_id, outcome: is_return ? 'returned' : 'paid' },
    ...{ reference: external_id, at, error_code: is_return ? 'returned' : null },
    error_message: is_return ? (reason_text ?? inWords('returned', reason_code)) : null,
  };
}

const inWords = (what: string, code: string | null): string =>
  `The bank has ${what} the payment${code === null ? '' : `: ${code}`}.`;

async function sentWhere(tx: Tx, where: Sql): Promise<Map<string, Sent>> {
  const rows = await tx.all<Sent>(sql`
    select t.id, t.payout_id, t.file_id, t.amount_minor, t.currency, t.state ->> 'execution_date' as execution_date
    from program.payout_attempt t
    where ${tenant(tx)} and ${where}`);
  return new Map(rows.map((row) => [row.id, row]));
}

const refused = (message: string): Problem =>
  new Problem('invalid_parameter', `${message} Nothing was changed.`, { param: 'document' });
