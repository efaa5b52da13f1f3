/** What a feedback report changes: "A complaint: do_not_contact.added, by null", and the campaign pauses. */
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { nobody } from '../brands/acting.ts';
import { pauseForComplaint } from '../campaigns/bounce_guard.ts';
import { lockCampaign } from '../campaigns/campaign.ts';
import { suppress } from '../contact/mark.ts';
import { recordActivity } from '../prospects/activity.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import type { Answer } from './answer.ts';
import { isKnown, keepInbound } from './inbound.ts';
import { proveSent } from './proof.ts';
import { lockedProspect, targetsOf } from './prospect.ts';
import { keepUnproven } from './unproven.ts';
import { takeUnsubscribe } from './unsubscribe.ts';

/** Reports of DMARC, and of people who say that it was no spam. */
const no_complaints = ['auth-failure', 'not-spam'];

export async function takeComplaint(
  tx: Tx,
  vault: Vault,
  answer: Answer,
): Promise<'complaint' | 'unsubscribe' | 'known' | 'unrelated'> {
  const { answered, judgement, is_proven } = answer;
  if (no_complaints.includes(judgement.feedback_type ?? '')) return 'unrelated';
  if (!is_proven) return keepUnproven(tx, vault, answer, 'complaint');
  if (judgement.feedback_type === 'opt-out') return takeUnsubscribe(tx, vault, answer);
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
