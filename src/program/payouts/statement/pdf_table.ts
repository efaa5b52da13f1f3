import { fontFor } from './pdf_font.ts';
import { pdfAmount, pdfDate, pdfText } from './pdf_text.ts';
import type { Statement, StatementLine } from './statement.ts';

/** The page: A4, in points. */
export const page = { left: 50, right: 545, top: 50, bottom: 775 };

type Document = PDFKit.PDFDocument;

const size = 8;
const size_of_id = 6.5;
const padding = 3.5;
const gap = 10;
/** The most of a text in a cell: some lines of it. */
const most_of_cell = 240;
const header_height = 20;

export interface Column {
  title: string;
  left: number;
  width: number;
  align: 'left' | 'right';
}

interface Row {
  cells: string[];
  commission_id: string;
}

/** The columns: those of the amounts are as wide as the widest amount, and the texts share the rest. */
export function columnsOf(doc: Document, { lines, currency, totals }: Statement): Column[] {
  doc.font('Helvetica-Bold').fontSize(size);
  const titles = [`Sale amount (${currency})`, `Amount (${currency})`] as const;
  const widest = (title: string, amounts: (number | null)[]): number =>
    amounts.reduce<number>(
      (most, amount) => (amount === null ? most : Math.max(most, doc.widthOfString(pdfAmount(amount, currency)))),
      doc.widthOfString(title),
    );
  const sale = widest(titles[0], extremes(lines.map((line) => line.sale_amount_minor)));
  const amount = widest(titles[1], [...extremes(lines.map((line) => line.amount_minor)), totals.total_minor]);
  const date = doc.widthOfString('2026-12-30');
  const rest = page.right - page.left - date - sale - amount - 4 * gap;
  const widths = [date, rest * 0.58, rest * 0.42, sale, amount];
  return ['Date', 'Description', 'Sale reference', ...titles].map((title, at) => ({
    title,
    left: page.left + widths.slice(0, at).reduce((sum, width) => sum + width + gap, 0),
    width: widths[at] as number,
    align: at > 2 ? 'right' : 'left',
  }));
}

/** The lowest and the highest: one of them is the widest. */
const extremes = (amounts: (number | null)[]): (number | null)[] => {
  const known = amounts.filter((amount) => amount !== null);
  const ends = known.reduce<[number, number] | null>(
    (ends, amount) => (ends ? [Math.min(ends[0], amount), Math.max(ends[1], amount)] : [amount, amount]),
    null,
  );
  return ends ?? [];
};

const rowOf = (line: StatementLine, currency: string): Row => ({
  cells: [
    pdfDate(line.date),
    pdfText(line.description, most_of_cell),
    pdfText(line.sale_reference ?? '', most_of_cell),
    line.sale_amount_minor === null ? '' : pdfAmount(line.sale_amount_minor, currency),
    pdfAmount(line.amount_minor, currency),
  ],
  commission_id: line.commission_id,
});

/** Below the description. */
const id_height = size_of_id + 2;
/** The tolerance between the sum of the widths of words and the width of their text. */
const slack = 2;

/** The height that the texts of a line need. The columns of the date and the amounts are as wide as these are. */
export function heightOf(doc: Document, columns: Column[], line: StatementLine): number {
  doc.fontSize(size);
  const description = textHeight(doc, columns, 1, pdfText(line.description, most_of_cell));
  const reference = textHeight(doc, columns, 2, pdfText(line.sale_reference ?? '', most_of_cell));
  return (
    Math.max(description + (description && id_height), reference, doc.font('Helvetica').currentLineHeight(true)) +
    2 * padding
  );
}

/** Most texts are of one line, which is known by their width: to break a text into lines takes far longer. */
function textHeight(doc: Document, columns: Column[], at: number, text: string): number {
  if (text === '') return 0;
  const { width } = columns[at] as Column;
  fontFor(doc, text);
  // A soft hyphen is where a line may be broken, and is not shown elsewhere.
  const is_short = !text.includes('\u00ad') && doc.widthOfString(text) <= width - slack;
  return is_short ? doc.currentLineHeight(true) : doc.heightOfString(text, { width });
}

/** Lines of a page: from the first of them to the one that the next page begins with. */
export interface Part {
  from: number;
  to: number;
}

/**
 * The lines of each page, and at least one page. The first page has less room, and the last has to leave some for the total.
 *
 * @param heights of the lines
 * @param first_top where the table starts on the first page
 * @param last_height what follows the table
 */
export function pagesOf(heights: Float64Array, first_top: number, last_height: number): Part[] {
  const pages: Part[] = [];
  let from = 0;
  let y = first_top + header_height;
  for (const [at, height] of heights.entries()) {
    if (y + height > page.bottom) {
      pages.push({ from, to: at });
      from = at;
      y = page.top + header_height;
    }
    y += height;
  }
  // The total does not stand alone on a page: the last line goes with it.
  const is_full = y + last_height > page.bottom;
  const last = is_full ? heights.length - 1 : heights.length;
  pages.push({ from, to: last });
  if (is_full) pages.push({ from: last, to: heights.length });
  return pages;
}

/** The parts that a table is drawn from. */
export interface Table {
  columns: Column[];
  lines: StatementLine[];
  heights: Float64Array;
  currency: string;
}

/** Draws the header and some lines from `top` on, and says where they end. */
export function drawTable(
  doc: Document,
  { columns, lines, heights, currency }: Table,
  { from, to }: Part,
  top: number,
): number {
  doc.font('Helvetica-Bold').fontSize(size).fillColor('black');
  for (const { title, left, width, align } of columns)
    doc.text(title, left, top + 5, { width, align, lineBreak: false });
  line(doc, top + header_height - 2, 0.8, 'black');
  let y = top + header_height;
  for (let at = from; at < to; at++) {
    const height = heights[at] as number;
    drawRow(doc, columns, rowOf(lines[at] as StatementLine, currency), { top: y, height });
    y += height;
  }
  return y;
}

function drawRow(
  doc: Document,
  columns: Column[],
  { cells, commission_id }: Row,
  { top, height }: { top: number; height: number },
): void {
  doc.font('Helvetica').fontSize(size).fillColor('black');
  // The embedded font has higher lines: a row of it is laid out as one of several lines.
  const is_of_one_line = height <= doc.currentLineHeight(true) + id_height + 2 * padding;
  for (const [at, column] of columns.entries()) {
    const text = cells[at] as string;
    const end = drawCell(doc, column, text, top + padding, { breaks: !is_of_one_line && column.align === 'left' });
    if (at === 1) drawId(doc, commission_id, column.left, end);
  }
  line(doc, top + height, 0.3, '#cccccc');
}

/** @returns where the text ends */
function drawCell(
  doc: Document,
  { left, width, align }: Column,
  text: string,
  top: number,
  { breaks }: { breaks: boolean },
): number {
  if (text === '') return top;
  fontFor(doc, text);
  if (breaks) {
    doc.text(text, left, top, { width });
    return doc.y;
  }
  const start = align === 'left' ? left : left + width - doc.widthOfString(text);
  doc.text(text, start, top, { lineBreak: false });
  return top + doc.currentLineHeight(true);
}

function drawId(doc: Document, commission_id: string, left: number, top: number): void {
  doc
    .font('Helvetica')
    .fontSize(size_of_id)
    .fillColor('#666666')
    .text(commission_id, left, top + 1, { lineBreak: false });
  doc.fontSize(size).fillColor('black');
}

/** A line across the page. */
export function line(doc: Document, y: number, width: number, color: string): void {
  doc.moveTo(page.left, y).lineTo(page.right, y).lineWidth(width).strokeColor(color).stroke();
}
