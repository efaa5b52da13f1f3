import { csvLine, headerLine } from './csv.ts';
import { media_types, type StreamFormat } from './format.ts';
import { jsonText } from './json_text.ts';

type Row = Record<string, unknown>;

/** All rows of an answer, as they go out in CSV or NDJSON. */
export interface RowStream {
  /** The name of its file, without the extension. */
  name: string;
  /** The columns of CSV, in their order: fields of the rows, and `stats.clicks` for a field within one. */
  columns: string[];
  rows: Iterable<object[]> | AsyncIterable<object[]>;
}

/** An answer that is a file. */
export interface FileStream {
  /** The name, with its extension. */
  name: string;
  media_type: string;
  chunks: AsyncIterable<string | Buffer>;
}

const byte_order_mark = '\ufeff';

/** The rows as a file. @param bom whether CSV begins with a byte order mark */
export const fileOf = (stream: RowStream, format: StreamFormat, bom = false): FileStream => ({
  name: `${stream.name}.${format}`,
  media_type: `${media_types[format]}; charset=utf-8`,
  chunks: textOf(stream, format, format === 'csv' && bom ? byte_order_mark : ''),
});

/** Rows that are at hand: a report's. */
export const rowStream = (name: string, columns: string[], rows: object[]): RowStream => ({
  name,
  columns,
  rows: [rows],
});

/** The text of a stream, a chunk for each batch of rows. The first one begins with the header. */
export async function* textOf({ columns, rows }: RowStream, format: StreamFormat, start = ''): AsyncGenerator<string> {
  const lineOf = format === 'csv' ? csvLine(columns) : jsonLine;
  let header = start + (format === 'csv' ? headerLine(columns) : '');
  for await (const batch of rows) {
    let text = header;
    for (const row of batch) text += lineOf(row as Row);
    header = '';
    if (text !== '') yield text;
  }
  if (header !== '') yield header;
}

const jsonLine = (row: Row): string => `${jsonText(row)}\n`;
