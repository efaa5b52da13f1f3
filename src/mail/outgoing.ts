/** Mail to the people of an organization. Nothing else knows how mail is sent. */
import sql from 'sql-template-tag';
import { service_opening } from '../core/jobs/task.ts';
import type { TaskContext } from '../core/jobs/worker_context.ts';
import { counter } from '../core/metrics/registry.ts';
import { holdState } from '../core/postgres/hold.ts';
import { type Tx, transaction } from '../core/postgres/transaction.ts';
import type { Attachment, Mail, Mailer } from '../core/resource/services.ts';
import { newId } from '../core/values/id.ts';
import type { MailNotSent } from './smtp.ts';

const mails = counter(
  'rail_mails_total',
  {
    help: 'Mails to people of organizations, at each attempt: sent, retrying (not sent, and tried again), refused (by the SMTP server, for good), or logged (there is no SMTP server or recipient).',
    row: 'Is it well',
    title: 'Mails to people of organizations',
    alerts: [
      {
        name: 'RailMailFails',
        expr: 'sum(increase(rail_mails_total{outcome=~"retrying|refused"}[30m])) > (sum(increase(rail_mails_total{outcome="sent"}[30m])) or vector(0))',
        for: '30m',
        severity: 'warning',
        summary: 'Most mails to people of organizations are not sent.',
        remedy: 'The column error of core.outgoing_mail says why. Check SMTP_URL and MAIL_FROM.',
      },
    ],
  },
  ['outcome'],
);

export interface Draft {
  organization_id: string;
  /** The id, where the writer may run twice: the mail is written once. */
  id?: string;
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
  { organization_id, id = newId('mail'), recipient, subject, text, html, attachment }: Draft,
): Promise<string> {
  const written = await tx.all(sql`
    insert into core.outgoing_mail (
      organization_id, id, recipient, subject, text, html, attachment_name, attachment_type, attachment, created_at
    )
    values (
      ${organization_id}, ${id}, ${recipient}, ${subject}, ${text}, ${html ?? null}, ${attachment?.name ?? null},
      ${attachment?.media_type ?? null}, ${attachment?.content ?? null}, ${tx.now}::timestamptz
    )
    on conflict (organization_id, id) do nothing
    returning id`);
  if (written.length === 0) return id;
  tx.enqueue('core/send_mail', { organization_id, id });
  return id;
}

/** The interval at which the end of the hold is looked for. */
const held_ms = 60_000;

interface QueuedMail {
  organization_id: string;
  id: string;
}

/**
 * Sends a queued mail: counts the attempt, hands the mail over in no transaction, and writes what the server said. SMTP has no look-up, so "at least
 * once": when the process dies, or Postgres is lost, after the server took the mail and before that is written, it is sent again, with the same
 * Message-ID. Without an SMTP server or a recipient it is logged, and that is all. After a restore, what is older is not sent: nobody can tell whether
 * it was.
 * @throws Error to be tried again
 */
export async function sendMail(queued: QueuedMail, { store, services, log, cut_off }: TaskContext): Promise<void> {
  const { mailer } = services;
  const mail = await transaction(store, service_opening, (tx) => begin(tx, queued, mailer, log));
  if (!mail || !mailer) return;
  const failure = await mailer(mail, cut_off).then(
    () => undefined,
    (error: MailNotSent) => error,
  );
  await transaction(store, service_opening, (tx) => record(tx, queued, failure?.message ?? null));
  mails.inc({ outcome: failure === undefined ? 'sent' : failure.permanent ? 'refused' : 'retrying' });
  if (!failure) return;
  const { organization_id, id } = queued;
  // The reason may hold what belongs to the tenant: it is for the row, and not for the job or the log.
  if (!failure.permanent) throw new Error(`The mail ${id} was not sent, its row says why; it is tried again.`);
  log.error({ mail_id: id, organization_id }, 'the SMTP server refused a mail for good');
}

/** @returns undefined where there is nothing to send, or no way to send it */
async function begin(
  tx: Tx,
  queued: QueuedMail,
  mailer: Mailer | undefined,
  log: TaskContext['log'],
): Promise<Mail | undefined> {
  const mail = await unsent(tx, queued);
  if (!mail) return undefined;
  const { is_held, restored_at } = await holdState(tx);
  if (is_held) {
    tx.enqueue('core/send_mail', queued, { run_at: new Date(Date.parse(tx.now) + held_ms).toISOString() });
    return undefined;
  }
  if (restored_at !== null && mail.created_at < restored_at) {
    await record(tx, queued, 'It may have been sent before the database was restored.');
    return undefined;
  }
  const { recipient, attachment, ...content } = mail;
  if (mailer && recipient !== null) {
    await tx.all(sql`
      update core.outgoing_mail set attempts = attempts + 1 where organization_id = ${queued.organization_id} and id = ${queued.id}`);
    return { ...content, recipient, attachment };
  }
  const obstacle = mailer ? 'The organization has no owner with an email address.' : 'SMTP_URL is not set.';
  log.warn(
    { mail: { ...content, recipient, attachment: attachment?.name } },
    `a mail is logged instead of sent: ${obstacle}`,
  );
  await record(tx, queued, obstacle);
  mails.inc({ outcome: 'logged' });
  return undefined;
}

type Unsent = Omit<Mail, 'recipient'> & { recipient: string | null };

async function unsent(tx: Tx, { organization_id, id }: QueuedMail): Promise<Unsent | undefined> {
  const mail = await tx.maybe<
    Omit<Unsent, 'attachment'> & { name: string | null; media_type: string; content: Buffer }
  >(sql`
    select m.organization_id, m.id, m.recipient, m.subject, m.text, m.html, m.created_at, m.attachment_name as name,
      m.attachment_type as media_type, m.attachment as content
    from core.outgoing_mail m
    where m.organization_id = ${organization_id} and m.id = ${id} and m.sent_at is null
    for update`);
  if (!mail) return undefined;
  const { name, media_type, content, ...rest } = mail;
  return { ...rest, attachment: name === null ? null : { name, media_type, content } };
}

const record = (tx: Tx, { organization_id, id }: QueuedMail, error: string | null): Promise<object[]> =>
  tx.all(sql`
    update core.outgoing_mail
    set error = ${error}, sent_at = case when ${error}::text is null then now() end
    where organization_id = ${organization_id} and id = ${id}`);
