import { Problem } from '../../../core/values/problem.ts';
import { minorUnits } from './amount.ts';
import { railIdentifier } from './identifier.ts';
import { type Reason, reasonOf } from './reason.ts';
import { child, children, currencyOf, type Element, refused, text, textOf, timeOf } from './report_xml.ts';

/** A payment on the account, as far as it has an EndToEndId. */
export interface BookedTransfer extends Reason {
  /** The attempt's key, or what another payment of the account has as its EndToEndId. */
  end_to_end_id: string;
  /**
   * `paid`: debited. `returned`: credited again, with the reason of the return. `ignored`: neither, or it cannot be read; `ignored_because` says
   * why.
   */
  outcome: 'paid' | 'returned' | 'ignored';
  ignored_because: string | null;
  /** To be compared with the payout: as instructed where the bank says so, else each as booked. None: the bank gives only the sum of a batch. */
  amounts: { amount_minor: number; currency: string }[];
  /** The time of the booking. */
  at: string | null;
  /** The IBAN of the account that the notification is on. Null: the bank names the account in another way. */
  account: string | null;
  /** The bank's reference. */
  external_id: string | null;
  /** The references of the payment and of its entry. Another booking has others. */
  references: string[];
}

export interface BookingReport {
  kind: 'camt.054';
  /** The MsgId of the notification. */
  report_id: string | null;
  reported_at: string | null;
  transfers: BookedTransfer[];
  /**
   * Payments without an EndToEndId, and entries without details: they cannot be told apart from other payments of the account. Of a long report,
   * those too whose id is no payout's.
   */
  without_id: number;
}

/** The placeholder of a missing id: the bank was given none. */
const no_id = 'NOTPROVIDED';

/**
 * Reads a camt.054 debit and credit notification (versions .02 to .12): the element BkToCstmrDbtCdtNtfctn. An account has other payments
 * too, which may be of any form: the caller leaves out the ids that are not its own, and compares the account, the amount and the currency.
 *
 * @throws Problem when there is no notification
 */
export function readBookingReport(report: Element): BookingReport {
  const notifications = children(report, 'Ntfctn');
  if (notifications.length === 0)
    throw refused('BkToCstmrDbtCdtNtfctn has no Ntfctn. Send the camt.054 file as the bank supplied it.');
  const found = notifications.flatMap(transfersOn);
  const transfers = found.filter((transfer) => transfer !== null);
  return {
    kind: 'camt.054',
    report_id: text(report, 'GrpHdr', 'MsgId'),
    reported_at: timeOf(child(report, 'GrpHdr'), 'CreDtTm'),
    transfers,
    without_id: found.length - transfers.length,
  };
}

function transfersOn(notification: Element): (BookedTransfer | null)[] {
  const account = text(notification, 'Acct', 'Id', 'IBAN')?.replaceAll(/\s/g, '').toUpperCase() ?? null;
  const transfers = children(notification, 'Ntry').flatMap(transfersIn);
  return transfers.map((transfer) => transfer && { ...transfer, account });
}

/** The payments of an entry. Null: one that has no EndToEndId. */
function transfersIn(entry: Element): (Omit<BookedTransfer, 'account'> | null)[] {
  const details = children(entry, 'NtryDtls').flatMap((group) => children(group, 'TxDtls'));
  if (details.length === 0) return [null];
  return details.map((detail) => transferOf(entry, detail, details.length === 1));
}

/** A payment that cannot be read keeps no other from being read: it may be anybody's. */
function transferOf(entry: Element, detail: Element, is_alone: boolean): Omit<BookedTransfer, 'account'> | null {
  const end_to_end_id = idOf(detail);
  if (end_to_end_id === null || end_to_end_id === no_id) return null;
  const id = railIdentifier(end_to_end_id);
  try {
    return {
      end_to_end_id: id,
      ...outcomeOf(entry, detail),
      amounts: amountsOf(entry, detail, is_alone),
      ...reasonOf(children(detail, 'RtrInf')),
      at: timeOf(entry, 'BookgDt'),
      ...referencesOf(entry, detail),
    };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const nothing = { amounts: [], reason_code: null, reason_text: null, at: null, external_id: null, references: [] };
    return { end_to_end_id: id, outcome: 'ignored', ignored_because: error.message, ...nothing };
  }
}

