/** Who refers himself: decisions, section 5. */

/** What is known of a browser; ip_hash is the hash of its address, never the address. */
export type Visit = { ip_hash: string | null; user_agent: string | null };

export type SelfReferralFacts = {
  partner_email: string;
  customer_email: string | null;
  /** The partner's own visits. */
  partner_visits: readonly Visit[];
  /** The clicks by which the customer came: none where the customer came without. */
  clicks: readonly Visit[];
};

/**
 * "Self-referral (the partner's own email, normalised for case, dots and plus tags, or the same hashed IP and user agent as
 * the partner's own visits)".
 * @returns by what the customer is the partner, or undefined
 */
export function selfReferralBy({
  partner_email,
  customer_email,
  partner_visits,
  clicks,
}: SelfReferralFacts): 'email' | 'browser' | undefined {
  if (isSameMailbox(partner_email, customer_email)) return 'email';
  const own = partner_visits.some((visit) => clicks.some((click) => isSameBrowser(visit, click)));
  return own ? 'browser' : undefined;
}

/** Whether two addresses reach one person, as far as case, dots and plus tags go. */
export function isSameMailbox(a: string, b: string | null): boolean {
  return b !== null && normaliseEmail(a) === normaliseEmail(b);
}

/** Address and user agent must both be known and the same: two unknowns are no evidence. */
export function isSameBrowser(a: Visit, b: Visit): boolean {
  if (a.ip_hash === null || a.user_agent === null) return false;
  return a.ip_hash === b.ip_hash && a.user_agent === b.user_agent;
}

/**
 * Lower case, and in the local part no dots and no plus tag: "normalised for case, dots and plus tags". At every host, since
 * a host's own rules cannot be known. For comparing only, never for sending to. A local part is never emptied: `+ann` stays.
 */
export function normaliseEmail(email: string): string {
  const folded = email.trim().toLowerCase();
  const at = folded.lastIndexOf('@');
  if (at === -1) return folded;
  return normaliseLocalPart(folded.slice(0, at)) + folded.slice(at);
}

function normaliseLocalPart(local: string): string {
  return local.replaceAll('.', '').replace(/\+.*/, '') || local;
}
