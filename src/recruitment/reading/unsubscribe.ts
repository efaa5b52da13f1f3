/** What a wish to be taken off changes: the same as the link of an email. */
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import { unsubscribe } from '../unsubscribing/unsubscribe.ts';
import type { Answer } from './answer.ts';
import { isKnown, keepInbound } from './inbound.ts';
import { proveSent } from './proof.ts';
import { lockedProspect } from './prospect.ts';

/**
 * The sender's address is barred beside the one that was written to. Of a prospect who was erased nothing is kept. It is for good where a mailto asks for
 * it; what is read from a text a person can take back. The sender is proven, else it was kept for a person to look at.
 */
export async function takeUnsubscribe(tx: Tx, vault: Vault, answer: Answer): Promise<'unsubscribe' | 'known'> {
  const { answered, judgement } = answer;
  await lockSuppressions(tx);
  if (await isKnown(tx, vault, answer)) return 'known';
  await proveSent(tx, answered);
  const prospect = await lockedProspect(tx, answered);
  const { confidence } = judgement;
  const kept = { purpose: 'unsubscribe', confidence, needs_review: false, has_text: true } as const;
  const id = prospect ? await keepInbound(tx, vault, answer, kept) : answered.id;
  await unsubscribe(tx, vault, { id }, prospect && confidence !== null ? id : null);
  return 'unsubscribe';
}
