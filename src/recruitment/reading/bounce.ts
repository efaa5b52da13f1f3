/**
 * Applies the report of a server. Each one that an email is returned for good (`failed`) is a bounce. `bounce_reason` is `dead` where the address is dead, which
 * alone is barred; `blocked` for what is refused for its content, its signature or its sender (also any 5.7.x), which counts for `bounce_rate`; else `undelivered`.
 * Delays and deliveries prove that an email was sent, and change nothing else.
 *
 * A report is proven by the Message-ID of ours that it returns or names. A bounce that does not is believed where the mail went from this inbox to the address that it
 * names in the last 7 days, its sender is MAILER-DAEMON or postmaster of the recipient's domain or of the inbox's servers, and the inbox's own server found that
 * it is (`Authentication-Results`: an aligned pass of SPF, DKIM or DMARC). A pass is believed of a server that is known to write them: that of a large provider,
 * or one that the inbox names (`authserv_id`).
 */
import { getDomain } from 'tldts';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { domainOf } from '../../core/values/fields.ts';
import type { Bounced } from '../../mail/incoming/bounces/bounce.ts';
import { isBlock } from '../../mail/incoming/bounces/verdict.ts';
import { isAuthentic } from '../../mail/incoming/message/authentication_results.ts';
import { hashesOf } from '../contact/address.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { markBounced, markReported } from '../sending/record_bounce.ts';
import type { BounceReason } from '../sequences/message.ts';
import type { Answer } from './inbound.ts';
import { isKnown, keepInbound, keepUnproven, lockedProspect } from './inbound.ts';

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

/** Servers give up after four or five days. */
const most_age_ms = 7 * 86_400_000;
/** Providers of mailboxes give these names to nobody. */
const server = /^(?:mailer-daemon|postmaster|mail-daemon)@/;

/**
 * Returns whether a report of a bounce is believed although it does not name the mail: that was sent to this address within the last days, and the
 * report comes from a server of the recipient's domain, of the inbox's or of the one that sends for it, as the inbox's own server found.
 */
function isPlausible(
  { answered, message, authentication, own_domains }: Answer,
  about: Bounced | undefined,
  now: string,
): boolean {
  if (!about?.address || !server.test(message.from) || answered.sent_at === null) return false;
  if (Date.parse(now) - Date.parse(answered.sent_at) > most_age_ms) return false;
  const senders = [domainOf(about.address), ...own_domains].map(organizationOf);
  return senders.includes(organizationOf(domainOf(message.from))) && isAuthentic(authentication);
}

const organizationOf = (domain: string): string => getDomain(domain, { allowPrivateDomains: true }) ?? domain;
