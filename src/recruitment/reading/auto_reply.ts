/**
 * Applies an automatic reply of any kind: follow-ups wait until the prospect is back, or somebody has looked. A return date that is over, or more than a year away,
 * counts as none.
 */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { nobody } from '../brands/acting.ts';
import { recordActivity } from '../prospects/activity.ts';
import type { Answer } from './inbound.ts';
import { isKnown, keepInbound, lockedProspect, proveSent } from './inbound.ts';

const day_ms = 86_400_000;
const usual_days = 5;
/** A date further away is a mistake of somebody. */
const most_days = 366;

/** Applies an automatic reply: no event. */
export async function applyAutoReply(
  tx: Tx,
  vault: Vault,
  answer: Answer,
): Promise<'auto_reply' | 'known' | 'unrelated'> {
  const prospect = await lockedProspect(tx, answer.answered);
  if (!prospect) return 'unrelated';
  if (await isKnown(tx, vault, answer)) return 'known';
  await proveSent(tx, answer.answered);
  const paused_until = pausedUntil(answer.classification.resumes_on, tx.now);
  await pauseFollowUps(tx, prospect.id, paused_until);
  const { auto_reply_kind } = answer.classification;
  const message_id = await keepInbound(tx, vault, answer, { purpose: 'auto_reply', auto_reply_kind, has_text: true });
  const data = { message_id, auto_reply_kind, paused_until };
  recordActivity(tx, 'auto_replied', nobody, [{ prospect_id: prospect.id, data }]);
  return 'auto_reply';
}

export const pauseFollowUps = (tx: Tx, prospect_id: string, paused_until: string): Promise<object[]> =>
  tx.all(sql`
    with open as materialized (
      select t.id from recruitment.sequence t
      where ${tenant(tx)} and t.prospect_id = ${prospect_id} and t.open
      order by t.id
      for no key update
    )
    update recruitment.sequence t
    set paused_until = greatest(t.paused_until, ${paused_until}::timestamptz), updated_at = ${tx.now}::timestamptz
    from open where ${tenant(tx)} and t.id = open.id`);

/** "Pauses follow-ups to the date it names + 1 day, else 5 days." A date that is over names no absence. */
export function pausedUntil(resumes_on: string | null, now: string): string {
  const named = resumes_on === null ? Number.NaN : Date.parse(resumes_on) + day_ms;
  const from_now = named - Date.parse(now);
  const is_named = from_now > 0 && from_now <= most_days * day_ms;
  return new Date(is_named ? named : Date.parse(now) + usual_days * day_ms).toISOString();
}
