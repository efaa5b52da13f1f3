/** The rows of a file, read as it comes. */
import { pipeline, Readable } from 'node:stream';
import { parse } from 'csv-parse';
import { textOfCell } from '../../core/formats/csv.ts';
import { checkJsonText } from '../../core/http/json_text.ts';
import { Problem } from '../../core/values/problem.ts';
import { csv_options, type Described, isDeclaration, most_row_bytes } from './document.ts';

/** The field and the reason for which a row is refused. It holds nothing of the row, which is about a person. */
export interface Fault {
  field: string | null;
  reason: string;
}

export interface FileRow {
  /** The line of the file that it ends on. */
  line: number;
  /** By column. */
  values: Record<string, unknown>;
  fault?: Fault;
}

/** The rest of the file cannot be read. Its message is for the caller. */
export class UnreadableFile extends Error {}

/** @throws UnreadableFile */
export const rowsOf = (
  { format, delimiter }: Pick<Described, 'format' | 'delimiter'>,
  chunks: AsyncIterable<string>,
): AsyncGenerator<FileRow> => (format === 'csv' ? csvRows(chunks, delimiter as string) : ndjsonRows(chunks));

async function* csvRows(chunks: AsyncIterable<string>, delimiter: string): AsyncGenerator<FileRow> {
  const parser = parse({ ...csv_options, delimiter, info: true });
  let header: string[] | undefined;
  try {
    for await (const { record, info } of pipeline(Readable.from(chunks), parser, () => {})) {
      if (header) yield csvRow(header, record, info.lines);
      else if (!isDeclaration(record, delimiter)) header = record;
    }
  } catch (error) {
    throw unreadableCsv(error);
  }
}

function csvRow(header: string[], record: string[], line: number): FileRow {
  const values = Object.fromEntries(header.map((column, nth) => [column, textOfCell(record[nth]?.trim() ?? '')]));
  if (record.length <= header.length) return { line, values };
  const reason = `has ${record.length} values, and the header names ${header.length} columns`;
  return { line, values, fault: { field: null, reason } };
}

function unreadableCsv(error: unknown): unknown {
  const { code, lines } = error as { code?: string; lines?: number };
  if (code === 'CSV_MAX_RECORD_SIZE') {
    return new UnreadableFile(
      `A row before line ${lines} is longer than ${most_row_bytes} bytes. Its quotation mark may not be closed.`,
    );
  }
  if (code === 'CSV_QUOTE_NOT_CLOSED') return new UnreadableFile('The last quotation mark is not closed.');
  return code?.startsWith('CSV_') ? new UnreadableFile(`The file is not valid CSV at line ${lines}.`) : error;
}

async function* ndjsonRows(chunks: AsyncIterable<string>): AsyncGenerator<FileRow> {
  let line = 0;
  for await (const text of linesOf(chunks)) {
    line++;
    if (text.trim() !== '') yield ndjsonRow(line === 1 ? text.replace(/^\ufeff/, '') : text, line);
  }
}

/** @throws UnreadableFile */
async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  let line = 0;
  for await (const chunk of chunks) {
    // The next chunk may begin with the other half of a line end.
    const lines = (rest + chunk).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() as string;
    for (const one of lines) yield one;
    line += lines.length;
    if (rest.length > 4 * most_row_bytes) throw new UnreadableFile(`Line ${line + 1} is too long.`);
  }
  yield rest;
}

const trimmed = (values: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typeof value === 'string' ? value.trim() : value]),
  );

function ndjsonRow(text: string, line: number): FileRow {
  const refused = (reason: string): FileRow => ({ line, values: {}, fault: { field: null, reason } });
  if (text.length > most_row_bytes) return refused(`is longer than ${most_row_bytes} characters`);
  try {
    checkJsonText(text);
    const values: unknown = JSON.parse(text);
    const is_object = typeof values === 'object' && values !== null && !Array.isArray(values);
    return is_object ? { line, values: trimmed(values as Record<string, unknown>) } : refused('is not a JSON object');
  } catch (error) {
    if (error instanceof Problem || error instanceof SyntaxError) return refused('is not valid JSON');
    throw error;
  }
}
