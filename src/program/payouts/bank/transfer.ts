import { isValidBIC, isValidIBAN } from 'ibantools';
import { fractionDigits } from '../../../core/values/money.ts';
import { sepaText } from './latin.ts';

/** The creditor: the details of a payout method, by IBAN or by an account in the United States. */
export type Creditor =
  | { account_holder: string; iban: string; bic: string }
  | { account_holder: string; account_number: string; routing_number: string };

export interface Transfer {
  /** The attempt's key, `<pyt_id>-<n>`: the EndToEndId. */
  key: string;
  amount_minor: number;
  creditor: Creditor;
  /** The text on the partner's bank statement. Empty: none. */
  remittance: string;
}

export type BankMethod = 'bank_transfer' | 'wire';

/** The terms that all payments of an information block share. */
export interface BlockTerms {
  method: BankMethod;
  currency: string;
}

/** 70 characters of a name: the limit of SEPA. The schema would hold 140. */
export const most_of_name = 70;
/** The highest amount of a SEPA credit transfer, in cents. */
const most_of_sepa = 99_999_999_999;

/** `SEPA` for a bank transfer in EUR, `URGP` for a wire, none for a bank transfer in another currency: the bank chooses by the country. */
export function serviceLevel({ method, currency }: BlockTerms): 'SEPA' | 'URGP' | null {
  if (method === 'wire') return 'URGP';
  return currency === 'EUR' ? 'SEPA' : null;
}

/**
 * Returns the reason why a transfer cannot be written to a file, as a sentence, or null. Ask before the file is frozen: one such transfer makes the
 * file impossible to write.
 */
export function transferRefusal(terms: BlockTerms, transfer: Transfer): string | null {
  const { key } = transfer;
  if (!/^[A-Za-z0-9_-]{1,35}$/.test(key)) return `The key '${key}' is not 1 to 35 letters, digits, '_' and '-'.`;
  return paymentRefusal(terms, transfer);
}

/** Returns the reason why nobody can be paid so by a file, whatever the key. */
export function paymentRefusal(
  terms: BlockTerms,
  { amount_minor, creditor }: Pick<Transfer, 'amount_minor' | 'creditor'>,
): string | null {
  if (!Number.isSafeInteger(amount_minor) || amount_minor <= 0)
    return `The amount ${amount_minor} is not a positive integer.`;
  if (sepaText(creditor.account_holder, most_of_name) === '')
    return 'The account holder has no name that can be written.';
  return accountRefusal(creditor) ?? sepaRefusal(terms, amount_minor, creditor);
}

function accountRefusal(creditor: Creditor): string | null {
  if (!('iban' in creditor)) {
    if (!/^[0-9]{1,34}$/.test(creditor.account_number)) return 'The account number is not 1 to 34 digits.';
    return /^[0-9]{9}$/.test(creditor.routing_number) ? null : 'The routing number is not 9 digits.';
  }
  if (!isValidIBAN(creditor.iban)) return 'The IBAN is not valid.';
  return isValidBIC(creditor.bic) ? null : 'The BIC is not valid.';
}

function sepaRefusal(terms: BlockTerms, amount_minor: number, creditor: Creditor): string | null {
  if (serviceLevel(terms) !== 'SEPA') return null;
  if (!('iban' in creditor)) return 'A bank transfer in EUR needs an IBAN. The account has a routing number.';
  return amount_minor > most_of_sepa ? 'The amount is above 999,999,999.99 EUR, the most that SEPA transfers.' : null;
}

/** Returns the largest number of digits of the currencies. */
export const mostDigits = (currencies: string[]): number => Math.max(0, ...currencies.map(fractionDigits));
