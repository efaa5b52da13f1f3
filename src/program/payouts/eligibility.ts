/** Decides which balances are paid, as pure functions on plain values: see README.md. Every `_minor` is an integer in minor units. */

/** The reasons why a balance is not paid, in order: the first that applies is reported. */
export const not_eligible_reasons = [
  'negative_balance',
  'no_payout_method',
  'payout_method_unavailable',
  'missing_tax_form',
  'partner_suspended',
  'below_minimum',
  'currency_not_supported',
] as const;
export type NotEligibleReason = (typeof not_eligible_reasons)[number];

/** The facts about a partner that decide. */
export interface Payee {
  status: string;
  min_payout_minor: number | null;
  tax_form_status: string;
  /** Null: the partner has not chosen one. */
  method: string | null;
}

/** The program's part. */
export interface PayoutTerms {
  currency: string;
  min_payout_minor: number;
  /** The minimum in other currencies. */
  min_payouts: Record<string, number>;
  payout_methods: readonly string[];
  require_tax_forms: boolean;
}

export interface Balance {
  currency: string;
  amount_minor: number;
}

/** Returns whether the partner's payout method can pay an amount in a currency. */
export type CanPay = (balance: Balance) => boolean;

/**
 * Returns why a partner's balance in a currency is not paid; undefined if it is. A balance of 0 is left to the caller. "The minimum is the partner's
 * own, else the program's, in the program's currency; in others the program's `min_payouts`, else 1."
 */
export function notEligible(
  payee: Payee,
  balance: Balance,
  terms: PayoutTerms,
  canPay: CanPay,
): NotEligibleReason | undefined {
  if (balance.amount_minor < 0) return 'negative_balance';
  return obstacle(payee, terms) ?? amountObstacle(payee, balance, terms, canPay);
}

/** Returns the reason why a partner is not paid, whatever the amount. */
function obstacle(
  { status, method, tax_form_status }: Pick<Payee, 'status' | 'method' | 'tax_form_status'>,
  { payout_methods, require_tax_forms }: Pick<PayoutTerms, 'payout_methods' | 'require_tax_forms'>,
): NotEligibleReason | undefined {
  if (method === null) return 'no_payout_method';
  if (!payout_methods.includes(method)) return 'payout_method_unavailable';
  if (require_tax_forms && tax_form_status !== 'submitted' && tax_form_status !== 'verified') return 'missing_tax_form';
  return status === 'suspended' ? 'partner_suspended' : undefined;
}

function amountObstacle(
  payee: Payee,
  balance: Balance,
  terms: PayoutTerms,
  canPay: CanPay,
): NotEligibleReason | undefined {
  if (balance.amount_minor < minimumOf(payee, balance.currency, terms)) return 'below_minimum';
  return canPay(balance) ? undefined : 'currency_not_supported';
}

/** The least balance that is paid: never below 1. */
export function minimumOf(
  { min_payout_minor }: Pick<Payee, 'min_payout_minor'>,
  currency: string,
  terms: Pick<PayoutTerms, 'currency' | 'min_payout_minor' | 'min_payouts'>,
): number {
  const minimum =
    currency === terms.currency ? (min_payout_minor ?? terms.min_payout_minor) : (terms.min_payouts[currency] ?? 1);
  return Math.max(1, minimum);
}

/** The reason in words, for `payout.not_eligible`. */
export const reason_texts: Readonly<Record<NotEligibleReason, string>> = {
  negative_balance: 'The balance is negative: clawbacks exceed what is due. It is offset by later commissions.',
  no_payout_method: 'The partner has no payout method.',
  payout_method_unavailable: "The partner's payout method is not one of the program's payout methods.",
  missing_tax_form: 'The program requires a tax form, and the partner has not submitted one, or it was rejected.',
  partner_suspended: 'The partner is suspended.',
  below_minimum: 'The balance is below the minimum for a payout.',
  currency_not_supported: "The partner's payout method cannot pay this amount in this currency.",
};

/** The reasons why a due payout was not sent: those of a batch, or something that the program lacks today. */
export const held_reasons = [
  ...not_eligible_reasons,
  'no_credentials',
  'limit_reached',
  'partner_deleted',
  'destination_not_approved',
  'payout_method_changed',
  'attempt_open',
  'service_restored',
] as const satisfies string[];
export type HeldReason = (typeof held_reasons)[number];

export const held_texts: Readonly<Record<HeldReason, string>> = {
  ...reason_texts,
  no_credentials:
    'The program has no credentials for the payout method. Set them with PUT /v1/programs/{id}/rails/{rail}.',
  limit_reached:
    'The payout would exceed what the program may send today. It can be sent tomorrow (UTC) if the limit of a day allows its amount; otherwise raise the limit.',
  partner_deleted: 'The partner is deleted. Mark the payout as paid, or delete it.',
  destination_not_approved:
    'The payout method was changed after the batch that was approved. Delete the payout: the next batch includes its commissions.',
  payout_method_changed:
    'The partner changed the payout method less than 72 hours ago. The payout can be sent when they are over, or at once if you set the payout method yourself.',
  attempt_open: 'An earlier attempt can still be paid. Retry the payout once that attempt is paid or failed.',
  service_restored:
    'The service was restored from a backup: what the payout pays may have been paid before. Send it once the operator of the service has resumed payouts.',
};
