/**
 * Applies complaints and wishes to be taken off.
 *
 * - A complaint marks the prospect, and pauses the campaign; one about an answer of a person pauses none.
 * - An unsubscribe is for good where a mailto names the email. Of others the sender has to be proven; an unproven one needs review, leaves the stage and bars
 *   nobody. What is read from a text a person lifts by `reclassify`.
 */
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { isAuthentic } from '../../mail/incoming/message/authentication_results.ts';
import { nobody } from '../brands/acting.ts';
import { lockCampaign } from '../campaigns/campaign.ts';
import { pauseForComplaint } from '../campaigns/pause.ts';
import { suppress } from '../contact/mark.ts';
import { recordActivity } from '../prospects/activity.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import { unsubscribe } from '../unsubscribing/unsubscribe.ts';
import { type Answer, isKnown, keepInbound, keepUnproven, lockedProspect, proveSent, targetsOf } from './inbound.ts';

/** Reports of DMARC, and of people who say that it was no spam. */
const no_complaints = ['auth-failure', 'not-spam'];

export async function applyComplaint(
  tx: Tx,
  vault: Vault,
  answer: Answer,
): Promise<'complaint' | 'unsubscribe' | 'known' | 'unrelated'> {
  const { answered, classification, is_proven } = answer;
  if (no_complaints.includes(classification.feedback_type ?? '')) return 'unrelated';
  if (!is_proven) return keepUnproven(tx, vault, answer, 'complaint');
  if (classification.feedback_type === 'opt-out') return applyUnsubscribe(tx, vault, answer);
  await lockSuppressions(tx);
  if (await isKnown(tx, vault, answer)) return 'known';
  // An answer that a person wrote says nothing of the emails of the campaign.
  const campaign_id = answered.purpose === 'sequence' ? answered.campaign_id : null;
  if (campaign_id !== null) await lockCampaign(tx, campaign_id);
  await proveSent(tx, answered);
  const prospect = await lockedProspect(tx, answered);
  if (prospect) {
    const message_id = answered.id;
    await keepInbound(tx, vault, answer, { purpose: 'complaint', has_text: false, needs_review: false });
    recordActivity(tx, 'complained', nobody, [{ prospect_id: prospect.id, data: { message_id } }]);
    for (const target of await targetsOf(tx, vault, answered, prospect.id)) {
      await suppress(tx, vault, target, 'complaint', nobody);
    }
  } else if (answered.address_hmac) {
    await suppress(tx, vault, { kind: 'address', hmac: answered.address_hmac, email: null }, 'complaint', nobody);
  }
  if (campaign_id !== null) await pauseForComplaint(tx, campaign_id);
  return 'complaint';
}

/**
 * Unsubscribes as the link of an email does. The sender's address is barred beside the one that was written to, where it is proven or
 * of the same company. Of a prospect who was erased nothing is kept. It is for good where a mailto asks for
 * it; what is read from a text a person can lift. The sender is proven, else it was kept for a person to look at.
 */
export async function applyUnsubscribe(tx: Tx, vault: Vault, answer: Answer): Promise<'unsubscribe' | 'known'> {
  const { answered, classification, authentication } = answer;
  await lockSuppressions(tx);
  if (await isKnown(tx, vault, answer)) return 'known';
  await proveSent(tx, answered);
  const prospect = await lockedProspect(tx, answered);
  const { confidence } = classification;
  const kept = { purpose: 'unsubscribe', confidence, needs_review: false, has_text: true } as const;
  const id = prospect ? await keepInbound(tx, vault, answer, kept) : answered.id;
  await unsubscribe(
    tx,
    vault,
    { id, is_authentic: isAuthentic(authentication) },
    prospect && confidence !== null ? id : null,
  );
  return 'unsubscribe';
}
