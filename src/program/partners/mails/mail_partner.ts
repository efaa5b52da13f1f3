/** Kept apart from the texts of the mails, which no process that serves requests loads. */
import type { Tx } from '../../../core/postgres/transaction.ts';
import { newId } from '../../../core/values/id.ts';
import type { MailAbout } from './partner_mail.ts';

/** Mails a partner once this transaction has committed, by a job in the service's own name, because tenants cannot write mail. */
export const mailPartner = (tx: Tx, partner_id: string, about: MailAbout, id = newId('mail')): void =>
  tx.enqueue('program/mail_partner', { organization_id: tx.organization_id, id, partner_id, at: tx.now, about });
