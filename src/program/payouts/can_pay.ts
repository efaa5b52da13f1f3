import type { Services } from '../../core/resource/services.ts';
import { type Creditor, paymentRefusal } from './bank/transfer.ts';
import type { Balance } from './eligibility.ts';
import { isRailName, rails } from './rails/rails.ts';

/** The payout method of a partner. */
export interface PaidBy {
  partner_id: string;
  method: string;
  /** Encrypted for the partner. */
  details: Buffer | null;
}

/** The details of a payout method, in the clear. */
export const detailsOf = ({ vault }: Pick<Services, 'vault'>, { partner_id, details }: PaidBy) =>
  JSON.parse(vault.decrypt(details as Buffer, partner_id)) as Record<string, string>;

/**
 * Returns whether a partner can be paid an amount in a currency: false where a provider's rail, or a bank's file, would refuse it. Previews, batches,
 * `payout.due` and sending use the same rule. Wallets take any.
 */
export function canPay(services: Pick<Services, 'vault'>, paid_by: PaidBy, balance: Balance): boolean {
  const { method } = paid_by;
  const { amount_minor, currency } = balance;
  if (isRailName(method)) return rails[method].refuse(amount_minor, currency) === undefined;
  if (method !== 'bank_transfer' && method !== 'wire') return true;
  const creditor = detailsOf(services, paid_by) as unknown as Creditor;
  return paymentRefusal({ method, currency }, { amount_minor, creditor }) === null;
}
