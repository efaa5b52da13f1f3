import type { Statement } from './statement.ts';

const names: Record<string, string> = { paypal: 'PayPal' };

/** Returns the name of a payout method: `Bank transfer`, `PayPal`. */
export const methodText = (method: string): string =>
  names[method] ?? method.replaceAll('_', ' ').replace(/^./, (letter) => letter.toUpperCase());

/** The account, by its hint: `ends in 3000`, and `race@…` of an email address, whose hint is the end of what stands before the `@`. */
export const accountText = ({ method }: Pick<Statement['payout'], 'method'>, hint: string): string =>
  method === 'paypal' ? `…${hint}@…` : `ends in ${hint}`;
