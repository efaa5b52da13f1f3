import { withAsciiDomain } from '../../core/values/fields.ts';
import { addressIn } from '../../core/values/texts/address_in.ts';

/** Decides whether a customer is the partner who referred them: see the room's README. */

/** The traits that identify a browser. `ip_hash` is a keyed hash of the IP address, which is not stored. */
export type Visit = { ip_hash: string | null; user_agent: string | null };

export type SelfReferralFacts = {
  partner_email: string;
  customer_email: string | null;
  /** The partner's own visits. */
  partner_visits: readonly Visit[];
  /** The clicks that led to the sign-up, if any. */
  clicks: readonly Visit[];
};

/**
 * "Self-referral (the partner's own email, normalised for case, dots and plus tags, or the same hashed IP and user agent as
 * the partner's own visits)".
 * @returns what matches, or undefined where the customer is not the partner
 */
export function selfReferralBy({
  partner_email,
  customer_email,
  partner_visits,
  clicks,
}: SelfReferralFacts): 'email' | 'browser' | undefined {
  if (isSameMailbox(partner_email, customer_email)) return 'email';
  const same_browser = partner_visits.some((visit) => clicks.some((click) => isSameBrowser(visit, click)));
  return same_browser ? 'browser' : undefined;
}

/** Returns whether two email addresses deliver to the same mailbox, ignoring case, dots and plus tags, with `googlemail.com` as `gmail.com`. */
export function isSameMailbox(a: string, b: string | null): boolean {
  return b !== null && normaliseEmail(a) === normaliseEmail(b);
}

/** IP address and user agent must both be known and equal: two unknown values are no evidence. */
export function isSameBrowser(a: Visit, b: Visit): boolean {
  if (a.ip_hash === null || a.user_agent === null) return false;
  return a.ip_hash === b.ip_hash && a.user_agent === b.user_agent;
}

/**
 * The address that a text holds in lower case, with dots and the plus tag removed from the local part, and `gmail.com` for `googlemail.com`. It applies to every host, because the rules of a
 * host are unknown. For comparison only, never for sending mail. A local part that would become empty is kept: `+ann`.
 */
export function normaliseEmail(email: string): string {
  const folded = withAsciiDomain(addressIn(email)).toLowerCase();
  const at = folded.lastIndexOf('@');
  if (at === -1) return folded;
  const host = folded.slice(at + 1);
  return `${normaliseLocalPart(folded.slice(0, at))}@${host === 'googlemail.com' ? 'gmail.com' : host}`;
}

function normaliseLocalPart(local: string): string {
  return local.replaceAll('.', '').replace(/\+.*/, '') || local;
}
