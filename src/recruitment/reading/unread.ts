/** An email that reading failed at: kept for a person to look at, until it is read after all. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Answer } from './answer.ts';
import { pausedUntil, pauseFollowUps } from './auto_reply.ts';
import { isKnown, keepInbound } from './inbound.ts';
import { lockedProspect } from './prospect.ts';

/**
 * Keeps an email as a question of confidence 0 that needs review. Follow-ups wait as after an automatic reply: it may refuse them. No event.
 * @returns its id; undefined where it is known, or the prospect was erased
 */
export async function keepUnread(tx: Tx, vault: Vault, answer: Answer): Promise<string | undefined> {
  const prospect = await lockedProspect(tx, answer.answered);
  if (!prospect || (await isKnown(tx, vault, answer))) return undefined;
  await pauseFollowUps(tx, prospect.id, pausedUntil(null, tx.now));
  const unsure = { reply_kind: 'question', confidence: 0, needs_review: true } as const;
  return keepInbound(tx, vault, answer, { purpose: 'reply', ...unsure, has_text: true });
}

/**
 * Takes back what was kept of an email, which is read again now.
 * @returns false: a person has looked at it meanwhile, and it stays as it is
 */
export async function takeBackUnread(tx: Tx, message_id: string): Promise<boolean> {
  const kept = await tx.maybe<{ thread_id: string; needs_review: boolean }>(sql`
    select t.thread_id, t.needs_review from recruitment.message t
    where ${tenant(tx)} and t.id = ${message_id}
    for update`);
  if (!kept) return true;
  if (!kept.needs_review) return false;
  await tx.all(sql`delete from recruitment.message t where ${tenant(tx)} and t.id = ${message_id}`);
  await tx.all(sql`
    update recruitment.thread t set
      messages = t.messages - 1,
      needs_review = exists (
        select from recruitment.message m
        where m.organization_id = t.organization_id and m.thread_id = t.id and m.needs_review
      ),
      (reply_kind, last_reply_at) = (
        select last.reply_kind, last.received_at
        from (values (1)) as one (row)
        left join lateral (
          select m.reply_kind, m.received_at from recruitment.message m
          where m.organization_id = t.organization_id and m.thread_id = t.id and m.purpose = 'reply'
          order by m.received_at desc, m.id desc
          limit 1
        ) as last on true
      )
    where ${tenant(tx)} and t.id = ${kept.thread_id}`);
  return true;
}
