import type { FastifyRequest } from 'fastify';
import type { Asked } from '../pool/lending.ts';
import { Problem } from '../values/problem.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Ends what is done for the request, once it has begun. */
    giveUp: ((reason: Error) => void) | undefined;
  }
}

export const default_answer_ms = 10_000;

/**
 * Waits for what a request needs of Postgres, but no longer than an answer may take, and no longer than its client: a server that stands
 * still holds nobody up. What is not waited for is cancelled. A commit that was sent may still take effect, so a retry carries the same
 * idempotency key.
 * @param kind whose share of the connections it takes; null for a probe
 * @throws Problem service_unavailable
 */
export async function withinDeadline<Result>(
  request: Pick<FastifyRequest, 'server' | 'giveUp'>,
  kind: Asked['kind'],
  work: (asked: Asked) => Promise<Result>,
): Promise<Result> {
  const { answer_ms, whenSlow } = request.server;
  const given_up = new AbortController();
  const late = Promise.withResolvers<never>();
  const giveUp = (reason: Error) => {
    late.reject(reason);
    given_up.abort(reason);
  };
  const timers = [setTimeout(() => giveUp(tooLate(answer_ms)), answer_ms), setTimeout(whenSlow, answer_ms / 2)];
  request.giveUp = giveUp;
  try {
    return await Promise.race([work({ kind, signal: given_up.signal, most_ms: answer_ms }), late.promise]);
  } finally {
    for (const timer of timers) clearTimeout(timer);
    request.giveUp = undefined;
  }
}

const tooLate = (answer_ms: number): Problem =>
  new Problem(
    'service_unavailable',
    `The request was not answered within ${answer_ms / 1_000} seconds, because the database or the service is busy or away. Retry with the same idempotency key.`,
    { headers: { 'Retry-After': '5' } },
  );

/** Nobody waits for the answer any more. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}
