/** Reports that do not name the Message-ID of the mail that they are about. Anybody who knows an address can write one. */
import { getDomain } from 'tldts';
import type { Vault } from '../../../../core/encryption/vault.ts';
import type { Tx } from '../../../../core/postgres/transaction.ts';
import { domainOf } from '../../../../core/values/fields.ts';
import type { Bounced } from '../../../../mail/incoming/bounces/bounce.ts';
import { isAuthentic } from '../../../../mail/incoming/message/authentication_results.ts';
import type { Answer } from './answer.ts';
import { isKnown, keepInbound } from './inbound.ts';
import { lockedProspect } from './prospect.ts';

/** Servers give up after four or five days. */
const most_age_ms = 7 * 86_400_000;
/** Providers of mailboxes give these names to nobody. */
const server = /^(?:mailer-daemon|postmaster|mail-daemon)@/;

/**
 * Whether a report of a bounce is believed although it does not name the mail: that was sent to this address within the last days, and the report comes from
 * a server of the recipient's domain, of the inbox's or of the one that sends for it, as the inbox's own server found.
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
