import type { Tx } from '../../core/postgres/transaction.ts';
import { allows } from '../../core/resource/states.ts';
import type { Partner } from '../partners/partner.ts';
import { partnerVisits, recordPartnerVisit } from '../partners/partner_visit.ts';
import { selfReferralBy, type Visit } from '../partners/self_referral.ts';
import { type RiskFlagDraft, raiseFlag } from '../programs/raise_flag.ts';
import { deleteReferral, type Referral, referral_states } from '../tracking/referral.ts';

/**
 * Returns the match if a customer is the partner: by the email address and, where a click leads to the customer, by its browser. The browser of a
 * click with the partner's own email address is known as the partner's from then on.
 */
export async function selfReferralMatch(
  tx: Tx,
  partner: Partner,
  { email, click }: { email: string | null; click?: Visit | undefined },
): Promise<'email' | 'browser' | undefined> {
  const clicks = click ? [click] : [];
  const matched = selfReferralBy({
    partner_email: partner.email,
    customer_email: email,
    partner_visits: click ? await partnerVisits(tx, [partner.id], [click]) : [],
    clicks,
  });
  if (matched === 'email' && click) await recordPartnerVisit(tx, partner.id, click);
  return matched;
}

/** "The referral is deleted with that reason": it brings no more customers. One that has a customer stays. */
export async function endSelfReferral(tx: Tx, referral: Referral): Promise<void> {
  if (allows(referral_states, referral.status, 'release')) await deleteReferral(tx, referral, 'self_referral');
}

/** Raises the flag, unless one is open for the partner and the customer. */
export const flagSelfReferral = (
  tx: Tx,
  subject: Pick<RiskFlagDraft, 'program_id' | 'partner_id' | 'customer_id'>,
  evidence: RiskFlagDraft['evidence'],
): Promise<void> => raiseFlag(tx, { ...subject, kind: 'self_referral', severity: 'high', evidence });
