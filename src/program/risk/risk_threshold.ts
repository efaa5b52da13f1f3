/** Beyond what the monitoring rules raise a flag. A person judges it: the flags change no money, so that a rule may be wrong. */

/** Clicks of one address through one partner: an office behind one address may make twenty in ten minutes, a script makes more. */
export const click_velocity = { most: 20, within: '10 minutes' };

/** First sales through one partner: more within an hour than an audience buys, but for a launch. */
export const conversion_velocity = { most: 10, within: '1 hour' };

/** Customers of one partner from one address: more than a household. */
export const same_address_most = 3;

/** What comes back of a partner's sales in one currency; of fewer sales a share says nothing. */
export const refund_rate = { least_sales: 5, most_bps: 3_000, within: '90 days' };
