/**
 * Keeps mails that prove nothing for a person to look at: reports that do not name the mail that they are about, and what is forged. Anybody who knows an address
 * can write one.
 *
 * - A bounce that is not believed (`bounce.ts`), and a complaint without proof, is kept with `needs_review`, and changes nothing: it stops nobody and counts towards
 *   no guard.
 * - What the inbox's own server found to be forged changes nothing and needs review; follow-ups wait five days. With a Message-ID of ours, that is
 *   `dmarc=fail` alone.
 */
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { isForged } from '../../mail/incoming/message/authentication_results.ts';
import type { Answer } from './inbound.ts';
import { isKnown, keepInbound, lockedProspect } from './inbound.ts';
import { pausedUntil, pauseFollowUps } from './reply.ts';

/** Keeps a report for a person to look at. It changes nothing else: nobody is barred, nothing stops, and it counts towards no guard. */
export async function keepUnproven<Kind extends 'bounce' | 'complaint'>(
  tx: Tx,
  vault: Vault,
  answer: Answer,
  kind: Kind,
): Promise<Kind | 'known' | 'unrelated'> {
  if (!(await lockedProspect(tx, answer.answered))) return 'unrelated';
  if (await isKnown(tx, vault, answer)) return 'known';
  await keepInbound(tx, vault, answer, { purpose: kind, has_text: false, needs_review: true });
  return kind;
}

/**
 * Returns whether a mail of a person or a program is forged, as the own server found. A mail that names a Message-ID of ours is set aside where DMARC
 * failed, as forwarded mail fails SPF; an automatic reply only pauses, and a mailto names the email by its id. A report of a server is checked by
 * what it proves of itself.
 */
export function isSetAside({ classification: { kind, unsubscribe_id }, is_proven, authentication }: Answer): boolean {
  if (!is_proven) return ['reply', 'auto_reply', 'unsubscribe'].includes(kind) && isForged(authentication);
  const is_of_person = kind === 'reply' || (kind === 'unsubscribe' && unsubscribe_id === null);
  return is_of_person && authentication.dmarc === 'fail';
}

/**
 * Keeps a forged mail for a person to look at: no event, no stage, nobody is barred, no sequence ends. Follow-ups wait some days after what may be a person's
 * words: it may refuse them. The day that an automatic reply names counts for nothing.
 */
export async function keepForged(tx: Tx, vault: Vault, answer: Answer): Promise<'forged' | 'known' | 'unrelated'> {
  const prospect = await lockedProspect(tx, answer.answered);
  if (!prospect) return 'unrelated';
  if (await isKnown(tx, vault, answer)) return 'known';
  const { kind, auto_reply_kind } = answer.classification;
  const is_automatic = kind === 'auto_reply';
  if (!is_automatic) await pauseFollowUps(tx, prospect.id, pausedUntil(null, tx.now));
  await keepInbound(tx, vault, answer, {
    ...(is_automatic
      ? { purpose: 'auto_reply', auto_reply_kind }
      : { purpose: 'reply', reply_kind: 'question', confidence: 0 }),
    ...{ needs_review: true, has_text: true },
  });
  return 'forged';
}
