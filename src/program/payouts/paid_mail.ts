import { buffer } from 'node:stream/consumers';
import sql from 'sql-template-tag';
import { service_opening } from '../../core/jobs/task.ts';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Attachment } from '../../core/resource/services.ts';
import { inOneLine } from '../../core/values/texts/one_line.ts';
import { queueMail } from '../../mail/outgoing.ts';
import { languageOf, textsIn } from '../partners/mails/languages.ts';
import { formatMoney } from './money_text.ts';
import { numberStatements, type StatementHead, statementFile, statementUpTo } from './payout_statement.ts';
import type { Statement } from './statement/statement.ts';

/** A statement with more lines is a file of megabytes, which mail servers refuse. */
const most_attached_lines = 20_000;

interface PaidPayout {
  program_id: string;
  /** True if the partner is notified. */
  is_notified: boolean;
}

/**
 * Gives the statement of a payout its number, and emails it to the partner: once for each time that the payout was paid, unless
 * `email_payout_paid` is off.
 */
export async function mailPaid(store: Store, organization_id: string, payout_id: string): Promise<void> {
  const within = <Result>(work: (tx: Tx) => Promise<Result>) =>
    transaction(store, { organization_id, request_id: null }, work);
  // By itself: it locks the payout, and to read its lines may take long.
  if (!(await within((tx) => numbered(tx, payout_id)))) return;
  const statement = await within((tx) => statementUpTo(tx, payout_id, most_attached_lines));
  const attachment = 'lines' in statement ? await drawn(statement) : undefined;
  await transaction(store, service_opening, (tx) => queuePaid(tx, { organization_id, statement, attachment }));
}

/** @returns whether the partner is to be notified */
async function numbered(tx: Tx, payout_id: string): Promise<boolean> {
  const paid = await tx.maybe<PaidPayout>(sql`
    select t.program_id, t.partner_notified_of is distinct from t.paid_at and p.email_payout_paid and p.deleted_at is null
        -- Before a restore, the partner was notified of what was paid, and that was forgotten.
        and not exists (select from core.hold() h where t.paid_at < h.restored_at) as is_notified
    from program.payout t
    join program.partner p on p.organization_id = t.organization_id and p.id = t.partner_id
    where ${tenant(tx)} and t.id = ${payout_id} and t.status = 'paid' and t.livemode`);
  if (!paid) return false;
  await numberStatements(tx, paid.program_id);
  return paid.is_notified;
}

/** The statement as a PDF. The package that draws is loaded with the first. */
async function drawn(statement: Statement): Promise<Attachment> {
  const { statementPdf } = await import('./statement/statement_pdf.ts');
  return {
    name: statementFile(statement, 'pdf'),
    media_type: 'application/pdf',
    content: await buffer(statementPdf(statement)),
  };
}

interface PaidMail {
  organization_id: string;
  statement: StatementHead;
  attachment: Attachment | undefined;
}

/** For the service itself: tenants cannot write mail. Nothing where another job has notified them of this payment, or it came back meanwhile. */
async function queuePaid(tx: Tx, { organization_id, statement, attachment }: PaidMail): Promise<void> {
  const { payout } = statement;
  const notified = await tx.maybe<{ recipient: string; language_code: string | null }>(sql`
    update program.payout t
    set partner_notified_of = t.paid_at
    from program.partner p
    where t.organization_id = ${organization_id} and t.id = ${payout.id} and t.status = 'paid' and t.paid_at = ${payout.paid_at}::timestamptz
      and t.partner_notified_of is distinct from t.paid_at
      and p.organization_id = t.organization_id and p.id = t.partner_id and p.email_payout_paid and p.deleted_at is null
    returning p.email as recipient, p.language_code`);
  if (!notified) return;
  const written = textsIn(languageOf(notified.language_code)).payout_paid;
  const { subject, paragraphs } = written(paymentOf(statement, attachment !== undefined, notified.language_code));
  await queueMail(tx, {
    organization_id,
    recipient: notified.recipient,
    subject: inOneLine(subject),
    text: paragraphs.map((one) => `${one}\n`).join('\n'),
    ...(attachment ? { attachment } : {}),
  });
}

/** The payment as the mail shows it, in the language of the partner. The hint of an email address is the end of what stands before the `@`. */
function paymentOf(
  { number, program, payout, period_start, period_end, currency }: StatementHead,
  is_attached: boolean,
  language_code: string | null,
) {
  const { methods, to } = textsIn(languageOf(language_code));
  const method = payout.method === null ? 'other' : (methods[payout.method as keyof typeof methods] ?? payout.method);
  const hint = payout.destination_hint ?? '';
  const from = period_start === null ? '' : `${period_start.slice(0, 10)} ${to} `;
  return {
    program: program.name,
    amount: formatMoney(payout.amount_minor, currency),
    method: method.charAt(0).toUpperCase() + method.slice(1),
    account: payout.method === 'paypal' && hint !== '' ? `…${hint}@…` : hint,
    period: `${from}${lastDate(period_end)}`,
    statement: number,
    is_attached,
    payout_id: payout.id,
  };
}

/** The last date of a period that ends before this time. */
const lastDate = (end: string): string => new Date(Date.parse(end) - 1).toISOString().slice(0, 10);
