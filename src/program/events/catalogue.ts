import { linkAndCouponEvents } from './links_and_coupons.ts';
import { partnerEvents } from './partners.ts';
import { payoutEvents } from './payouts.ts';
import { customerEvents, referralEvents } from './referrals_and_customers.ts';
import { riskFlagEvents } from './risk_flags.ts';
import { ruleEvents } from './rules.ts';
import { commissionEvents, saleEvents } from './sales_and_commissions.ts';

/** The id prefixes of events and of their deliveries. */
export const prefixes = { id_prefix: 'evt', delivery_prefix: 'whd' };

/** Every event of the program service: section 6 of the specification, "Catalogue". */
export const catalogue = {
  ...partnerEvents,
  ...linkAndCouponEvents,
  ...referralEvents,
  ...saleEvents,
  ...commissionEvents,
  ...payoutEvents,
  ...riskFlagEvents,
  ...customerEvents,
  ...ruleEvents,
};
