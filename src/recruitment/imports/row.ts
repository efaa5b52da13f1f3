import { z } from 'zod';
import { email, text } from '../../core/values/fields.ts';
import { pathOfUnstorable } from '../../core/values/texts/stored_text.ts';
import { reasonOf } from '../../core/values/validation.ts';
import type { Intended } from '../contact/add_to_new.ts';
import { channel } from '../events/fields.ts';
import { canonicalKey, channelOf, contradicts, profileUrl } from '../pages/key.ts';
import type { NewProspect } from '../prospects/create.ts';
import { described } from '../prospects/read.ts';
import { fieldOfHeader, type Mapping } from './mapping.ts';
import type { Fault, FileRow } from './rows.ts';

/** A row of the file as a prospect, or why it is none. */
export interface Row {
  line: number;
  prospect?: NewProspect;
  /** True if the row itself names the URL. */
  has_url?: boolean;
  email?: string | undefined;
  fault?: Fault;
}

const Fields = z.strictObject({
  ...z.strictObject(described).partial().shape,
  channel: channel.optional(),
  key: text.max(2048).optional(),
  email: email.optional(),
});

/** A row as a prospect, and its address as it would be added. */
export type PreparedRow = Row & { address?: Intended };

/** Reads a row. Fields that are empty are left as they are. */
export function readRow({ line, values, fault }: FileRow, brand_id: string, mapping: Mapping): Row {
  if (fault) return { line, fault };
  const fields = fieldsOf(values, mapping);
  if ('fault' in fields) return { line, fault: fields.fault };
  const unstorable = pathOfUnstorable(fields.given);
  if (unstorable) return refused(line, unstorable[0] ?? 'custom', 'holds a character that cannot be stored');
  const read = Fields.safeParse(fields.given);
  if (!read.success) {
    const [issue] = read.error.issues;
    if (typeof fields.given.followers === 'string' && issue?.path[0] === 'followers') {
      return refused(line, 'followers', 'must be a whole number, such as 12000, 12,000 or 1.2M');
    }
    return refused(line, issue?.path.join('.') || null, issue ? reasonOf(issue) : 'is not valid');
  }
  return { line, ...known(read.data, brand_id) };
}

function known(
  { email: address, channel: named, key, url, ...rest }: z.infer<typeof Fields>,
  brand_id: string,
): Omit<Row, 'line'> {
  const given = key ?? url ?? undefined;
  if (given === undefined) return { fault: { field: 'url', reason: "is required, unless 'key' is given" } };
  const in_channel = named ?? (url ? channelOf(url) : undefined) ?? 'website';
  const canonical = canonicalKey(in_channel, given);
  if (canonical === undefined) {
    const reason = `does not identify a prospect in the channel ${in_channel}: send the URL of their own site, or of their account`;
    return { fault: { field: key === undefined ? 'url' : 'key', reason } };
  }
  if (url && key !== undefined && contradicts(in_channel, canonical, url)) {
    return { fault: { field: 'url', reason: "is of another prospect than 'key'" } };
  }
  const where = { channel: in_channel, key: canonical, url: url ?? profileUrl(in_channel, canonical) };
  return { prospect: { brand_id, ...where, ...(rest as Partial<NewProspect>) }, has_url: url != null, email: address };
}

/** Returns the row's values by field, each in its type. */
function fieldsOf(
  values: Record<string, unknown>,
  mapping: Mapping,
): { given: Record<string, unknown> } | { fault: Fault } {
  const given: Record<string, unknown> = {};
  const custom: [string, unknown][] = [];
  for (const [column, value] of Object.entries(values)) {
    const field = Object.hasOwn(mapping, column) ? mapping[column] : (fieldOfHeader(column) ?? ownOf(column));
    if (field === undefined) return { fault: { field: null, reason: 'has a field that is not known and not mapped' } };
    if (field === null || value === undefined || value === null || value === '') continue;
    if (field === 'custom' && typeof value === 'object' && !Array.isArray(value)) custom.push(...Object.entries(value));
    else if (field.startsWith('custom.')) custom.push([field.slice('custom.'.length), value]);
    else given[field] = inItsType(field, value);
  }
  if (custom.length > 0) given.custom = Object.fromEntries(custom);
  return { given };
}

const ownOf = (column: string): string | undefined => (column === 'custom' ? column : undefined);

function inItsType(field: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (field === 'followers') return wholeNumber(value) ?? value;
  if (field === 'channel') return value.toLowerCase();
  if (field === 'url' && !/^[a-z][a-z0-9+.-]*:\/\//i.test(value)) return `https://${value}`;
  return value;
}

const refused = (line: number, field: string | null, reason: string): Row => ({ line, fault: { field, reason } });

/** Whole numbers as people and tools write them. Undefined for what may be two different numbers, and for what is none. */
function wholeNumber(text: string): number | undefined {
  if (/^-?\d+$/.test(text)) return Number(text);
  if (grouped.test(text)) return Number(text.replace(/\D/g, ''));
  const [, plain] = /^(\d+)[.,]0{1,2}$/.exec(text) ?? [];
  if (plain !== undefined) return Number(plain);
  const [, whole, part = '', unit] = /^(\d{1,6})(?:[.,](\d{1,2}))? ?(k|m)$/i.exec(text) ?? [];
  if (whole === undefined || unit === undefined) return undefined;
  const zeros = unit.toLowerCase() === 'k' ? 3 : 6;
  return Number(whole + part.padEnd(zeros, '0'));
}

/** `12.000` as well as `12,000`: what is counted has no fractions. The same sign stands between all groups. */
const grouped = /^[1-9]\d{0,2}([.,'’_ \u00a0\u202f\u2009])\d{3}(?:\1\d{3})*$/;
