import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import PDFDocument from 'pdfkit';
import { drawHead, drawSum } from './pdf_head.ts';
import { type Column, columnsOf, drawTable, heightOf, line, page, pagesOf } from './pdf_table.ts';
import { pdfAmount, pdfText } from './pdf_text.ts';
import { requireThatItAddsUp, type Statement } from './statement.ts';

const total_height = 30;
const footer_top = 795;
/** Lines that are measured before others get their turn. */
const lines_at_once = 200;

/**
 * The statement as a PDF, A4, in Helvetica and, for what that lacks, an embedded font. The same statement
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
  const taken = readerOf(doc);
  doc.addPage();
  const first_top = drawHead(doc, statement);
  const columns = columnsOf(doc, statement);
  const { lines, currency } = statement;
  const table = { columns, lines, currency, heights: await heightsOf(doc, columns, statement) };
  const pages = pagesOf(table.heights, first_top, total_height);
  for (const [at, part] of pages.entries()) {
    if (at > 0) doc.addPage();
    const end = drawTable(doc, table, part, at === 0 ? first_top : page.top);
    if (at === pages.length - 1) drawTotal(doc, statement, end);
    drawFooter(doc, statement, `Page ${at + 1} of ${pages.length}`);
    await taken();
    if (doc.destroyed) return;
  }
  doc.end();
}

/** @returns what gives others their turn, and waits until the reader of the document has taken most of what was drawn, or has gone */
function readerOf(doc: PDFKit.PDFDocument): () => Promise<void> {
  let wake = () => {};
  doc._read = () => wake();
  doc.once('close', () => wake());
  return async () => {
    await setImmediate();
    while (doc.readableLength > doc.readableHighWaterMark && !doc.destroyed)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  };
}

async function heightsOf(doc: PDFKit.PDFDocument, columns: Column[], { lines }: Statement): Promise<Float64Array> {
  const heights = new Float64Array(lines.length);
  for (const [at, statement_line] of lines.entries()) {
    heights[at] = heightOf(doc, columns, statement_line);
    if (at % lines_at_once === 0) await setImmediate();
  }
  return heights;
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
