import type { FastifyRequest } from 'fastify';
import { type Presented, presentsTestKey, unlimited } from '../access/authenticate.ts';
import { api_version } from '../values/api.ts';

declare module 'fastify' {
  interface FastifyRequest {
    presented: Presented | null;
  }
}

/**
 * The headers of every response, errors included; a response may have another Cache-Control.
 * @param https whether clients reach the service by https, and are to go on doing so
 */
export function responseHeaders(
  { presented, headers, id }: Pick<FastifyRequest, 'presented' | 'headers' | 'id'>,
  https: boolean,
) {
  const { limit, remaining, reset } = presented?.rate ?? unlimited();
  const test = presented ? presented.mode === 'test' : presentsTestKey(headers);
  return {
    'X-Rail-Version': api_version,
    'X-Rail-Livemode': String(!test),
    'X-RateLimit-Limit': limit,
    'X-RateLimit-Remaining': Math.max(0, remaining),
    'X-RateLimit-Reset': reset,
    'Rail-Request-Id': id,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...(https ? { 'Strict-Transport-Security': 'max-age=31536000' } : {}),
  };
}
