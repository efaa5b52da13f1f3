import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { requireState } from '../../../core/values/fields.ts';
import type { Actor } from '../../brands/acting.ts';
import type { Stage } from '../../events/fields.ts';
import { recordActivity } from '../../prospects/activity.ts';
import { prospects } from '../../prospects/prospect.ts';
import { moveStage } from '../../prospects/stage.ts';
import { type Message, messages, type ReplyKind } from '../../sequences/message.ts';
import { stageAfterReply } from '../reading/effects/stage_after_reply.ts';

/**
 * Corrects the kind of a reply: the message, its thread, and the prospect's stage where it is their last reply. Locks prospect, message and
 * thread, in this order.
 * @throws Problem resource_not_found; invalid_state_transition where it is no reply
 */
export async function reclassify(tx: Tx, message_id: string, kind: ReplyKind, by: Actor): Promise<Message> {
  const { prospect_id } = await messages.get(tx, message_id);
  const [prospect] = prospect_id === null ? [] : await prospects.lockMany(tx, [prospect_id]);
  const message = await messages.get(tx, message_id, { lock: true });
  const before = message.reply_kind;
  requireState(before !== null, `Only a reply has a kind, and the purpose of this message is '${message.purpose}'.`);
  if (before === kind && !message.needs_review) return message;
  const corrected = await messages.update(tx, message_id, { reply_kind: kind, confidence: 1, needs_review: false });
  if (message.thread_id !== null) await refreshThread(tx, message.thread_id);
  if (!prospect || before === kind) return corrected;
  const data = { message_id, from: before, to: kind };
  recordActivity(tx, 'reply_reclassified', by, [{ prospect_id: prospect.id, data }]);
  if (await isLastReply(tx, message)) {
    const to = stageAfterCorrection(prospect.stage, before as ReplyKind, kind);
    await moveStage(tx, prospect, { to, reason: 'reply_received', by });
  }
  return corrected;
}

/** The kind of a thread is that of its last reply. */
const refreshThread = (tx: Tx, thread_id: string): Promise<object[]> =>
  tx.all(sql`
    with locked as materialized (
      select t.id from recruitment.thread t where ${tenant(tx)} and t.id = ${thread_id} for no key update
    )
    update recruitment.thread t
    set
      reply_kind = (
        select m.reply_kind from recruitment.message m
        where m.organization_id = t.organization_id and m.thread_id = t.id and m.purpose = 'reply'
        order by m.received_at desc, m.id desc
        limit 1
      ),
      needs_review = exists (
        select from recruitment.message m
        where m.organization_id = t.organization_id and m.thread_id = t.id and m.needs_review
      ),
      updated_at = ${tx.now}::timestamptz
    from locked where ${tenant(tx)} and t.id = locked.id`);

async function isLastReply(tx: Tx, { id, prospect_id, received_at }: Message): Promise<boolean> {
  const later = await tx.maybe(sql`
    select t.id from recruitment.message t
    where ${tenant(tx)} and t.prospect_id = ${prospect_id} and t.purpose = 'reply'
      and (t.received_at, t.id) > (${received_at}::timestamptz, ${id})
    limit 1`);
  return later === undefined;
}

/** As a reply of the right kind would have moved them, and back from where the wrong kind had: never out of `agreed` or `active`. */
export function stageAfterCorrection(stage: Stage, before: ReplyKind, after: ReplyKind): Stage {
  const wrong_stage = stageAfterReply('contacted', before);
  return stageAfterReply(stage === wrong_stage ? 'contacted' : stage, after);
}
