/** How the values of a record are shown. */
import { day, money, type Reader, time } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import type { Catalog } from './catalog.ts';

export type Record_ = Record<string, unknown>;

interface Showing {
  catalog: Catalog;
  reader: Reader;
}

/** The address of a record by its id; undefined where no page shows it. */
export function hrefOf({ tags_by_prefix }: Catalog, id: string): string | undefined {
  const prefix = /^(?:sample_)?([a-z_]+)_[0-9a-z]{26}$/.exec(id)?.[1];
  const tag = prefix && tags_by_prefix.get(prefix);
  return tag && `/dashboard/${tag}/${id}`;
}

/** Amounts have their currency beside them, or the program has it. */
const currencyIn = (record: Record_): string | undefined =>
  ['currency', 'payout_currency'].map((name) => record[name]).find((value) => typeof value === 'string') as
    | string
    | undefined;

const states = new Set(['status', 'state', 'severity', 'outcome', 'finding']);
const most_shown = 4_000;

/** The value of a field as a table or a page shows it. */
export function shown({ catalog, reader }: Showing, name: string, value: unknown, record: Record_): Html | string {
  if (value === null || value === undefined || value === '') return html`<span class="hint">–</span>`;
  if (typeof value === 'boolean') return value ? 'Yes' : 'No';
  if (typeof value === 'number') {
    const currency = currencyIn(record);
    if (name.endsWith('_minor') && currency) return money(value, currency, reader);
    return name.endsWith('_bps') ? `${value / 100} %` : String(value);
  }
  if (typeof value === 'string') return shownText({ catalog, reader }, name, value);
  if (Array.isArray(value) && value.every((one) => typeof one === 'string'))
    return html`${value.map((one, nth) => html`${nth > 0 && ', '}${shownText({ catalog, reader }, name, one)}`)}`;
  return html`<pre tabindex="0">${JSON.stringify(value, null, 2).slice(0, most_shown)}</pre>`;
}

function shownText({ catalog, reader }: Showing, name: string, value: string): Html | string {
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return name.endsWith('_on') ? day(value, reader) : time(value, reader);
  const href = hrefOf(catalog, value);
  if (href) return html`<a href="${href}">${value}</a>`;
  if (states.has(name)) return html`<span class="status">${value.replaceAll('_', ' ')}</span>`;
  if (/^https?:\/\//.test(value)) return html`<a href="${value}" rel="noreferrer noopener">${value}</a>`;
  return value;
}
