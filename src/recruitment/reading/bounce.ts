/**
 * Applies the report of a server. Each one that an email is returned for good (`failed`) is a bounce. `bounce_reason` is `dead` where the address is dead, which
 * alone is barred; `blocked` for what is refused for its content, its signature or its sender (also any 5.7.x), which counts for `bounce_rate`; else `undelivered`.
 * Delays and deliveries prove that an email was sent, and change nothing else.
 */
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Bounced } from '../../mail/incoming/bounces/bounce.ts';
import { isBlock } from '../../mail/incoming/bounces/verdict.ts';
import { hashesOf } from '../contact/address.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { markBounced, markReported } from '../sending/record_bounce.ts';
import type { BounceReason } from '../sequences/message.ts';
import type { Answer } from './inbound.ts';
import { isKnown, keepInbound, lockedProspect } from './inbound.ts';
import { isPlausible, keepUnproven } from './unproven.ts';

/** Applies a report. Of a prospect who was erased nothing is kept; that the email bounced is counted all the same. */
export async function applyBounce(tx: Tx, vault: Vault, answer: Answer): Promise<'bounce' | 'known' | 'unrelated'> {
  const { answered, classification } = answer;
  const about = await recipientOf(tx, vault, answer);
  if (!answer.is_proven && !isPlausible(answer, about, tx.now)) return keepUnproven(tx, vault, answer, 'bounce');
  const reason = about?.action === 'failed' ? reasonOf(about) : null;
  if (reason === 'dead') await lockSuppressions(tx);
  if (await isKnown(tx, vault, answer)) return 'known';
  if (reason === null) await markReported(tx, answered.id);
  else await markBounced(tx, vault, answered.id, reason);
  if (await lockedProspect(tx, answered)) {
    await keepInbound(tx, vault, answer, {
      ...{ purpose: 'bounce', has_text: false },
      needs_review: classification.needs_review || about === undefined,
    });
  }
  return 'bounce';
}

const reasonOf = (about: Bounced): BounceReason => (about.hard ? 'dead' : isBlock(about) ? 'blocked' : 'undelivered');

/** The one whom we wrote to, among those that a report is about; where it names another address, they have it forwarded. */
async function recipientOf(tx: Tx, vault: Vault, { answered, classification }: Answer): Promise<Bounced | undefined> {
  const { recipients } = classification;
  const hash = await keyedHash(tx, vault);
  const own = recipients.find(
    ({ address }) => address !== null && answered.address_hmac?.equals(hashesOf(hash, address).address_hmac),
  );
  return own ?? (recipients.length === 1 ? recipients[0] : undefined);
}
