/** Sends an email again by request, of which it is unknown whether it left: the same row under a new Message-ID. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { requireState } from '../../core/values/fields.ts';
import { storedMessageIdOf } from '../composing/message_ids.ts';
import { emailAddresses, opened } from '../contact/email_address.ts';
import { inboxes } from '../inboxes/inbox.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { prospects } from '../prospects/prospect.ts';
import { planAgain } from '../sending/recover.ts';
import { requireNotSuppressed } from '../sending/send_message.ts';
import { type Message, messages } from '../sequences/message.ts';
import { sequences } from '../sequences/sequence.ts';
import { wakeInbox } from '../sequences/wake_inbox.ts';

/** @throws Problem resource_not_found, suppressed, invalid_state_transition */
export async function resend(tx: Tx, vault: Vault, message_id: string): Promise<Message> {
  await holdSuppressions(tx);
  const { prospect_id, sequence_id } = (await messages.get(tx, message_id)) as Message;
  if (prospect_id !== null) await prospects.get(tx, prospect_id, { lock: true });
  if (sequence_id !== null) await sequences.get(tx, sequence_id, { lock: true });
  const message = (await messages.get(tx, message_id, { lock: true })) as Message;
  const { resends, email_address_id } = await tx.one<{ resends: number; email_address_id: string | null }>(
    sql`select t.resends, t.email_address_id from recruitment.message t where ${tenant(tx)} and t.id = ${message_id}`,
  );
  if (resends > 0 && (message.state === 'planned' || message.state === 'sending')) return message;
  requireUnknown(message);
  await requireRecipient(tx, vault, message, email_address_id);
  await requireLastStep(tx, message);
  const email = await inboxOf(tx, message);
  await planAgain(tx, [message_id]);
  await rename(tx, message, storedMessageIdOf(message_id, email, resends + 1));
  await stepBack(tx, message);
  wakeInbox(tx, message.inbox_id);
  return (await messages.get(tx, message_id)) as Message;
}

function requireUnknown({ id, state, subject }: Message): void {
  requireState(
    state === 'unknown',
    `The state of message '${id}' is '${state}'. Only a message whose state is 'unknown' can be sent again.`,
  );
  requireState(subject !== null, 'The prospect was erased, and the text of the message with it.');
}

async function requireLastStep(tx: Tx, { sequence_id, step_index }: Message): Promise<void> {
  if (sequence_id === null || step_index === null) return;
  const { ended_at, next_step } = await sequences.get(tx, sequence_id);
  const later = await tx.maybe(sql`
    select from recruitment.message t
    where ${tenant(tx)} and t.sequence_id = ${sequence_id} and t.purpose = 'sequence' and t.step_index > ${step_index}
      and t.state in ('sending', 'sent', 'unknown', 'bounced')
    limit 1`);
  requireState(
    ended_at === null && next_step === step_index + 1 && !later,
    `The sequence '${sequence_id}' has ended or has sent a later email. Write to the prospect yourself: POST /recruitment/v1/prospects/{id}/reply.`,
  );
}

/** A test goes to the team, whom nothing bars. */
async function requireRecipient(
  tx: Tx,
  vault: Vault,
  { prospect_id, purpose }: Message,
  email_address_id: string | null,
): Promise<void> {
  if (purpose === 'test') return;
  requireState(
    prospect_id !== null && email_address_id !== null,
    'The address that the message was sent to was deleted. Write to the prospect yourself.',
  );
  const { email } = opened(vault, await emailAddresses.get(tx, email_address_id as string));
  await requireNotSuppressed(tx, vault, email, prospect_id as string);
}

async function inboxOf(tx: Tx, { inbox_id }: Message): Promise<string> {
  const [inbox] = await inboxes.byIds(tx, [inbox_id]);
  requireState(inbox !== undefined, 'The inbox of the message was deleted. Write to the prospect from another one.');
  return (inbox as unknown as { email: string }).email;
}

/** Keeps the id of the first email known: its receiver may answer it. */
const rename = (tx: Tx, { id, thread_id }: Message, rfc_message_id: string): Promise<object[]> =>
  tx.all(sql`
    with thread as (
      update recruitment.thread t set messages = t.messages - 1 where ${tenant(tx)} and t.id = ${thread_id}
    )
    update recruitment.message t set
      other_message_ids = array_append(t.other_message_ids, t.rfc_message_id), rfc_message_id = ${rfc_message_id},
      resends = t.resends + 1, look_up_at = null, look_ups = 0, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${id}`);

/** Makes its step the next one again, which is checked as any other is. */
const stepBack = async (tx: Tx, { sequence_id, step_index }: Message): Promise<unknown> =>
  sequence_id !== null &&
  tx.all(sql`
    update recruitment.sequence t set
      next_step = ${step_index}, state = case when ${step_index === 0} then 'waiting' else t.state end, due_at = ${tx.now}::timestamptz,
      is_held = false, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${sequence_id}`);
