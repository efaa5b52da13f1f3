/** How the values of a record are shown. */
import { day, money, percentage, type Reader, time, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { insteadOf, type Use } from '../pages/run.ts';
import { amounts_by_currency } from '../pages/schema_fields.ts';
import { facts, table } from '../pages/table.ts';
import { type Catalog, prefixOf } from './catalog.ts';

export type Record_ = Record<string, unknown>;

interface Showing {
  catalog: Catalog;
  reader: Reader;
  /** The currencies of the programs, by their ids. */
  currencies: ReadonlyMap<string, string>;
}

/** The address of a record by its id; undefined where no page shows it. */
export function hrefOf(catalog: Catalog, id: string): string | undefined {
  const prefix = prefixOf(id);
  const tag = prefix && catalog.tagOf(prefix);
  return tag && `/dashboard/${tag}/${id}`;
}

/** Amounts have their currency beside them, or the program has it. */
const currencyIn = ({ currencies }: Showing, record: Record_): string | undefined =>
  ([record.currency, record.payout_currency].find((value) => typeof value === 'string') as string | undefined) ??
  currencies.get(String(record.program_id));

/** A number as its name says what it is: an amount, a share, or a rate that is one of them. */
function figure(showing: Showing, name: string, value: number, record: Record_): string {
  const currency = currencyIn(showing, record);
  const is_fixed = name === 'rate_value' && record.rate_type === 'fixed';
  const is_revenue = name === 'from' && record.tier_metric === 'revenue_minor';
  if ((name.endsWith('_minor') || is_fixed || is_revenue) && currency) return money(value, currency, showing.reader);
  const is_share = name.endsWith('_bps') || (name === 'rate_value' && record.rate_type === 'percent');
  return is_share ? percentage(value, showing.reader) : String(value);
}

const states = new Set(['status', 'state', 'severity', 'outcome', 'finding']);
/** Fields whose values are names that the API chose. */
const chosen_names =
  /(?:^|_)(?:status|state|kind|method|methods|type|reason|role|mode|processor|attribution|applies_to|term|metric|source|stage|purpose|setup|by|rail|trigger|error)$/;
const most_shown = 4_000;

/** `part_…z0y1x2`: enough to tell the records of a page apart. */
export const shortId = (id: string): Html => html`<span title="${id}">${id.replace(/_[0-9a-z]{20}/, '_…')}</span>`;

/**
 * The value of a field as a table or a page shows it.
 * @param is_brief in a table, where ids are shortened
 */
export function shown(
  showing: Showing,
  name: string,
  value: unknown,
  record: Record_,
  is_brief = false,
): Html | string {
  if (value === null || value === undefined || value === '') return html`<span class="hint">–</span>`;
  if (typeof value === 'boolean') return value ? 'Yes' : 'No';
  if (typeof value === 'number') return figure(showing, name, value, record);
  const related = record[name.replace(/_id$/, '')];
  if (typeof value === 'string') return shownText(showing, name, value, nameOfRelated(name, related), is_brief);
  if (Array.isArray(value) && value.every((one) => typeof one === 'string'))
    return value.length === 0
      ? html`<span class="hint">–</span>`
      : html`${value.map((one, nth) => html`${nth > 0 && ', '}${shownText(showing, name, one, undefined, is_brief)}`)}`;
  return (
    shownBelow(showing, name, value, record) ??
    html`<pre tabindex="0">${JSON.stringify(value, null, 2).slice(0, most_shown)}</pre>`
  );
}

export const isRecord = (value: unknown): value is Record_ =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object with its fields, or a table of several; undefined of what goes deeper. */
function shownBelow(showing: Showing, name: string, value: unknown, record: Record_): Html | undefined {
  const isFlat = (one: Record_) =>
    Object.values(one).every(
      (inner) => !isRecord(inner) && (!Array.isArray(inner) || inner.every((text) => typeof text === 'string')),
    );
  // A rate in it is of the kind that stands above.
  const within = (one: Record_, key: string) =>
    amounts_by_currency.has(name)
      ? shown(showing, 'amount_minor', one[key], { currency: key })
      : shown(showing, key, one[key], { ...record, ...one });
  if (isRecord(value) && isFlat(value))
    return Object.keys(value).length === 0
      ? html`<span class="hint">–</span>`
      : facts(Object.keys(value).map((key) => [nameOfKey(key), within(value, key)]));
  if (!Array.isArray(value) || !value.every((one) => isRecord(one) && isFlat(one))) return undefined;
  const keys = [...new Set(value.flatMap((one) => Object.keys(one)))];
  return table(
    words(name),
    keys.map((key) => ({ title: nameOfKey(key), cell: (row: Record_) => within(row, key) })),
    value as Record_[],
    '–',
  );
}

/** The names of fields are words; those that people gave stay as they are. */
const nameOfKey = (key: string): string => (/^[a-z]+(?:_[a-z]+)*$/.test(key) ? words(key) : key);

/** The name that people know a record by; undefined where it has none. */
export const nameIn = (record: Record_): string | undefined =>
  ['name', 'email', 'handle', 'code', 'value', 'key']
    .map((one) => record[one])
    .find((one): one is string => typeof one === 'string' && one !== '');

/** The name that stands in place of a record's id. */
const nameOfRelated = (name: string, related: unknown): string | undefined =>
  name.endsWith('_id') && isRecord(related) ? nameIn(related) : undefined;

/** Adds the record that an id in each row stands for, so that it is shown by its name. What is gone stays an id. */
export const withNamed = (use: Use, rows: Record_[], name: string, plural: string): Promise<Record_[]> =>
  Promise.all(
    rows.map(async (row) => {
      const id = row[`${name}_id`];
      if (typeof id !== 'string') return row;
      const found = await use(`${plural}.get`, { params: { id } }).catch(insteadOf(404, undefined));
      return found === undefined ? row : { ...row, [name]: found };
    }),
  );

/** Text of so many characters may be broken in a table. */
const long_text = 40;

function shownText(
  { catalog, reader }: Showing,
  name: string,
  value: string,
  known_as: string | undefined,
  is_brief: boolean,
): Html | string {
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return name.endsWith('_on') ? day(value, reader) : time(value, reader);
  const href = hrefOf(catalog, value);
  if (href) return html`<a href="${href}">${known_as ?? (is_brief ? shortId(value) : value)}</a>`;
  if (states.has(name)) return html`<span class="status">${value.replaceAll('_', ' ')}</span>`;
  if (chosen_names.test(name) && /^[a-z]+(?:_[a-z0-9]+)+$/.test(value)) return value.replaceAll('_', ' ');
  const text = value.length > long_text ? html`<span class="long">${value}</span>` : value;
  return /^https?:\/\//.test(value) ? html`<a href="${value}" rel="noreferrer noopener">${text}</a>` : text;
}
