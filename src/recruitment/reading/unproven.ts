/**
 * Keeps mails that prove nothing for a person to look at: reports that do not name the mail that they are about, and what is forged. Anybody who knows an address
 * can write one.
 *
 * - A report is proven by the Message-ID of ours that it returns or names. A bounce that does not is believed where the mail went from this inbox to the
 *   address that it names in the last 7 days, its sender is MAILER-DAEMON or postmaster of the recipient's domain or of the inbox's servers, and the inbox's own
 *   server found that it is (`Authentication-Results`: an aligned pass of SPF, DKIM or DMARC). A pass is believed of a server that is known to write them:
 *   that of a large provider, or one that the inbox names (`authserv_id`).
 * - Any other, and a complaint without proof, is kept with `needs_review`, and changes nothing: it stops nobody and counts towards no guard.
 * - What the inbox's own server found to be forged changes nothing and needs review; follow-ups wait five days. With a Message-ID of ours, that is
 *   `dmarc=fail` alone.
 */
import { getDomain } from 'tldts';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { domainOf } from '../../core/values/fields.ts';
import type { Bounced } from '../../mail/incoming/bounces/bounce.ts';
import { isAuthentic, isForged } from '../../mail/incoming/message/authentication_results.ts';
import { pausedUntil, pauseFollowUps } from './auto_reply.ts';
import type { Answer } from './inbound.ts';
import { isKnown, keepInbound, lockedProspect } from './inbound.ts';

/** Servers give up after four or five days. */
const most_age_ms = 7 * 86_400_000;
/** Providers of mailboxes give these names to nobody. */
const server = /^(?:mailer-daemon|postmaster|mail-daemon)@/;

/**
 * Returns whether a report of a bounce is believed although it does not name the mail: that was sent to this address within the last days, and the
 * report comes from a server of the recipient's domain, of the inbox's or of the one that sends for it, as the inbox's own server found.
 */
export function isPlausible(
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
