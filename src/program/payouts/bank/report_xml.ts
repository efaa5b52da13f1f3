import { XMLParser } from 'fast-xml-parser';
import { fileText } from '../../../core/formats/file_text.ts';
import { Problem } from '../../../core/values/problem.ts';

/**
 * The XML of a bank's report, read within bounds: its size, elements and depth are limited, and it has no document type, so no entities of its
 * own. Name space prefixes and attributes except the currency are left out, and so is what no payout needs.
 */

/** 10 MiB, some 25,000 transfers. */
const most_bytes = 10 * 1024 * 1024;
const most_tags = 800_000;
const most_depth = 40;
/** From one `<` to the next: a tag with its attributes, and a text. The schemas hold 2,048 characters of a text at most. */
const most_of_element = 10_000;
/** The length of a text that is copied. */
const most_of_text = 1000;

/** An element: its text, or its children by their names. */
export type Element = string | { readonly [name: string]: unknown };

/** Large parts of each payment that repeat what Rail has sent. */
const left_out = new Set(['OrgnlTxRef', 'RltdPties', 'RltdAgts', 'RmtInf', 'BkTxCd', 'Chrgs', 'Intrst', 'SplmtryData']);

const parser = new XMLParser({
  removeNSPrefix: true,
  ignoreAttributes: (name: string) => name !== 'Ccy',
  parseTagValue: false,
  isArray: () => true,
  maxNestedTags: most_depth,
  ignoreDeclaration: true,
  ignorePiTags: true,
  htmlEntities: true,
  jPath: false,
  updateTag: (name: string) => (left_out.has(name) ? false : name),
});

/** @throws Problem invalid_parameter for a file that is no XML, or exceeds a bound */
export function parseReport(file: Uint8Array | string): Element {
  const xml = decoded(file);
  const doctype = /<!(?:DOCTYPE|ENTITY)/i.exec(xml);
  if (doctype)
    throw refused(`The report has a ${doctype[0]} declaration, which no bank report needs. Remove the declaration.`);
  requireBoundedElements(xml);
  requireKnownEntities(xml);
  try {
    return parser.parse(xml, true) as Element;
  } catch (error) {
    throw refused(`The report is not valid XML: ${reasonOf(error)} Send the file as the bank supplied it.`);
  }
}

export const refused = (message: string): Problem => new Problem('invalid_parameter', message);

function decoded(file: Uint8Array | string): string {
  const size = typeof file === 'string' ? Buffer.byteLength(file) : file.length;
  if (size > most_bytes)
    throw refused(
      `The report has ${size} bytes, and the limit is ${most_bytes}. Ask the bank for several reports with fewer payments each.`,
    );
  const text = typeof file === 'string' ? file : textIn(file);
  if (text.includes('\0')) throw refused('The report has NUL characters. Save it as UTF-8 and send it again.');
  if (text.trim() === '') throw refused('The report is empty. Send the file that the bank supplied.');
  return text.replace(/^\uFEFF/, '').trim();
}

function textIn(bytes: Uint8Array): string {
  const text = fileText(bytes);
  if (text !== undefined) return text;
  throw refused(
    'The report is not valid UTF-8, nor in another encoding that it names. Save it as UTF-8 and send it again.',
  );
}

/** The parser's time and memory follow from the number of elements and their lengths, more than from the size. */
function requireBoundedElements(xml: string): void {
  let tags = 0;
  for (let at = xml.indexOf('<'), next = 0; at !== -1; at = next) {
    next = xml.indexOf('<', at + 1);
    if ((next === -1 ? xml.length : next) - at > most_of_element)
      throw refused(
        `An element of the report has more than ${most_of_element} characters. No bank report has such texts.`,
      );
    tags += 1;
  }
  if (tags <= most_tags) return;
  throw refused(
    `The report has ${tags} tags, and the limit is ${most_tags}. Ask the bank for several reports with fewer payments each.`,
  );
}

/** Without a document type there are five entities. In a file with CDATA, where `&` stands for itself, others are left as they are. */
function requireKnownEntities(xml: string): void {
  if (xml.includes('<![CDATA[')) return;
  const [entity] = /&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-f]{1,6});)[^\s<;]{0,30};?/i.exec(xml) ?? [];
  if (entity !== undefined) throw refused(`The report has the unknown entity '${entity}'. Write '&' as '&amp;'.`);
}

/** The parser's message on one line, with the place written out. */
const reasonOf = (error: unknown): string =>
  String((error as Error).message)
    .replace(/:(\d+):(\w+)$/, ' (line $1)')
    .replace(/\s+/g, ' ')
    .slice(0, 200)
    .replace(/\.?$/, '.');

/** The elements of this name directly below. */
export function children(element: Element | undefined, name: string): Element[] {
  if (typeof element !== 'object' || !Object.hasOwn(element, name)) return [];
  return element[name] as Element[];
}

/**
 * The one element at the end of the path.
 *
 * @throws Problem when one of its names stands there twice: which one counts would be a guess
 */
export function child(element: Element | undefined, ...path: string[]): Element | undefined {
  return path.reduce<Element | undefined>((parent, name) => {
    const [first, ...others] = children(parent, name);
    if (others.length > 0) throw refused(`The element ${name} occurs ${others.length + 1} times, and one is allowed.`);
    return first;
  }, element);
}

/** The text of the one element at the end of the path, without control characters, at most 1,000 characters. Null if there is none. */
export const text = (element: Element | undefined, ...path: string[]): string | null => textOf(child(element, ...path));

export function textOf(element: Element | undefined): string | null {
  const value = typeof element === 'object' ? element['#text'] : element;
  if (typeof value !== 'string') return null;
  // Postgres stores neither NUL nor half a surrogate pair, which `&#0;` and `&#xD800;` stand for.
  const text = value
    .slice(0, most_of_text)
    .replace(/[\p{Cc}\p{Cs}]+/gu, ' ')
    .trim();
  return text === '' ? null : text;
}

/** The currency of an amount. Null if there is none. */
export function currencyOf(amount: Element | undefined): string | null {
  const [currency] = children(amount, '@_Ccy');
  return typeof currency === 'string' ? currency : null;
}

/**
 * A date or time of the bank as ISO 8601 in UTC. A time without a zone is taken as UTC, a date as its midnight. Null if there is none.
 *
 * @throws Problem when it is no date
 */
export function timeOf(element: Element | undefined, name: string): string | null {
  const written = text(element, name) ?? text(element, name, 'DtTm') ?? text(element, name, 'Dt');
  if (written === null) return null;
  const [, date, time = 'T00:00:00', zone = 'Z'] =
    /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}:\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}:\d{2})?$/.exec(written) ?? [];
  const moment = new Date(`${date}${time.slice(0, 13)}${zone}`);
  if (date !== undefined && !Number.isNaN(moment.getTime())) return moment.toISOString();
  throw refused(`${name} is '${written}', which is not a date such as 2026-11-30 or 2026-11-30T10:00:00Z.`);
}
