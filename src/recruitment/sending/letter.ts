/** The bytes of a message, made from its row: the same ones each time. Its Date is that of its claim, so that the copy in the Sent folder is the same. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { composeMail, type Mail, stepKey } from '../composing/mail.ts';
import { type KeyedHash, keyedHash } from '../prospects/keyed_hash.ts';
import { footerOf } from '../unsubscribing/link.ts';
import type { Letter } from './hand_over.ts';

/** The parts that a letter is composed of. */
export interface Draft {
  message_id: string;
  mail: Mail;
}

interface Row {
  id: string;
  subject: string;
  body_text: string;
  body_html: string | null;
  rfc_message_id: string;
  purpose: string;
  campaign_id: string | null;
  prospect_id: string | null;
  step_index: number | null;
  in_reply_to: string | null;
  reference_ids: string[];
  has_footer: boolean;
  recipient: Buffer | null;
  dated_at: string;
  from_name: string;
  from_email: string;
  reply_to: string | null;
  signature: string | null;
  brand_name: string;
  sender_company: string | null;
  postal_address: string | null;
  privacy_url: string | null;
  language_code: string | null;
  email_address_id: string | null;
  address: Buffer | null;
  source_url: string | null;
}

/** Reads those of the messages whose text and recipient are still known: an erased prospect's are not. */
export async function draftsOf(tx: Tx, vault: Vault, base_url: string, message_ids: string[]): Promise<Draft[]> {
  if (message_ids.length === 0) return [];
  const [rows, hash] = await Promise.all([
    tx.all<Row>(sql`
      select t.id, t.purpose, t.campaign_id, t.prospect_id, t.step_index, t.subject, t.body_text, t.body_html, t.rfc_message_id, t.in_reply_to, t.reference_ids, t.has_footer, t.recipient, coalesce(t.claimed_at, t.created_at) as dated_at,
        i.from_name, i.email as from_email, i.reply_to, i.signature,
        b.name as brand_name, b.sender_company, b.postal_address, b.privacy_url, p.language_code, a.id as email_address_id, a.address, a.source_url
      from recruitment.message t
      join recruitment.inbox i on i.organization_id = t.organization_id and i.id = t.inbox_id
      join recruitment.brand b on b.organization_id = t.organization_id and b.id = t.brand_id
      left join recruitment.prospect p on p.organization_id = t.organization_id and p.id = t.prospect_id
      left join recruitment.email_address a on a.organization_id = t.organization_id and a.id = t.email_address_id
      where ${tenant(tx)} and t.id = any(${message_ids}) and t.subject is not null and t.body_text is not null
        and (t.recipient is not null or a.id is not null)`),
    keyedHash(tx, vault),
  ]);
  return rows.map((row) => ({
    message_id: row.id,
    mail: mailOf(row, { vault, hash, base_url, organization_id: tx.organization_id }),
  }));
}

interface Signing {
  vault: Vault;
  hash: KeyedHash;
  base_url: string;
  organization_id: string;
}

const mailOf = (row: Row, signing: Signing): Mail => ({
  from: { name: row.from_name, email: row.from_email },
  to: recipientOf(row, signing.vault),
  reply_to: row.reply_to,
  subject: row.subject,
  text: row.body_text,
  html: row.body_html,
  message_id: `<${row.rfc_message_id}>`,
  step_key: stepKeyOf(row),
  in_reply_to: row.in_reply_to && `<${row.in_reply_to}>`,
  references: row.reference_ids.map((id) => `<${id}>`).join(' ') || null,
  date: new Date(row.dated_at),
  footer: row.has_footer
    ? footerOf(signing.hash, signing.base_url, {
        ...{ organization_id: signing.organization_id, message_id: row.id, inbox_email: row.from_email },
        brand: { ...row, name: row.brand_name },
        ...{ source_url: row.source_url, language_code: row.language_code },
      })
    : null,
  signature: row.signature,
});

function stepKeyOf({ purpose, campaign_id, prospect_id, step_index }: Row): string | null {
  if (purpose !== 'sequence' || campaign_id === null || prospect_id === null || step_index === null) return null;
  return stepKey({ campaign_id, prospect_id, step_index });
}

function recipientOf({ id, recipient, email_address_id, address }: Row, vault: Vault): string {
  return recipient ? vault.decrypt(recipient, id) : vault.decrypt(address as Buffer, email_address_id as string);
}

/** @throws TypeError for an address that cannot stand in a header */
export const composed = async ({ mail }: Draft): Promise<Letter> => ({
  from: mail.from.email,
  to: mail.to,
  content: await composeMail(mail),
});
