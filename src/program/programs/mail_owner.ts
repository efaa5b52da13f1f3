import type { Tx } from '../../core/postgres/transaction.ts';
import { newId } from '../../core/values/id.ts';

/** The email to the owner of an organization. */
interface OwnerMail {
  organization_id: string;
  subject: string;
  text: string;
}

/**
 * Emails the owner once this transaction has committed, by a job in the service's own name, because tenants cannot write mail. The id of the mail is
 * made here: a job that runs twice writes it once.
 */
export const mailOwner = (tx: Tx, mail: OwnerMail): void =>
  tx.enqueue('program/mail_owner', { ...mail, id: newId('mail') });
