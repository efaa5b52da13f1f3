import { paypal } from './paypal.ts';
import { type Rail, type RailMode, type RailName, rail_names } from './rail.ts';
import { stripe } from './stripe.ts';
import { wise } from './wise.ts';

export const rails: Readonly<Record<RailName, Rail>> = { paypal, wise, stripe };

/** A payout method that has a rail, and is not settled by files or by hand. */
export const isRailName = (method: string): method is RailName => (rail_names as readonly string[]).includes(method);

/** The base URL of a rail's provider: what is set for it, else its own for the mode. */
export const providerUrl = (rail: RailName, mode: RailMode, set: Partial<Record<RailName, string>> = {}): string =>
  set[rail] ?? rails[rail].urls[mode];
