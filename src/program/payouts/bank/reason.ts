import { children, type Element, text, textOf } from './report_xml.ts';

/** What a bank's status means for a payout. `unchanged`: it says nothing of the payment, which stays as it is known to be. */
export type BankOutcome = 'paid' | 'failed' | 'waiting' | 'unchanged';

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

/** "ACSC, ACCC → paid; RJCT, CANC → failed; others wait." A status that is not known waits too; a duplicate is no failure. */
export function bankOutcome(status: string | null, reason_code: string | null = null): BankOutcome {
  if (status === 'ACSC' || status === 'ACCC') return 'paid';
  if (status === 'RJCT' && duplicates.has(reason_code ?? '')) return 'unchanged';
  return status === 'RJCT' || status === 'CANC' ? 'failed' : 'waiting';
}

/** Why a bank did something: its code, and its words. */
export interface Reason {
  /** A code of ISO 20022, else the bank's own. */
  reason_code: string | null;
  reason_text: string | null;
}

/** The first code, one of a duplicate before others, and all words of these StsRsnInf or RtrInf. */
export function reasonOf(elements: Element[]): Reason {
  const codes = elements.map((element) => text(element, 'Rsn', 'Cd') ?? text(element, 'Rsn', 'Prtry'));
  const words = elements
    .flatMap((element) => children(element, 'AddtlInf').map(textOf))
    .filter((line) => line !== null);
  return {
    reason_code: codes.find((code) => duplicates.has(code ?? '')) ?? codes.find((code) => code !== null) ?? null,
    reason_text: words.length > 0 ? words.join(' ').slice(0, 1000) : null,
  };
}
