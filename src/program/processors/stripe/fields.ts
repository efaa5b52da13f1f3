/** Reading the objects of Stripe's API. */
import { at, listAt, textAt } from '../../payouts/rails/answer.ts';
import { minorOfStripe } from '../../payouts/rails/stripe_amount.ts';
import { type Question, type Reading, Unreadable } from '../processor.ts';

export interface Occasion {
  /** The time of the event, ISO 8601: later by a millisecond for each rank, so that events of one second have an order. */
  at: string;
  answers: unknown[];
}

/** The id of an object that may be expanded. */
export const idAt = (value: unknown, ...path: (string | number)[]): string | undefined =>
  textAt(value, ...path) ?? textAt(value, ...path, 'id');

/** ISO 8601 of Unix seconds. Where they are none, the beginning of time: nothing is older. */
export const timeOf = (seconds: unknown, ms = 0): string =>
  new Date(typeof seconds === 'number' && Math.abs(seconds) < 8e12 ? seconds * 1000 + ms : 0).toISOString();

/** The second of an event's time: the milliseconds are its rank. */
export const secondOf = (time: string): string => `${time.slice(0, -'.000Z'.length)}.000Z`;

export const numberAt = (value: unknown, ...path: (string | number)[]): number => {
  const found = at(value, ...path);
  return typeof found === 'number' && Number.isSafeInteger(found) ? found : 0;
};

/** ISO 4217, capital letters. */
export const currencyOf = (object: unknown): string => (textAt(object, 'currency') ?? '').toUpperCase();

/** An amount of an object, in minor units of ISO 4217 of its currency. */
export const minorAt = (object: unknown, ...path: (string | number)[]): number =>
  minorOfStripe(numberAt(object, ...path), currencyOf(object));

/** The amount that a sale, a refund or a dispute is of. @throws Unreadable */
export function amountAt(object: unknown, field: string): number {
  requireAmount(object, field);
  return minorAt(object, field);
}

/** @throws Unreadable */
export function requireAmount(object: unknown, field: string): void {
  if (!Number.isSafeInteger(at(object, field))) throw new Unreadable(`${field} is not a whole number of minor units.`);
}

/** Stripe releases what is authorized and not captured by a refund, which is in no balance. */
export const movesNothing = (refund: unknown): boolean => at(refund, 'balance_transaction') === null;

/** `part` of `whole`, as far as `paid` of the whole was paid: rounded, at most what was paid. */
export function shareOf(part: number, paid: number, whole: number): number {
  if (part <= 0 || paid <= 0 || whole <= 0) return 0;
  const [p, a, w] = [BigInt(part), BigInt(paid), BigInt(whole)];
  return Number((2n * p * a + w) / (2n * w));
}

/** `clk_…` where a merchant put the click. Other references are their own. */
export const clickIn = (...texts: (string | undefined)[]): string | undefined =>
  texts.find((text) => text?.startsWith('clk_'));

export const question = (path: string, query: Record<string, string>): Question => ({
  path,
  query: { ...query, limit: '100' },
});

/** Asks for the charges of payments where somebody has recorded sales by such ids: a payment is not recorded again under its own id. */
export const askForCharges = (payments: string[]): Reading => ({
  ask: payments.map((payment_intent) => question('/v1/charges', { payment_intent })),
  where_sales_are: ['ch_'],
});

/** The ids of the charges in answers to that. */
export const chargesIn = (answers: unknown[]): string[] =>
  answers.flatMap((answer) => listAt(answer, 'data').flatMap((one) => textAt(one, 'id') ?? []));
