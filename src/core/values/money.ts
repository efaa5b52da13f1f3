import { z } from 'zod';

/** Minor units of the currency beside it. Up to 2^53 - 1: every amount is exact in JSON and in JavaScript. */
export const minor = z.int();
export const minorNotNegative = z.int().min(0);

const known = new Set(Intl.supportedValuesOf('currency'));

/** ISO 4217, 3 capital letters. */
export const currency = z
  .string()
  .regex(/^[A-Z]{3}$/, 'must be 3 capital letters, such as EUR')
  .refine((code) => known.has(code), 'must be an ISO 4217 currency code')
  .meta({ description: 'ISO 4217.', examples: ['USD'] });

/** Currency of a stored record: checked when it was written. */
export const storedCurrency = z.string().length(3).describe('ISO 4217.');
