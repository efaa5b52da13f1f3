import type { CanPay } from './eligibility.ts';
import { isRailName, rails } from './rails/rails.ts';

/** Whether a payout method can pay an amount in a currency: what a provider's rail refuses before it is asked. Banks and wallets take any. */
export const canPay: CanPay = (method, { amount_minor, currency }) =>
  !isRailName(method) || rails[method].refuse(amount_minor, currency) === undefined;
