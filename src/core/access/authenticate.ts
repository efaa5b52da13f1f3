import type { IncomingHttpHeaders } from 'node:http';
import { rateLimited } from '../metrics/metrics.ts';
import { isWithin } from '../net/ip_range.ts';
import type { Asked } from '../pool/lending.ts';
import type { Database } from '../postgres/database.ts';
import type { Caller } from '../resource/operation.ts';
import { databaseTime } from '../values/clock.ts';
import { Problem } from '../values/problem.ts';
import { default_rate_limit } from './api_key.ts';
import type { KeyLeases } from './key_leases.ts';

export interface Presented extends Caller {
  /** The whole key: inbound signatures are made with it. It is used for nothing else. */
  secret: string;
  signature_required: boolean;
  rate: RateLimit;
}

export interface RateLimit {
  limit: number;
  remaining: number;
  /** Unix seconds. */
  reset: number;
}

export const unlimited = (): RateLimit => ({
  limit: default_rate_limit,
  remaining: default_rate_limit,
  reset: Math.floor(databaseTime() / 1000) + 1,
});

/** The mode that the responses to this request are labelled with: known from the key's prefix before the key is looked up. */
export const presentsTestKey = (headers: IncomingHttpHeaders): boolean =>
  /^rail_(?:pk_)?test_/.test(bearer(headers) ?? '');

/**
 * Finds the key and counts the request, in a round trip of its own, or in none.
 * @param address where the request comes from
 * @throws Problem missing_api_key, insufficient_scope, invalid_api_key, revoked_api_key, expired_api_key, ip_not_allowed
 */
export async function authenticate(
  leases: KeyLeases,
  database: Database,
  { headers, address }: { headers: IncomingHttpHeaders; address: string },
  asked: Asked,
): Promise<Presented> {
  const secret = bearer(headers);
  if (!secret)
    throw new Problem('missing_api_key', "Send the API key in the header 'Authorization: Bearer rail_live_…'.", {
      param: 'Authorization',
    });
  refusePublishable(secret);
  const counted = await leases.count(database, secret, asked);
  if (!counted)
    throw new Problem('invalid_api_key', 'The API key does not exist. Check that it was copied completely.');
  if (counted.revoked) throw new Problem('revoked_api_key', 'The API key was revoked. Use another key.');
  if (counted.expired)
    throw new Problem(
      'expired_api_key',
      'The API key has expired, or was rotated and its overlap is over. Use the new key.',
    );
  const { rate_limit, remaining, second, revoked: _, expired: __, ip_ranges, ...key } = counted;
  if (ip_ranges && !isWithin(ip_ranges, address))
    throw new Problem(
      'ip_not_allowed',
      `The API key cannot be used from ${address}. Send the request from a network in its 'ip_ranges', or change them.`,
    );
  return { ...key, secret, rate: { limit: rate_limit, remaining, reset: second + 1 } };
}

/** A publishable key stands in web pages, where anybody reads it. @throws Problem insufficient_scope */
function refusePublishable(secret: string): void {
  if (!secret.startsWith('rail_pk_')) return;
  throw new Problem(
    'insufficient_scope',
    'A publishable key records clicks and leads of web pages, and opens nothing else. Use a secret key, on your server.',
    { param: 'Authorization' },
  );
}

/** @throws Problem rate_limit_exceeded */
export function requireRate({ limit, remaining, reset }: RateLimit): void {
  if (remaining >= 0) return;
  rateLimited();
  throw new Problem(
    'rate_limit_exceeded',
    `This key may make ${limit} requests per second. Retry after the time in 'Retry-After'.`,
    {
      headers: { 'Retry-After': String(Math.max(1, reset - Math.floor(databaseTime() / 1000))) },
    },
  );
}

const bearer = (headers: IncomingHttpHeaders): string | undefined =>
  /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
