/** Amounts as Stripe counts them: minor units of ISO 4217, but for these currencies. */

/** https://docs.stripe.com/currencies#three-decimal: "the least-significant (last) digit to be 0". */
export const three_decimals = new Set(['BHD', 'JOD', 'KWD', 'OMR', 'TND']);
/** Without minor unit in ISO 4217, with hundredths of 0 at Stripe: https://docs.stripe.com/currencies#special-cases */
const hundredfold = new Set(['ISK', 'UGX']);
/** Currencies with hundredths in ISO 4217 and without at Stripe. */
export const hundredth = new Set(['MGA']);

export const stripeAmount = (amount_minor: number, currency: string): number => {
  if (hundredfold.has(currency)) return amount_minor * 100;
  return hundredth.has(currency) ? amount_minor / 100 : amount_minor;
};

/** Returns minor units of ISO 4217. A fraction of one, which Stripe never charges, is rounded. */
export const minorOfStripe = (amount: number, currency: string): number => {
  if (hundredfold.has(currency)) return Math.round(amount / 100);
  return hundredth.has(currency) ? amount * 100 : amount;
};
