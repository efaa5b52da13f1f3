import { WindowCounts } from '../core/http/window_counts.ts';
import { publicNetworkOf } from '../core/net/address.ts';
import { Problem } from '../core/values/problem.ts';

const most_an_hour = 20;
const hour_ms = 3_600_000;

/**
 * Limits how many applications come from one public address in an hour (in IPv6 from its /64), by this process: each is an email to whom somebody says
 * that they are. Private addresses are not counted: behind one stands a proxy that does not say for whom it asks.
 */
export class ApplicationRate {
  readonly #counts = new WindowCounts(hour_ms);

  /** @throws Problem rate_limit_exceeded */
  count(address: string, now_ms: number): void {
    const network = publicNetworkOf(address);
    if (network === undefined) return;
    if (this.#counts.add(network, now_ms) <= most_an_hour) return;
    const headers = { 'Retry-After': String(Math.ceil((hour_ms - (now_ms % hour_ms)) / 1000)) };
    throw new Problem('rate_limit_exceeded', 'Too many applications from this address. Try again in an hour.', {
      headers,
    });
  }
}
