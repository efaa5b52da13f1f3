/**
 * The limits beyond which the monitoring rules raise a flag. Flags are for a person to review and change no money, so a false alarm does no harm.
 * `newest`, `most`: so many rows are looked at, so that a check costs the same however much there is.
 */

/** Clicks from one IP address through one partner: an office behind one address may make twenty in ten minutes, a script makes more. */
export const click_velocity = { max: 20, within: '10 minutes', most: 500 };

/** First sales through one partner: more within an hour than an audience usually buys, except at a launch. */
export const conversion_velocity = { max: 10, within: '1 hour' };

/** Customers of one partner from one IP address: more than a household. `addresses`: so many of the visitor are looked at. */
export const same_ip = { max: 3, addresses: 10, newest: 100 };

/** The refunded share of a partner's sales in one currency. With fewer sales than `min_sales`, a share is not meaningful. */
export const refund_rate = { min_sales: 5, max_bps: 3_000, within: '90 days', newest: 500 };
