/** Values as people read them: money with its currency, times in a zone, words in place of names of fields. */
import { fractionDigits } from '../core/values/money.ts';
import { type Html, html } from './html.ts';

/** The language of a page, and the zone of its times. */
export interface Reader {
  language: string;
  time_zone: string;
}

/** `$19.80`, as the reader's language writes it. @param amount_minor an integer of the currency's minor unit */
export function money(amount_minor: number, currency: string, { language }: Reader): string {
  const digits = fractionDigits(currency);
  const options = {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  } as const;
  // A decimal text, because a number has no room for all amounts.
  return new Intl.NumberFormat(language, options).format(`${amount_minor}E-${digits}` as never);
}

export const number = (value: number, { language }: Reader): string => new Intl.NumberFormat(language).format(value);

/** A time in the reader's zone, with the UTC beside it. */
export function time(at: string, { language, time_zone }: Reader): Html {
  const shown = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short', timeZone: time_zone });
  return html`<time datetime="${at}" title="${at.slice(0, 16).replace('T', ' ')} UTC">${shown.format(new Date(at))}</time>`;
}

/** A day in the reader's zone. */
export function day(at: string, { language, time_zone }: Reader): Html {
  const shown = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeZone: time_zone });
  return html`<time datetime="${at}">${shown.format(new Date(at))}</time>`;
}

/** Words that are written in capitals, or otherwise than their letters. */
const spelled: Record<string, string> = {
  id: 'ID',
  url: 'URL',
  api: 'API',
  ip: 'IP',
  csv: 'CSV',
  qr: 'QR',
  bps: '',
  epc: 'EPC',
  minor: '',
};

/** `Payout method` of `payout_method`, `Amount` of `amount_minor`, `Partner ID` of `partner_id`. */
export function words(name: string): string {
  const said = name
    .split(/[_.]/)
    .map((word) => spelled[word] ?? word)
    .filter((word) => word !== '')
    .join(' ');
  return said.charAt(0).toUpperCase() + said.slice(1);
}
