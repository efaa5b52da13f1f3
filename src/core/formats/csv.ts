/** CSV as RFC 4180 has it, for spreadsheets: a text that a spreadsheet would run as a formula gets an apostrophe in front, which `textOfCell` takes away. */

type Row = Record<string, unknown>;

export const headerLine = (columns: string[]): string => `${columns.map(textCell).join(',')}\r\n`;

/** Writes rows as lines: null is an empty field, an empty text is `""`, and what is nested is JSON. */
export function csvLine(columns: string[]): (row: Row) => string {
  const reads = columns.map(readerOf);
  return (row) => {
    let line = '';
    for (const [nth, read] of reads.entries()) line += nth === 0 ? cell(read(row)) : `,${cell(read(row))}`;
    return `${line}\r\n`;
  };
}

/** `stats.clicks` is the field `clicks` of the field `stats`. */
function readerOf(column: string): (row: Row) => unknown {
  const [field, inner] = column.split('.') as [string, string?];
  return inner === undefined ? (row) => row[field] : (row) => (row[field] as Row | undefined)?.[inner];
}

function cell(value: unknown): string {
  if (typeof value === 'string') return textCell(value);
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? field(JSON.stringify(value)) : String(value);
}

/** The beginnings that a spreadsheet reads as a formula. It skips tabs and carriage returns before it looks. */
const begins_formula = /^'*[=+\-@\t\r\n＝＋－＠]/;
const needs_quotes = /[",\r\n]/;

const textCell = (text: string): string => field(begins_formula.test(text) ? `'${text}` : text);

/** The text that a cell was written for. */
export const textOfCell = (cell: string): string =>
  cell.startsWith("'") && begins_formula.test(cell) ? cell.slice(1) : cell;

const field = (text: string): string =>
  text === '' || needs_quotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
