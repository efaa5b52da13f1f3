/** Reads the format, the columns and the number of rows of a file. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parse } from 'csv-parse/sync';
import { Problem } from '../../core/values/problem.ts';
import { type Mapping, mappingOf } from './mapping.ts';

export const most_rows = 100_000;
/** The limit of a row, the header included. */
export const most_row_bytes = 65_536;
export const most_columns = 200;

export interface Described {
  format: 'csv' | 'ndjson';
  /** The delimiter of a CSV file: `,`, `;` or a tab, or the one that its first line declares. */
  delimiter: string | null;
  mapping: Mapping;
  /** The number of rows, counted by lines. */
  total: number;
}

/**
 * Describes a file, and how its columns are imported.
 * @throws Problem invalid_parameter
 */
export async function describeDocument(document: string, asked: Mapping): Promise<Described> {
  const start = document.slice(0, most_row_bytes).replace(/^\ufeff/, '');
  const described = /^\s*\{/.test(start)
    ? await describeNdjson(document, start, asked)
    : await describeCsv(document, start, asked);
  if (described.total === 0) throw refused('The file has no rows.');
  if (described.total > most_rows) {
    throw refused(`The file has ${described.total} rows, and an import takes at most ${most_rows}. Split the file.`);
  }
  return described;
}

async function describeNdjson(document: string, start: string, asked: Mapping): Promise<Described> {
  const [first = ''] = start.trimStart().split(/\r|\n/, 1);
  const mapping = mappingOf(namesOf(first), asked, false);
  return { format: 'ndjson', delimiter: null, mapping, total: await countIn(document, lineCounter()) };
}

/** @throws Problem invalid_parameter */
function namesOf(line: string): string[] {
  try {
    return Object.keys(JSON.parse(line));
  } catch {
    throw refused('The first line is not a JSON object. In NDJSON each line is one.');
  }
}

async function describeCsv(document: string, start: string, asked: Mapping): Promise<Described> {
  const declared = declaration.exec(start.trimStart());
  const rest = start.trimStart().slice(declared?.[0].length ?? 0);
  const delimiter = declared?.[1] ?? delimiterOf(rest.split(/\r\n|\r|\n/, 1)[0] as string);
  const columns = headerOf(rest, delimiter);
  if (columns.length > most_columns) {
    throw refused(`The file has ${columns.length} columns, and an import takes at most ${most_columns}.`);
  }
  const mapping = mappingOf(columns, asked, true);
  const records = await countIn(document, recordCounter(delimiter));
  return { format: 'csv', delimiter, mapping, total: Math.max(0, records - (declared ? 2 : 1)) };
}

/** The first line that Excel writes and reads, where the delimiter is not that of its region: `sep=;`. */
const declaration = /^"?sep=([^\w\s"]|\t)"?[ \t]*(?:\r\n|\r|\n|$)/i;
export const isDeclaration = (record: string[], delimiter: string): boolean => declaration.test(record.join(delimiter));

/** The one that separates most of the header. */
function delimiterOf(header: string): string {
  const plain = header.replaceAll(/"[^"]*"/g, '');
  const [most] = [',', ';', '\t'].toSorted((one, other) => plain.split(other).length - plain.split(one).length);
  return most as string;
}

/** @throws Problem invalid_parameter */
function headerOf(start: string, delimiter: string): string[] {
  try {
    const [header] = parse(start, { ...csv_options, delimiter, to: 1 }) as string[][];
    if (header?.some((column) => column !== '')) return header;
  } catch {
    // Said below.
  }
  throw refused('The first line must name the columns, such as url,name,email.');
}

export const csv_options = {
  ...{ bom: true, trim: true, relax_column_count: true, relax_quotes: true, skip_empty_lines: true },
  // A row ends with any of them, whatever the others end with.
  record_delimiter: ['\r\n', '\n', '\r'],
  max_record_size: most_row_bytes,
};

const quote = 34;
const isLineEnd = (code: number): boolean => code === 10 || code === 13;
const isSpace = (code: number): boolean => code === 32 || (code >= 9 && code <= 13);

/** Counts what the characters of a text, one after the other, come to. */
interface Counter {
  read(code: number): void;
  total(): number;
}

const slice_characters = 131_072;

/** In slices, so that other requests are answered in between: a file has many millions of characters. */
async function countIn(text: string, counter: Counter): Promise<number> {
  for (let start = 0; start < text.length; start += slice_characters) {
    if (start > 0) await nextTurn();
    const end = Math.min(text.length, start + slice_characters);
    for (let index = start; index < end; index++) counter.read(text.charCodeAt(index));
  }
  return counter.total();
}

/** Lines that hold something. */
function lineCounter(): Counter {
  let lines = 0;
  let holds_something = false;
  return {
    read(code) {
      if (!isSpace(code)) holds_something = true;
      if (!isLineEnd(code)) return;
      if (holds_something) lines++;
      holds_something = false;
    },
    total: () => (holds_something ? lines + 1 : lines),
  };
}

/** Lines of CSV that hold something; a line break in a quoted value is none. */
function recordCounter(delimiter: string): Counter {
  const separator = delimiter.charCodeAt(0);
  const lines = lineCounter();
  let is_quoted = false;
  let is_start = true;
  return {
    read(code) {
      if (code === quote && (is_quoted || is_start)) is_quoted = !is_quoted;
      is_start = code === separator || isLineEnd(code);
      // A line of separators alone is a record too.
      if (!is_quoted) lines.read(code === separator ? quote : code);
    },
    total: lines.total,
  };
}

const refused = (message: string): Problem => new Problem('invalid_parameter', message, { param: 'document' });
