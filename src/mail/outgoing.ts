/** Mail to the people of an organization. Nothing else knows how mail is sent. */
import sql from 'sql-template-tag';
import type { TaskContext } from '../core/jobs/worker_context.ts';
import { type Database, run } from '../core/postgres/database.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import { newId } from '../core/values/id.ts';
import type { MailNotSent } from './smtp.ts';

export interface Draft {
  organization_id: string;
  /** Null where nobody is known: then it is logged. */
  recipient: string | null;
  /** One line. */
  subject: string;
  text: string;
}

interface Mail extends Draft {
  id: string;
  created_at: string;
}

/** Writes a mail in the transaction of what it tells; it is sent once that has committed. */
export async function queueMail(tx: Tx, { organization_id, recipient, subject, text }: Draft): Promise<string> {
  const id = newId('mail');
  await tx.all(sql`
    insert into core.outgoing_mail (organization_id, id, recipient, subject, text, created_at)
    values (${organization_id}, ${id}, ${recipient}, ${subject}, ${text}, ${tx.now}::timestamptz)
    returning id`);
  tx.enqueue('core/send_mail', { organization_id, id });
  return id;
}

/**
 * Sends a queued mail: counts the attempt, hands it over, writes what came of it. "At least once": when the process dies, or Postgres is
 * lost, after the server took the mail and before that is written, it is sent again, with the same Message-ID. Without an SMTP server
 * or a recipient it is logged, and that is all.
 * @throws Error to be tried again
 */
export async function sendMail(of: { organization_id: string; id: string }, context: TaskContext): Promise<void> {
  const { store, services, log, cut_off } = context;
  const mail = await unsent(store.database, of);
  if (!mail) return;
  const { recipient } = mail;
  if (!services.mailer || recipient === null) {
    const obstacle = services.mailer ? 'The organization has no owner with an email address.' : 'SMTP_URL is not set.';
    log.warn({ mail }, `a mail is logged instead of sent: ${obstacle}`);
    return settle(store.database, mail, obstacle);
  }
  await countAttempt(store.database, mail);
  try {
    await services.mailer({ ...mail, recipient }, cut_off);
  } catch (error) {
    const { message, permanent } = error as MailNotSent;
    await settle(store.database, mail, message);
    // What the server said may name the recipient, which is for the row and not for the log.
    if (!permanent) throw new Error(`${mail.id} was not sent; core.outgoing_mail says why.`);
    log.error({ mail_id: mail.id, organization_id: mail.organization_id }, 'the SMTP server refused a mail for good');
    return;
  }
  await settle(store.database, mail, null);
}

async function unsent(
  database: Database,
  { organization_id, id }: Pick<Mail, 'organization_id' | 'id'>,
): Promise<Mail | undefined> {
  const [mail] = await run<Mail>(
    database,
    sql`
      select m.organization_id, m.id, m.recipient, m.subject, m.text, m.created_at
      from core.outgoing_mail m
      where m.organization_id = ${organization_id} and m.id = ${id} and m.sent_at is null`,
  );
  return mail;
}

const countAttempt = (database: Database, { organization_id, id }: Mail) =>
  run(
    database,
    sql`update core.outgoing_mail set attempts = attempts + 1 where organization_id = ${organization_id} and id = ${id}`,
  );

async function settle(database: Database, { organization_id, id }: Mail, error: string | null): Promise<void> {
  await run(
    database,
    sql`
      update core.outgoing_mail
      set error = ${error}, sent_at = case when ${error}::text is null then now() end
      where organization_id = ${organization_id} and id = ${id}`,
  );
}
