/** Emails outside of sequences: invitations, a person's answers and tests of a campaign. They go through the same steps, before all others. */

import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { storedMessageIdOf } from '../composing/message_ids.ts';
import { hashesOf } from '../contact/address.ts';
import { emailAddresses, opened } from '../contact/email_address.ts';
import { usable } from '../contact/email_status.ts';
import { isSuppressed } from '../contact/suppression.ts';
import { inboxes } from '../inboxes/inbox.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { type Prospect, prospects } from '../prospects/prospect.ts';
import { type Message, messages } from '../sequences/message.ts';
import { wakeInbox } from '../sequences/wake_inbox.ts';

interface Content {
  inbox_id: string;
  brand_id: string;
  /** One line. */
  subject: string;
  body_text: string;
  /** Null: plain text alone. */
  body_html: string | null;
}

/** An email, and to whom it goes. */
type Outgoing = Content &
  (
    | {
        purpose: 'invitation' | 'answer';
        prospect_id: string;
        /** The address of the prospect that it goes to. */
        email_address_id: string;
        /** Null: it begins a thread. */
        thread_id: string | null;
        /** The Message-ID that it answers, and those before it: without angle brackets. */
        in_reply_to?: string | null;
        reference_ids?: string[];
      }
    /** A test goes to a member of the team. Nothing follows from it. */
    | { purpose: 'test'; campaign_id: string; step_index: number; variant: number; recipient: string }
  );

/**
 * Queues an email, which is sent as soon as its inbox is free: no cap, gap or window holds it back, and the inbox's day counts it. All layers
 * of do-not-contact hold, now and again before its final dot. To be called before rows are locked.
 * @throws Problem suppressed; invalid_state_transition where the inbox is disconnected; resource_not_found
 */
export async function sendMessage(tx: Tx, vault: Vault, outgoing: Outgoing): Promise<Message> {
  const id = newId('fms');
  const recipient = await recipientOf(tx, vault, id, outgoing);
  const inbox = await inboxes.get(tx, outgoing.inbox_id, { param: 'inbox_id' });
  if (inbox.status === 'disconnected')
    throw new Problem(
      'invalid_state_transition',
      `The inbox '${inbox.id}' is disconnected. Reconnect it first: POST /recruitment/v1/inboxes/${inbox.id}/reconnect.`,
    );
  const { purpose, inbox_id, brand_id, subject, body_text, body_html } = outgoing;
  const message = await messages.insert(tx, {
    ...{ id, purpose, inbox_id, brand_id, subject, body_text, body_html, direction: 'outbound', state: 'planned' },
    ...{ has_footer: purpose !== 'answer', rfc_message_id: storedMessageIdOf(id, inbox.email) },
    ...recipient,
  });
  wakeInbox(tx, inbox_id);
  return message as Message;
}

async function recipientOf(tx: Tx, vault: Vault, id: string, outgoing: Outgoing) {
  if (outgoing.purpose === 'test') {
    const { campaign_id, step_index, variant, recipient } = outgoing;
    return { campaign_id, step_index, variant, recipient: vault.encrypt(recipient, id) };
  }
  const { prospect_id, email_address_id, thread_id, in_reply_to = null, reference_ids = [] } = outgoing;
  const { email } = opened(vault, await emailAddresses.get(tx, email_address_id, { param: 'email_address_id' }));
  await requireNotSuppressed(tx, vault, email, prospect_id);
  const hashes = hashesOf(await keyedHash(tx, vault), email);
  return { prospect_id, email_address_id, thread_id, in_reply_to, reference_ids, ...hashes };
}

/** @throws Problem suppressed */
export async function requireNotSuppressed(tx: Tx, vault: Vault, email: string, prospect_id: string): Promise<void> {
  const bar = await isSuppressed(tx, vault, email, prospect_id);
  const prospect = await prospects.get(tx, prospect_id, { param: 'prospect_id' });
  const reason = prospect.do_not_contact?.reason ?? bar?.reason ?? (prospect.unsubscribed_at && 'unsubscribed');
  if (!reason) return;
  throw new Problem(
    'suppressed',
    reason === 'unsubscribed'
      ? 'The prospect unsubscribed and cannot be emailed.'
      : `The prospect or the address is marked Do not contact (${reason}) and cannot be emailed. Lift the mark first.`,
  );
}

/**
 * The address of a prospect that a person's email goes to: the best one that mail can be delivered to.
 * @param first hashes of addresses that come before the others
 * @returns its id
 * @throws Problem suppressed; invalid_state_transition where there is none
 */
export async function bestAddressOf(tx: Tx, prospect: Prospect, first: Buffer[] = []): Promise<string> {
  requireContactable(prospect);
  const address = await tx.maybe<{ id: string }>(sql`
    select a.id
    from recruitment.email_address a
    where a.organization_id = ${tx.organization_id} and a.prospect_id = ${prospect.id} and ${usable}
    order by array_position(${first}::bytea[], a.address_hmac), a.rank, a.id
    limit 1`);
  if (address) return address.id;
  throw new Problem(
    'invalid_state_transition',
    `No usable email address of the prospect is known. Add one: POST /recruitment/v1/prospects/${prospect.id}/emails.`,
  );
}

/** "A person's own answers and invitations obey all layers." */
function requireContactable({ id, do_not_contact, unsubscribed_at }: Prospect): void {
  if (do_not_contact !== null) {
    throw new Problem(
      'suppressed',
      `The prospect is marked Do not contact (${do_not_contact.reason}). Lift the mark first: POST /recruitment/v1/prospects/${id}/do_not_contact/lift.`,
    );
  }
  if (unsubscribed_at !== null) {
    throw new Problem(
      'suppressed',
      'The prospect unsubscribed, so no email is sent to them from here. If their reply was misread, correct it: POST /recruitment/v1/messages/{id}/reclassify. If they wrote to you again, answer from your own mail program.',
    );
  }
}
