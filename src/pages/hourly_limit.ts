import type { FastifyRequest } from 'fastify';
import { WindowCounts } from '../core/http/window_counts.ts';
import { rateLimited } from '../core/metrics/metrics.ts';
import { publicNetworkOf } from '../core/net/address.ts';
import { addressOf } from '../core/net/client_address.ts';
import { databaseTime } from '../core/values/clock.ts';
import { Problem } from '../core/values/problem.ts';

const hour_ms = 3_600_000;

/**
 * Limits how many forms that cause an email come from one public address in an hour (in IPv6 from its /64), by this process. Private addresses are not
 * counted: behind one stands a proxy that does not say for whom it asks.
 */
export class HourlyLimit {
  readonly #most: number;
  readonly #counts = new WindowCounts(hour_ms);

  constructor(most: number) {
    this.#most = most;
  }

  /** @throws Problem rate_limit_exceeded */
  count(request: FastifyRequest): void {
    const network = publicNetworkOf(addressOf(request));
    if (network === undefined) return;
    const now_ms = databaseTime();
    if (this.#counts.add(network, now_ms) <= this.#most) return;
    rateLimited();
    const headers = { 'Retry-After': String(Math.ceil((hour_ms - (now_ms % hour_ms)) / 1000)) };
    throw new Problem('rate_limit_exceeded', 'Too many of these came from this address. Try again in an hour.', {
      headers,
    });
  }
}
