import { fontFor } from './pdf_font.ts';
import { line, page } from './pdf_table.ts';
import { isCut, pdfAmount, pdfDate, pdfText } from './pdf_text.ts';
import type { Statement } from './statement.ts';

type Document = PDFKit.PDFDocument;

const middle = 310;
const width = page.right - middle;
const label_width = 82;
/** The characters of a name: some lines. */
const most_of_name = 200;

/** Draws the head of the first page, above the table: who, what and how much. Returns the position at which it ends. */
export function drawHead(doc: Document, statement: Statement): number {
  doc.font('Helvetica-Bold').fontSize(17).fillColor('black').text('Payout statement', page.left, page.top);
  const program = pdfText(statement.program.name, most_of_name);
  fontFor(doc, program).fontSize(9).fillColor('#444444').text(program, { width: 400 });
  const top = doc.y + 14;
  line(doc, top, 0.8, 'black');
  const parties_end = drawParties(doc, statement, top + 12);
  const facts_end = drawFacts(doc, factsOf(statement), top + 12);
  return drawTotals(doc, statement, Math.max(parties_end, facts_end) + 14) + 18;
}

function drawParties(doc: Document, statement: Statement, top: number): number {
  const { program, partner } = statement;
  const column = { width: middle - page.left - 20 };
  const party = (title: string, lines: string[], y: number): number => {
    doc.font('Helvetica').fontSize(7.5).fillColor('#666666').text(title, page.left, y, column);
    const [name = '', ...others] = lines;
    fontFor(doc, name, 'bold')
      .fontSize(9.5)
      .fillColor('black')
      .text(name, page.left, doc.y + 2, column);
    for (const other of others)
      fontFor(doc, other)
        .fontSize(8.5)
        .text(other, page.left, doc.y + 1.5, column);
    return doc.y;
  };
  const has_email = partner.email !== null && partner.email !== partner.name;
  const email = has_email ? [pdfText(partner.email as string, most_of_name)] : [];
  const end = party('Paid to', [pdfText(partner.name, most_of_name), ...email, partner.id], top);
  const end_of_names = party('Paid by', [pdfText(program.name, most_of_name), program.id], end + 10);
  if (!isCut(statement)) return end_of_names;
  doc
    .font('Helvetica')
    .fontSize(7.5)
    .fillColor('#666666')
    .text(cut_note, page.left, end_of_names + 8, column);
  return doc.y;
}

const cut_note =
  '[…] stands for characters that this document has no font for. They are in the statement as JSON (format=json).';

/** The facts of the payout, each with its label. What is not known is left out. */
function factsOf({ number, livemode, payout, period_start, period_end, currency }: Statement): [string, string][] {
  const facts: [string, string | null][] = [
    ['Statement', pdfText(number, 60)],
    ['Mode', livemode ? null : 'Test: nobody is paid'],
    ['Payout', payout.id],
    ['Period', `${period_start ? `${pdfDate(period_start)} to ` : 'until '}${lastDate(period_end)}`],
    ['Status', payout.status.replace(/^./, (letter) => letter.toUpperCase())],
    ['Paid on', payout.paid_at && pdfDate(payout.paid_at)],
    ['Method', payout.method && methodText(payout.method)],
    ['Account', payout.destination_hint && pdfText(accountText(payout, payout.destination_hint), 30)],
    ['Payment reference', payout.external_id && pdfText(payout.external_id, 140)],
    ['Fee of the payment', payout.fee_minor ? `${pdfAmount(payout.fee_minor, currency)} ${currency}` : null],
    ['Currency', currency],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== null);
}

/** The last date of a period that ends before this time: `2026-10-31` for the start of November. */
const lastDate = (end: string): string => pdfDate(new Date(new Date(end).getTime() - 1).toISOString());

function drawFacts(doc: Document, facts: [string, string][], top: number): number {
  let y = top;
  doc.fontSize(8.5);
  for (const [label, value] of facts) {
    doc.font('Helvetica').fillColor('#666666').text(label, middle, y, { width: label_width });
    fontFor(doc, value)
      .fillColor('black')
      .text(value, middle + label_width, y, { width: width - label_width });
    y = doc.y + 2.5;
  }
  return y;
}

function drawTotals(doc: Document, { totals, currency }: Statement, top: number): number {
  const sums: [string, number][] = [
    ['Commissions', totals.earned_minor],
    ['Bonuses', totals.bonus_minor],
    ['Clawbacks', totals.clawed_back_minor],
  ];
  line(doc, top, 0.3, '#cccccc');
  let y = top + 7;
  for (const [label, amount] of sums) y = drawSum(doc, label, `${pdfAmount(amount, currency)} ${currency}`, y, false);
  doc.moveTo(middle, y).lineTo(page.right, y).lineWidth(0.8).strokeColor('black').stroke();
  return drawSum(doc, 'Total', `${pdfAmount(totals.total_minor, currency)} ${currency}`, y + 5, true);
}

/** A label with an amount at the right margin. Says where the next one starts. */
export function drawSum(doc: Document, label: string, amount: string, top: number, is_total: boolean): number {
  doc
    .font(is_total ? 'Helvetica-Bold' : 'Helvetica')
    .fontSize(is_total ? 10 : 8.5)
    .fillColor('black');
  doc.text(label, middle, top, { width: label_width, lineBreak: false });
  doc.text(amount, middle + label_width, top, { width: width - label_width, align: 'right', lineBreak: false });
  return top + (is_total ? 14 : 13);
}

const names: Record<string, string> = { paypal: 'PayPal' };

/** Returns the name of a payout method: `Bank transfer`, `PayPal`. */
const methodText = (method: string): string =>
  names[method] ?? method.replaceAll('_', ' ').replace(/^./, (letter) => letter.toUpperCase());

/** The account, by its hint: `ends in 3000`, and `race@…` of an email address, whose hint is the end of what stands before the `@`. */
const accountText = ({ method }: Pick<Statement['payout'], 'method'>, hint: string): string =>
  method === 'paypal' ? `…${hint}@…` : `ends in ${hint}`;
