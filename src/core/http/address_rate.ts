import { sha256 } from '../encryption/vault.ts';
import { rateLimited } from '../metrics/metrics.ts';
import { publicNetworkOf } from '../net/address.ts';
import { Problem } from '../values/problem.ts';
import { WindowCounts } from './window_counts.ts';

/** Keys that were valid in this process, by their SHA-256. Beyond this many, they are forgotten. */
const most_known_keys = 10_000;

interface KeyOwner {
  organization_id: string;
  api_key_id: string;
}

/**
 * Counts the requests that come without a valid key, by the public address that they come from (in IPv6 by its /64). Private addresses are
 * not counted: behind one stands a proxy that does not say for whom it asks, and all visitors would share one limit.
 */
export class AddressRate {
  readonly #limit: number;
  readonly #known_keys = new Map<string, KeyOwner>();
  readonly #used = new WindowCounts(1_000);

  /** @param limit in each second; 0 for none */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Counts a request without a valid key. @throws Problem rate_limit_exceeded */
  count(address: string): void {
    const network = publicNetworkOf(address);
    if (network === undefined || this.#limit === 0) return;
    if (this.#used.add(network) > this.#limit) throw this.#refusal();
  }

  /**
   * Spares the database the look-up of one made-up key after another. A key that was valid before passes.
   * @throws Problem rate_limit_exceeded where the address has used up its requests
   */
  requireLeft(address: string, authorization: string | undefined): void {
    const network = publicNetworkOf(address);
    if (network === undefined || this.#limit === 0 || this.#used.of(network) < this.#limit) return;
    if (!this.#known_keys.has(digestOf(authorization))) throw this.#refusal();
  }

  /** Notes that a key is valid, and whose it is. */
  remember(authorization: string | undefined, { organization_id, api_key_id }: KeyOwner): void {
    if (this.#known_keys.size >= most_known_keys) this.#known_keys.clear();
    this.#known_keys.set(digestOf(authorization), { organization_id, api_key_id });
  }

  /** For the log alone: whose key it was when it was valid. */
  ownerOf(authorization: string | undefined): KeyOwner | undefined {
    return authorization === undefined ? undefined : this.#known_keys.get(digestOf(authorization));
  }

  #refusal(): Problem {
    rateLimited();
    return new Problem(
      'rate_limit_exceeded',
      `Your address may make ${this.#limit} requests per second without a valid API key. Retry after the time in 'Retry-After'.`,
      { headers: { 'Retry-After': '1' } },
    );
  }
}

const digestOf = (authorization = ''): string => sha256(authorization).toString('base64');