function referencesOf(entry: Element, detail: Element): Pick<BookedTransfer, 'external_id' | 'references'> {
  const references = [text(detail, 'Refs', 'AcctSvcrRef'), text(entry, 'AcctSvcrRef')].filter((one) => one !== null);
  return { external_id: references[0] ?? null, references };
}

/** Null where two ids stand there as well. */
const idOf = (detail: Element): string | null => {
  const ids = children(children(detail, 'Refs')[0], 'EndToEndId');
  return ids.length === 1 ? textOf(ids[0]) : null;
};

/** "camt.054 BOOK: DBIT paid, CRDT with RtrInf returned." */
function outcomeOf(entry: Element, detail: Element): Pick<BookedTransfer, 'outcome' | 'ignored_because'> {
  const ignored = (ignored_because: string) => ({ outcome: 'ignored' as const, ignored_because });
  // From version .08 on the status is a choice of a code and the bank's own text.
  const status = text(entry, 'Sts', 'Cd') ?? text(entry, 'Sts', 'Prtry') ?? text(entry, 'Sts');
  if (status !== 'BOOK') return ignored(`The entry is not booked: its Sts is ${status ?? 'missing'}.`);
  const direction = text(detail, 'CdtDbtInd') ?? text(entry, 'CdtDbtInd');
  const has_return = children(detail, 'RtrInf').length > 0;
  if (direction === 'CRDT' && has_return) return { outcome: 'returned', ignored_because: null };
  if (direction === 'CRDT') return ignored('The entry is a credit without RtrInf, so it returns nothing.');
  if (direction !== 'DBIT') return ignored(`CdtDbtInd is ${direction ?? 'missing'}, and not DBIT or CRDT.`);
  if (text(entry, 'RvslInd') === 'true') return ignored('The entry reverses a credit: its RvslInd is true.');
  return has_return
    ? ignored('The entry is a debit with RtrInf: it sends back what was received.')
    : { outcome: 'paid', ignored_because: null };
}

/** The amount of the entry belongs to a payment only where it is the entry's only one. A payment in another currency has its counter value too. */
function amountsOf(entry: Element, detail: Element, is_alone: boolean): BookedTransfer['amounts'] {
  const instructed = child(detail, 'AmtDtls', 'InstdAmt', 'Amt');
  const booked = [
    child(detail, 'AmtDtls', 'TxAmt', 'Amt'),
    child(detail, 'AmtDtls', 'CntrValAmt', 'Amt'),
    child(detail, 'Amt'),
  ].filter((amount) => amount !== undefined);
  const total = children(entry, 'Amt');
  if (instructed === undefined && booked.length === 0 && total.length === 0)
    throw refused('The entry has no Amt. Ask the bank what was booked, or record it by hand.');
  const of_entry = booked.length === 0 && is_alone && isOfOne(entry) ? total : [];
  return (instructed === undefined ? [...booked, ...of_entry] : [instructed]).map(amountOf);
}

function amountOf(amount: Element): BookedTransfer['amounts'][number] {
  const currency = currencyOf(amount);
  const amount_minor = currency === null ? null : minorUnits(text(amount) ?? '', currency);
  if (currency !== null && amount_minor !== null) return { amount_minor, currency };
  throw refused(`The amount '${text(amount) ?? ''}' ${currency ?? 'without Ccy'} is not an amount in a currency.`);
}

/** Returns whether the entry is of one payment: none of its details sums up several. */
const isOfOne = (entry: Element): boolean =>
  children(entry, 'NtryDtls').every((group) => ['1', null].includes(text(group, 'Btch', 'NbOfTxs')));
