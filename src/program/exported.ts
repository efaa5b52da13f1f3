import type { Feed } from '../core/exports/feed.ts';
import { commissions } from './commissions/commission.ts';
import { rules } from './commissions/rule.ts';
import { customers } from './customers/customer.ts';
import { applications } from './partners/application.ts';
import { groups } from './partners/group.ts';
import { links } from './partners/link.ts';
import { partners } from './partners/partner.ts';
import { tags } from './partners/tag.ts';
import { payouts } from './payouts/payout.ts';
import { payoutBatches } from './payouts/payout_batch.ts';
import { processorEvents } from './processors/inbox.ts';
import { programs } from './programs/program.ts';
import { riskFlags } from './risk/risk_flag.ts';
import { disputes } from './sales/dispute.ts';
import { refunds } from './sales/refund.ts';
import { sales } from './sales/sale.ts';
import { saleClaims } from './sales/sale_claim.ts';
import { clicks } from './tracking/click.ts';
import { coupons } from './tracking/coupon.ts';
import { referrals } from './tracking/referral.ts';

/** Ids of processors, in their events. */
const of_events = ['external_event_id', 'external_object_id', 'external_customer_id'];

/** The change feed: every resource of the product. Events have a feed of their own in their list. */
export const feed: Feed = {
  resources: [
    ...[programs, groups, tags, partners, applications, links, coupons, clicks, referrals, customers],
    ...[rules, sales, refunds, disputes, commissions, riskFlags, payoutBatches, payouts, processorEvents, saleClaims],
  ],
  // Resources with emails, names, or other data of merchants about a person.
  personal: [partners, applications, customers, sales, riskFlags, payouts, saleClaims],
  own_id_fields: ['external_id', 'external_refund_id', 'external_dispute_id', 'product_ids', ...of_events],
  personal_fields: { commissions: ['note'] },
};
