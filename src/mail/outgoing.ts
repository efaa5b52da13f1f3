/** Mail to the people of an organization. Nothing else knows how mail is sent. */
import sql from 'sql-template-tag';
import { type Channel, type IntentRow, makeCall, type Outcome } from '../core/jobs/outbox.ts';
import { service_opening } from '../core/jobs/task.ts';
import type { TaskContext } from '../core/jobs/worker_context.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import type { Attachment, Mail, Mailer } from '../core/resource/services.ts';
import { newId } from '../core/values/id.ts';
import type { MailNotSent } from './smtp.ts';

export interface Draft {
  organization_id: string;
  /** Null where nobody is known: then it is logged. */
  recipient: string | null;
  /** One line. */
  subject: string;
  text: string;
  /** The same for mail programs that show HTML. */
  html?: string;
  attachment?: Attachment;
}

/** Writes a mail in the transaction of what it reports; it is sent once that has committed. */
export async function queueMail(
  tx: Tx,
  { organization_id, recipient, subject, text, html, attachment }: Draft,
): Promise<string> {
  const id = newId('mail');
  await tx.all(sql`
    insert into core.outgoing_mail (
      organization_id, id, recipient, subject, text, html, attachment_name, attachment_type, attachment, created_at
    )
    values (
      ${organization_id}, ${id}, ${recipient}, ${subject}, ${text}, ${html ?? null}, ${attachment?.name ?? null},
      ${attachment?.media_type ?? null}, ${attachment?.content ?? null}, ${tx.now}::timestamptz
    )
    returning id`);
  tx.enqueue('core/send_mail', { organization_id, id });
  return id;
}

/**
 * Sends a queued mail through the outbox. SMTP has no look-up, so "at least once": when the process dies, or Postgres is lost, after the
 * server took the mail and before that is written, it is sent again, with the same Message-ID. Without an SMTP server or a recipient it
 * is logged, and that is all.
 * @throws Error to be tried again
 */
export async function sendMail(row: IntentRow, context: TaskContext): Promise<void> {
  const outcome = await makeCall(smtpChannel(context), row, context);
  if (outcome?.status !== 'refused') return;
  const { organization_id, id } = row;
  context.log.error({ mail_id: id, organization_id }, 'the SMTP server refused a mail for good');
}

const smtpChannel = ({ services: { mailer }, log }: TaskContext): Channel<Mail> => ({
  opening: () => service_opening,
  async read(tx, row) {
    const mail = await unsent(tx, row);
    if (!mail) return undefined;
    const { attempts, recipient, attachment, ...content } = mail;
    if (mailer && recipient !== null)
      return { request: { ...content, recipient, attachment }, attempts, in_doubt: false };
    const obstacle = mailer ? 'The organization has no owner with an email address.' : 'SMTP_URL is not set.';
    log.warn(
      { mail: { ...content, recipient, attachment: attachment?.name } },
      `a mail is logged instead of sent: ${obstacle}`,
    );
    await record(tx, row, obstacle);
    return undefined;
  },
  begin: (tx, { organization_id, id, number }) =>
    tx.all(sql`
      update core.outgoing_mail set attempts = ${number} where organization_id = ${organization_id} and id = ${id}`),
  call: ({ request }, cut_off) => handOver(mailer as Mailer, request, cut_off),
  record: (tx, row, outcome) => record(tx, row, outcome.status === 'succeeded' ? null : outcome.reason),
});

/** A mail that the server took, but whose answer was lost, cannot be distinguished from one that it did not take. */
async function handOver(mailer: Mailer, mail: Mail, cut_off: AbortSignal): Promise<Outcome> {
  try {
    await mailer(mail, cut_off);
    return { status: 'succeeded', reference: null };
  } catch (error) {
    const { message, permanent } = error as MailNotSent;
    return { status: permanent ? 'refused' : 'later', reason: message };
  }
}

type Unsent = Omit<Mail, 'recipient'> & { recipient: string | null; attempts: number };

async function unsent(tx: Tx, { organization_id, id }: IntentRow): Promise<Unsent | undefined> {
  const mail = await tx.maybe<
    Omit<Unsent, 'attachment'> & { name: string | null; media_type: string; content: Buffer }
  >(sql`
    select m.organization_id, m.id, m.recipient, m.subject, m.text, m.html, m.created_at, m.attempts, m.attachment_name as name,
      m.attachment_type as media_type, m.attachment as content
    from core.outgoing_mail m
    where m.organization_id = ${organization_id} and m.id = ${id} and m.sent_at is null
    for update`);
  if (!mail) return undefined;
  const { name, media_type, content, ...rest } = mail;
  return { ...rest, attachment: name === null ? null : { name, media_type, content } };
}

const record = (tx: Tx, { organization_id, id }: IntentRow, error: string | null): Promise<object[]> =>
  tx.all(sql`
    update core.outgoing_mail
    set error = ${error}, sent_at = case when ${error}::text is null then now() end
    where organization_id = ${organization_id} and id = ${id}`);
