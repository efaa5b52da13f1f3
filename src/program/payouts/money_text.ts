import { decimal } from './bank/amount.ts';

/** An amount for people to read, exact whatever its size: `USD 1,234.50`, `JPY 1,234`. */
export function formatMoney(amount_minor: number, currency: string): string {
  const [whole = '', fraction] = decimal(amount_minor, currency).split('.');
  const grouped = whole.replaceAll(/\B(?=(\d{3})+$)/g, ',');
  return `${currency} ${fraction === undefined ? grouped : `${grouped}.${fraction}`}`;
}
