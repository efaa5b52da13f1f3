import { children, type Element, text, textOf } from './report_xml.ts';

/**
 * The meaning of a bank's status for a payout. `unchanged`: the bank has the payment, whose known status stays. `doubtful`: a rejection that does not
 * say for certain that the payment was not made.
 */
export type BankOutcome = 'paid' | 'failed' | 'waiting' | 'unchanged' | 'doubtful';

export type BankErrorCode =
  | 'insufficient_funds'
  | 'account_closed'
  | 'limit_exceeded'
  | 'currency_not_supported'
  | 'recipient_invalid'
  | 'compliance_hold'
  | 'provider_rejected';

/** Reason codes of ISO 20022 (ExternalStatusReason1Code). */
const error_codes: Record<string, BankErrorCode> = {
  AM04: 'insufficient_funds',
  AC04: 'account_closed',
  AM02: 'limit_exceeded',
  AM03: 'currency_not_supported',
  AC01: 'recipient_invalid',
  RC01: 'recipient_invalid',
  BE04: 'recipient_invalid',
  RR01: 'compliance_hold',
  RR02: 'compliance_hold',
  RR03: 'compliance_hold',
  RR04: 'compliance_hold',
};

/** The error code of a rejection. `provider_rejected` for each reason that has none of its own, and without a reason. */
export const bankErrorCode = (reason_code: string | null): BankErrorCode =>
  error_codes[reason_code ?? ''] ?? 'provider_rejected';

/**
 * The reasons of a rejection that is none of the payment: the bank has it already, and has refused to take it twice. A file, a block, a payment,
 * its EndToEndId or instruction that is there before (DU01 to DU05), a duplicate (AM05, DUPL), a reference that is not the only one (RF01).
 */
const duplicates = new Set(['DU01', 'DU02', 'DU03', 'DU04', 'DU05', 'AM05', 'DUPL', 'RF01']);

/** The codes above and the words that banks write instead, in the languages of SEPA: in their own codes, or in a text beside any code. */
const duplicate_words =
  /\bDU0[1-5]\b|\bAM05\b|dupl|doppel|doppi|doubl|dobl|dubbel|twice|already (?:been )?(?:rec|proc|exec|paid|book|exist)|bereits (?:eing|verarb|ausgef|vorh)|d[ée]j[àa]/i;

/** A failure of the payment: its accounts, amount, parties, banks, regulatory details, or a bank that does not carry it out. */
const of_payment =
  /^(?:AC(?:0[1-9]|1[0-6])|AG(?:0[1-8]|1[0-2])|AM(?:0[1-4679]|1[1-57]|2[0-3])|BE\d\d|CNOR|CURR|DNOR|ED0[15]|MD07|MS0[23]|RC\d\d|RR\d\d|SL1[1-4])$/;
/** A failure of what was uploaded: its format, dates, totals or time. */
const of_form = /^(?:AM1[0689]|CH\d\d|DT\d\d|FF\d\d|TM01)$/;

/** The reason of a bank: its code, and its words. */
export interface Reason {
  /** A code of ISO 20022, else the bank's own. */
  reason_code: string | null;
  reason_text: string | null;
}

export const saysDuplicate = ({ reason_code, reason_text }: Reason): boolean =>
  duplicates.has(reason_code ?? '') || duplicate_words.test(`${reason_code ?? ''} ${reason_text ?? ''}`);

export const isOfForm = ({ reason_code }: Reason): boolean => of_form.test(reason_code ?? '');

const isDefinite = (code: string): boolean => of_payment.test(code) || of_form.test(code);

/**
 * "ACSC, ACCC → paid; RJCT, CANC → failed; others wait." A status that is not known waits too. A rejection is a failure for a reason that means
 * one, and for no other: a payment that was made, and is sent again, is paid twice.
 */
export function bankOutcome(status: string | null, reason: Reason): BankOutcome {
  if (status === 'ACSC' || status === 'ACCC') return 'paid';
  if (status !== 'RJCT' && status !== 'CANC') return 'waiting';
  if (duplicates.has(reason.reason_code ?? '')) return 'unchanged';
  return isDefinite(reason.reason_code ?? '') && !saysDuplicate(reason) ? 'failed' : 'doubtful';
}

/** The code that decides, in capitals: one of a duplicate before a definite failure before others. And all words of these StsRsnInf or RtrInf. */
export function reasonOf(elements: Element[]): Reason {
  const codes = elements
    .map((element) => text(element, 'Rsn', 'Cd') ?? text(element, 'Rsn', 'Prtry'))
    .filter((code) => code !== null)
    .map((code) => code.toUpperCase());
  const words = elements
    .flatMap((element) => children(element, 'AddtlInf').map(textOf))
    .filter((line) => line !== null);
  const deciding = [(code: string) => duplicates.has(code), (code: string) => duplicate_words.test(code), isDefinite];
  const found = deciding.map((decides) => codes.find(decides)).find((code) => code !== undefined);
  return {
    reason_code: found ?? codes[0] ?? null,
    reason_text: words.length > 0 ? words.join(' ').slice(0, 1000) : null,
  };
}
