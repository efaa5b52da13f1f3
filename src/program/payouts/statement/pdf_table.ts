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

interface Column {
  title: string;
  left: number;
  width: number;
  align: 'left' | 'right';
}

export interface Row {
  height: number;
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

/** A line with the height that its texts need. */
export function rowOf(doc: Document, columns: Column[], line: StatementLine, currency: string): Row {
  const cells = [
    pdfDate(line.date),
    pdfText(line.description, most_of_cell),
    pdfText(line.sale_reference ?? '', most_of_cell),
    line.sale_amount_minor === null ? '' : pdfAmount(line.sale_amount_minor, currency),
    pdfAmount(line.amount_minor, currency),
  ];
  doc.font('Helvetica').fontSize(size);
  const heights = cells.map((cell, at) =>
    cell === ''
      ? 0
      : doc.heightOfString(cell, { width: (columns[at] as Column).width }) + (at === 1 ? size_of_id + 2 : 0),
  );
  return { cells, commission_id: line.commission_id, height: Math.max(...heights) + 2 * padding };
}

/**
 * The rows of each page, and at least one page. The first page has less room, and the last has to leave some for the total.
 *
 * @param first_top where the table starts on the first page
 * @param last_height what follows the table
 */
export function pagesOf(rows: Row[], first_top: number, last_height: number): Row[][] {
  const pages: Row[][] = [[]];
  let y = first_top + header_height;
  for (const row of rows) {
    if (y + row.height > page.bottom) {
      pages.push([]);
      y = page.top + header_height;
    }
    (pages.at(-1) as Row[]).push(row);
    y += row.height;
  }
  // The total does not stand alone on a page: the last row goes with it.
  if (y + last_height > page.bottom) pages.push((pages.at(-1) as Row[]).splice(-1));
  return pages;
}

/** Draws the header and the rows from `top` on, and says where they end. */
export function drawTable(doc: Document, columns: Column[], rows: Row[], top: number): number {
  doc.font('Helvetica-Bold').fontSize(size).fillColor('black');
  for (const { title, left, width, align } of columns)
    doc.text(title, left, top + 5, { width, align, lineBreak: false });
  line(doc, top + header_height - 2, 0.8, 'black');
  let y = top + header_height;
  for (const row of rows) {
    drawRow(doc, columns, row, y);
    y += row.height;
  }
  return y;
}

function drawRow(doc: Document, columns: Column[], row: Row, top: number): void {
  doc.font('Helvetica').fontSize(size).fillColor('black');
  for (const [at, { left, width, align }] of columns.entries()) {
    if (row.cells[at]) doc.text(row.cells[at], left, top + padding, { width, align });
    if (at === 1) drawId(doc, row.commission_id, left, row.cells[1] ? doc.y : top + padding);
  }
  line(doc, top + row.height, 0.3, '#cccccc');
}

function drawId(doc: Document, commission_id: string, left: number, top: number): void {
  doc
    .fontSize(size_of_id)
    .fillColor('#666666')
    .text(commission_id, left, top + 1, { lineBreak: false });
  doc.fontSize(size).fillColor('black');
}

/** A line across the page. */
export function line(doc: Document, y: number, width: number, color: string): void {
  doc.moveTo(page.left, y).lineTo(page.right, y).lineWidth(width).strokeColor(color).stroke();
}
