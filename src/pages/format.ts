/** Values as people read them: money with its currency, times in a zone, words in place of names of fields. */
import { fractionDigits } from '../core/values/money.ts';
import { type Html, html } from './html.ts';

/** The language of a page, and the zone of its times. Days are those of UTC, as payouts and reports have them. */
export interface Reader {
  language: string;
  time_zone: string;
}

type Format = Intl.NumberFormat | Intl.DateTimeFormat;

/** The formats of a reader. To make one costs as much as to write a hundred values with it. */
const formats = new WeakMap<Reader, Map<string, Format>>();
function formatOf<One extends Format>(reader: Reader, name: string, make: () => One): One {
  const own = formats.get(reader) ?? new Map<string, Format>();
  formats.set(reader, own);
  const format = own.get(name) ?? make();
  own.set(name, format);
  return format as One;
}

/** `$19.80`, as the reader's language writes it. @param amount_minor an integer of the currency's minor unit */
export function money(amount_minor: number, currency: string, reader: Reader): string {
  const digits = fractionDigits(currency);
  const format = formatOf(reader, currency, () => {
    const fraction = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return new Intl.NumberFormat(reader.language, { style: 'currency', currency, ...fraction });
  });
  // A decimal text, because a number has no room for all amounts.
  return format.format(`${amount_minor}E-${digits}` as never);
}

export const number = (value: number, reader: Reader): string =>
  formatOf(reader, 'number', () => new Intl.NumberFormat(reader.language)).format(value);

/** `12.5%`, as the reader's language writes it. @param bps basis points */
export const percentage = (bps: number, reader: Reader): string =>
  formatOf(reader, 'percent', () => {
    return new Intl.NumberFormat(reader.language, { style: 'percent', maximumFractionDigits: 2 });
  }).format(bps / 10_000);

/** Lists of a page are counted so far: further, a count costs more as they grow, and tells nobody more. */
export const counts_to = 1_000;

/** `total_count` of a list that a page has read: `12`, or `1,000+`. */
export const counted = (total_count: number, reader: Reader): string =>
  total_count === counts_to + 1 ? `${number(counts_to, reader)}+` : number(total_count, reader);

const date = { year: 'numeric', month: 'short', day: 'numeric' } as const;
const with_zone: Intl.DateTimeFormatOptions = {
  ...date,
  ...{ hour: 'numeric', minute: '2-digit', timeZoneName: 'short' },
};

/** A time in the reader's zone, which it names, with the UTC beside it. */
export function time(at: string, reader: Reader): Html {
  const { language, time_zone: timeZone } = reader;
  const shown = formatOf(reader, 'time', () => new Intl.DateTimeFormat(language, { ...with_zone, timeZone }));
  return html`<time datetime="${at}">${shown.format(new Date(at))}</time>${timeZone !== 'UTC' && html` <span class="hint">${at.slice(0, 16).replace('T', ' ')} UTC</span>`}`;
}

/** `Nov 29, 2026`: a day of UTC. */
export const dayText = (at: string, reader: Reader): string =>
  formatOf(reader, 'day', () => new Intl.DateTimeFormat(reader.language, { ...date, timeZone: 'UTC' })).format(
    new Date(at),
  );

/** A period of a report: a day as it is read, and a week or a month as it is named. */
export const periodText = (period: string, reader: Reader): string =>
  /^\d{4}-\d\d-\d\d$/.test(period) ? dayText(period, reader) : period;

export const day = (at: string, reader: Reader): Html => html`<time datetime="${at}">${dayText(at, reader)}</time>`;

/** Words that are written in capitals, or otherwise than their letters. */
const spelled: Record<string, string> = {
  id: 'ID',
  ids: 'IDs',
  url: 'URL',
  urls: 'URLs',
  api: 'API',
  ip: 'IP',
  csv: 'CSV',
  qr: 'QR',
  html: 'HTML',
  oauth: 'OAuth',
  smtp: 'SMTP',
  imap: 'IMAP',
  iban: 'IBAN',
  bic: 'BIC',
  livemode: 'live mode',
  s: '(seconds)',
  bps: '',
  epc: 'EPC',
  paypal: 'PayPal',
  youtube: 'YouTube',
  tiktok: 'TikTok',
  minor: '',
};

/** `Payout method` of `payout_method`, `Amount` of `amount_minor`, `Partner ID` of `partner_id`. */
export function words(name: string): string {
  const said = name
    .split(/[_.]/)
    .map((word) => spelled[word] ?? word)
    .filter((word) => word !== '')
    .join(' ');
  return capitalized(said);
}

/** `URL` stays as it is. */
export const uncapitalized = (text: string): string =>
  /^[A-Z]{2}/.test(text) ? text : text.charAt(0).toLowerCase() + text.slice(1);

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
