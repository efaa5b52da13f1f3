import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import PDFDocument from 'pdfkit';
import { drawHead, drawSum } from './pdf_head.ts';
import { columnsOf, drawTable, line, page, pagesOf, type Row, rowOf } from './pdf_table.ts';
import { pdfAmount, pdfText } from './pdf_text.ts';
import { requireThatItAddsUp, type Statement } from './statement.ts';

const total_height = 30;
const footer_top = 795;
/** Rows that are measured before others get their turn. */
const rows_at_once = 500;

/**
 * The statement as a PDF, A4, in the standard font Helvetica (`pdfText` says what becomes of characters that it lacks). The same statement
 * gives the same bytes. Pages are written as they are drawn, and other work of the process goes on between them.
 *
 * @throws RangeError when the statement does not add up
 */
export function statementPdf(statement: Statement): Readable {
  requireThatItAddsUp(statement);
  const doc = new PDFDocument({
    size: 'A4',
    margin: 0,
    autoFirstPage: false,
    lang: 'en',
    displayTitle: true,
    info: {
      Title: `Payout statement ${pdfText(statement.number, 60)}`,
      Author: pdfText(statement.program.name, 200),
      Creator: 'Rail',
      Producer: 'Rail',
      // Not the time of drawing, which would make each copy another file.
      CreationDate: new Date(statement.payout.paid_at ?? statement.period_end),
    },
  });
  draw(doc, statement).catch((error) => doc.destroy(error));
  return doc as unknown as Readable;
}

async function draw(doc: PDFKit.PDFDocument, statement: Statement): Promise<void> {
  doc.addPage();
  const first_top = drawHead(doc, statement);
  const columns = columnsOf(doc, statement);
  const pages = pagesOf(await measured(doc, columns, statement), first_top, total_height);
  for (const [at, rows] of pages.entries()) {
    if (at > 0) doc.addPage();
    const end = drawTable(doc, columns, rows, at === 0 ? first_top : page.top);
    if (at === pages.length - 1) drawTotal(doc, statement, end);
    drawFooter(doc, statement, `Page ${at + 1} of ${pages.length}`);
    await setImmediate();
  }
  doc.end();
}

async function measured(
  doc: PDFKit.PDFDocument,
  columns: ReturnType<typeof columnsOf>,
  { lines, currency }: Statement,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [at, statement_line] of lines.entries()) {
    rows.push(rowOf(doc, columns, statement_line, currency));
    if (at % rows_at_once === 0) await setImmediate();
  }
  return rows;
}

function drawTotal(doc: PDFKit.PDFDocument, { lines, totals, currency }: Statement, top: number): void {
  line(doc, top + 1, 0.8, 'black');
  doc.font('Helvetica').fontSize(8.5).fillColor('black');
  doc.text(`${lines.length} ${lines.length === 1 ? 'line' : 'lines'}`, page.left, top + 10, { lineBreak: false });
  drawSum(doc, 'Total', `${pdfAmount(totals.total_minor, currency)} ${currency}`, top + 9, true);
}

function drawFooter(doc: PDFKit.PDFDocument, { number, payout }: Statement, page_number: string): void {
  line(doc, footer_top - 6, 0.3, '#cccccc');
  doc.font('Helvetica').fontSize(7).fillColor('#666666');
  const text = `Statement ${pdfText(number, 30)} · ${payout.id} · Dates in UTC`;
  doc.text(text, page.left, footer_top, { lineBreak: false });
  doc.text(page_number, page.left, footer_top, { width: page.right - page.left, align: 'right', lineBreak: false });
}
