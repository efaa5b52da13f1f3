/** The lists and views that stand below a record on its page. */

/** By the noun of the record: an operation below it, or a list with the filter that narrows it to the record. */
export const below: Record<string, string[]> = {
  partners: [
    'links.list partner_id',
    'coupons.list partner_id',
    'customers.list partner_id',
    'sales.list partner_id',
    'commissions.list partner_id',
    'payouts.list partner_id',
    'partners.get_payout_method',
    'partners.get_tax_form',
    'applications.list partner_id',
    'risk_flags.list partner_id',
    'events.list partner_id',
    'audit_log.list object_id',
  ],
  customers: ['sales.list customer_id', 'commissions.list customer_id', 'risk_flags.list customer_id'],
  sales: ['commissions.list sale_id', 'refunds.list sale_id', 'disputes.list sale_id'],
  payout_batches: ['payouts.list batch_id', 'payout_batches.list_reports'],
  payouts: ['commissions.list payout_id'],
  links: ['sales.list link_id', 'referrals.list link_id'],
  referrals: ['clicks.list referral_id', 'sales.list referral_id'],
  groups: ['partners.list group_id', 'coupons.list group_id'],
  tags: ['partners.list tag_id'],
  prospects: ['prospects.messages', 'notes.list', 'emails.list', 'prospects.activity', 'deals.list prospect_id'],
  brands: ['scans.list brand_id', 'lists.list brand_id', 'campaigns.list brand_id'],
  lists: ['prospects.list list_id'],
  sequences: ['messages.list sequence_id'],
  searches: ['searches.results'],
  imports: ['imports.list_errors'],
  inboxes: ['inboxes.health'],
  deals: ['deals.versions'],
  programs: ['processors.list', 'rails.list'],
  users: ['api_keys.list user_id', 'audit_log.list user_id'],
};

/** The views that pages made by hand tell in sentences. */
const told_by_hand = new Set(['sales.explain']);

/** Returns whether an operation's answer stands on the page of a record already. */
export const isBelow = (tag: string, name: string): boolean =>
  told_by_hand.has(name) || (below[tag] ?? []).some((line) => line.split(' ')[0] === name);
