import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { requireState } from '../../core/values/fields.ts';
import type { Actor } from '../brands/acting.ts';
import { takeBack } from '../contact/take_back.ts';
import type { Stage } from '../events/fields.ts';
import { recordActivity } from '../prospects/activity.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import { type Prospect, prospects } from '../prospects/prospect.ts';
import { moveStage } from '../prospects/stage.ts';
import { countReply, effectOf, emitReply, stageAfterReply } from '../reading/reply.ts';
import { type Message, messages, type ReplyKind } from '../sequences/message.ts';
import { stopSequences } from '../sequences/stop.ts';
import { refreshThread } from '../sequences/thread.ts';

/**
 * Corrects what the text of a mail was classified to be: the message, its thread, and the prospect's stage where it is their last reply. What the wrong
 * classification barred is lifted. What was no reply becomes one, and is emitted as one. Locks suppressions, prospect, message and thread, in this order.
 * @throws Problem resource_not_found; invalid_state_transition where nothing was read from its text
 */
export async function reclassify(
  tx: Tx,
  vault: Vault,
  message_id: string,
  kind: ReplyKind,
  by: Actor,
): Promise<Message> {
  const { prospect_id, purpose } = await messages.get(tx, message_id);
  const concerned = prospect_id === null ? [] : [prospect_id];
  if (kind !== 'angry') await takeBack(tx, vault, message_id, concerned, by);
  else if (purpose === 'unsubscribe') await lockSuppressions(tx);
  const [prospect] = await prospects.lockMany(tx, concerned);
  const message = await messages.get(tx, message_id, { lock: true });
  requireText(message);
  const is_reply = message.reply_kind !== null && !(await isSetAside(tx, message));
  if (message.reply_kind === kind && !message.needs_review) return message;
  const corrected = await messages.update(tx, message_id, {
    ...{ purpose: 'reply', reply_kind: kind, auto_reply_kind: null, confidence: 1, needs_review: false },
  });
  if (message.thread_id !== null) await refreshThread(tx, message.thread_id);
  if (!prospect) return corrected;
  const is_last = await isLastReply(tx, message);
  if (!is_reply) await becomeReply(tx, message, prospect, kind, by);
  else if (message.reply_kind !== kind) noteCorrected(tx, message, prospect, kind, by);
  if (is_last) {
    const to = stageAfterCorrection(prospect.stage, message, kind);
    await moveStage(tx, prospect, { to, reason: 'reply_received', by });
  }
  return corrected;
}

const words: Partial<Record<Message['purpose'], string>> = {
  unsubscribe: 'The prospect unsubscribed by a link, one-click or a mailto address, which cannot be taken back.',
  bounce: 'A mail server wrote this message, so it is no reply.',
  complaint: 'A mail provider wrote this message, so it is no reply.',
};

/** @throws Problem invalid_state_transition */
function requireText({ direction, purpose, confidence }: Message): void {
  const is_text = purpose === 'reply' || purpose === 'auto_reply' || (purpose === 'unsubscribe' && confidence !== null);
  requireState(
    direction === 'inbound' && is_text,
    words[purpose] ?? `Only a reply has a kind, and the purpose of this message is '${purpose}'.`,
  );
}

/** Returns whether a reply was kept for a person to look at, and changed nothing: nothing was emitted. */
async function isSetAside(
  tx: Tx,
  { id, prospect_id, needs_review, confidence, created_at }: Message,
): Promise<boolean> {
  if (!needs_review || confidence !== 0) return false;
  const emitted = await tx.maybe(sql`
    select from recruitment.activity t
    where ${tenant(tx)} and t.prospect_id = ${prospect_id} and t.kind = 'replied' and t.data ->> 'message_id' = ${id}
      and t.id > 'fac_' || core.id_time_part(${created_at}::timestamptz - interval '1 hour')
      and t.id < 'fac_' || core.id_time_part(${created_at}::timestamptz + interval '1 hour')
    limit 1`);
  return emitted === undefined;
}

/** Counts and emits what was classified as an automatic reply or an unsubscribe, or was set aside; the sequence that it ended was answered. */
async function becomeReply(tx: Tx, message: Message, prospect: Prospect, kind: ReplyKind, by: Actor): Promise<void> {
  await stopSequences(tx, [prospect.id], 'replied');
  await tx.all(sql`
    update recruitment.sequence t set state = 'replied', updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${message.sequence_id} and t.state = 'unsubscribed'`);
  await tx.all(sql`
    update recruitment.message t set unsubscribed_at = null
    where ${tenant(tx)} and t.sequence_id = ${message.sequence_id} and t.purpose = 'sequence' and t.unsubscribed_at is not null
      and exists (
        select from recruitment.prospect p
        where p.organization_id = t.organization_id and p.id = t.prospect_id and p.unsubscribed_at is null
      )`);
  await countReply(tx, prospect.id);
  if (message.reply_kind !== kind) noteCorrected(tx, message, prospect, kind, by);
  emitReply(tx, message, prospect.id, kind, by);
}

function noteCorrected(tx: Tx, message: Message, { id: prospect_id }: Prospect, to: ReplyKind, by: Actor): void {
  const data = { message_id: message.id, from: message.reply_kind ?? message.purpose, to };
  recordActivity(tx, 'reply_reclassified', by, [{ prospect_id, data }]);
}

async function isLastReply(tx: Tx, { id, prospect_id, received_at }: Message): Promise<boolean> {
  const later = await tx.maybe(sql`
    select t.id from recruitment.message t
    where ${tenant(tx)} and t.prospect_id = ${prospect_id} and t.purpose = 'reply'
      and (t.received_at, t.id) > (${received_at}::timestamptz, ${id})
    limit 1`);
  return later === undefined;
}

type Misread = Pick<Message, 'purpose' | 'reply_kind' | 'confidence'>;

/** Moves the prospect as a reply of the right kind would have, and back from where the wrong classification had: never out of `agreed` or `active`. */
export function stageAfterCorrection(stage: Stage, before: Misread, after: ReplyKind): Stage {
  return stageAfterReply(stage === wrongStage(before) ? 'contacted' : stage, after);
}

function wrongStage({ purpose, reply_kind, confidence }: Misread): Stage | undefined {
  if (reply_kind !== null) return stageAfterReply('contacted', effectOf(reply_kind, confidence));
  return purpose === 'unsubscribe' ? 'lost' : undefined;
}
