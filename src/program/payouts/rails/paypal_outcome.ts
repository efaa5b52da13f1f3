import { minorOf } from './amount.ts';
import { at, listAt, quoted, textAt } from './answer.ts';
import type { PayoutErrorCode, RailOutcome, Transfer } from './rail.ts';

/** Names of PayPal's errors of a batch and of an item; all others are `provider_rejected`. */
const error_codes: Readonly<Record<string, PayoutErrorCode>> = {
  INSUFFICIENT_FUNDS: 'insufficient_funds',
  RECEIVER_ACCOUNT_LOCKED: 'account_closed',
  RECEIVER_ACCOUNT_INVALID: 'recipient_invalid',
  RECEIVER_COUNTRY_NOT_ALLOWED: 'recipient_invalid',
  RECEIVER_REFUSED: 'recipient_invalid',
  INVALID_EMAIL: 'recipient_invalid',
  SELF_PAY_NOT_ALLOWED: 'recipient_invalid',
  RECEIVER_UNREGISTERED: 'recipient_unclaimed',
  RECEIVER_UNCONFIRMED: 'recipient_unclaimed',
  RISK_DECLINE: 'compliance_hold',
  SPENDING_LIMIT_EXCEEDED: 'limit_exceeded',
  RECEIVING_LIMIT_EXCEEDED: 'limit_exceeded',
  TRANSACTION_LIMIT_EXCEEDED: 'limit_exceeded',
  NON_HOLDING_CURRENCY: 'currency_not_supported',
  CURRENCY_NOT_SUPPORTED_FOR_RECEIVER: 'currency_not_supported',
};

export function errorCodeOf(name: string | undefined, details: unknown[] = []): PayoutErrorCode {
  const concerns = (field: RegExp) => details.some((detail) => field.test(textAt(detail, 'field') ?? ''));
  if (name === 'VALIDATION_ERROR' && concerns(/receiver/i)) return 'recipient_invalid';
  if (name === 'VALIDATION_ERROR' && concerns(/currency/i)) return 'currency_not_supported';
  return error_codes[name ?? ''] ?? 'provider_rejected';
}

/** PayPal's own words: `NAME: message (issue; issue)`. */
export function messageOf(error: unknown, secrets: readonly string[]): string {
  const issues = listAt(error, 'details').flatMap((detail) => textAt(detail, 'issue') ?? []);
  const words = [textAt(error, 'name'), textAt(error, 'message')].filter((word) => word !== undefined).join(': ');
  return quoted(issues.length === 0 ? words : `${words} (${issues.join('; ')})`, secrets) || 'PayPal gave no reason.';
}

/** Returns the outcome of a batch's one item (`GET /v1/payments/payouts/{id}`). A batch's success is not an item's success. */
export function outcomeOfBatch(
  batch: unknown,
  transfer: Transfer,
  { now, secrets }: { now: Date; secrets: readonly string[] },
): RailOutcome {
  const item = listAt(batch, 'items').find(
    (each) => textAt(each, 'payout_item', 'sender_item_id') === transfer.idempotency_key,
  );
  const batch_status = textAt(batch, 'batch_header', 'batch_status');
  const reference = textAt(item, 'payout_item_id') ?? null;
  const error = at(item, 'errors') ?? at(batch, 'batch_header', 'errors') ?? at(batch, 'errors');
  const failed = (error_code: PayoutErrorCode): RailOutcome => ({
    status: 'failed',
    reference,
    error_code,
    error_message: messageOf(error, secrets),
  });
  switch (textAt(item, 'transaction_status')) {
    case 'SUCCESS':
      return { status: 'paid', reference, paid_at: paidAt(item, now), fee_minor: feeOf(item, transfer) };
    case 'FAILED':
    case 'DENIED':
      return failed(errorCodeOf(textAt(error, 'name'), listAt(error, 'details')));
    case 'BLOCKED':
      return failed('compliance_hold');
    case 'RETURNED':
      return failed('recipient_unclaimed');
    case 'REFUNDED':
    case 'REVERSED':
      return { status: 'returned', reference, error_code: 'returned', error_message: messageOf(error, secrets) };
    case 'UNCLAIMED':
      return {
        status: 'processing',
        reference,
        note: `The recipient has not claimed it. ${messageOf(error, secrets)}`,
      };
    case 'ONHOLD':
    case 'ON_HOLD':
      return { status: 'processing', reference, note: `PayPal holds it back. ${messageOf(error, secrets)}` };
    default:
      if (batch_status === 'DENIED' || batch_status === 'CANCELED') return failed(errorCodeOf(textAt(error, 'name')));
      return { status: 'processing', reference };
  }
}

function paidAt(item: unknown, now: Date): string {
  const processed = new Date(textAt(item, 'time_processed') ?? Number.NaN);
  return (Number.isNaN(processed.getTime()) ? now : processed).toISOString();
}

/** PayPal may charge the fee in another currency than the payout's: then it is not known here. */
function feeOf(item: unknown, { currency }: Transfer): number | null {
  const fee = textAt(item, 'payout_item_fee', 'value');
  return fee !== undefined && textAt(item, 'payout_item_fee', 'currency') === currency ? minorOf(fee, currency) : null;
}
