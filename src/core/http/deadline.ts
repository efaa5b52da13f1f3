import type { FastifyRequest } from 'fastify';
import { Problem } from '../values/problem.ts';

export const default_answer_ms = 10_000;

/**
 * Waits for what a request needs of Postgres, but no longer than an answer may take: a server that stands still holds nobody up. What was
 * begun may still commit, so a retry carries the same idempotency key.
 * @throws Problem service_unavailable
 */
export async function withinDeadline<Result>(
  { server: { answer_ms } }: Pick<FastifyRequest, 'server'>,
  work: Promise<Result>,
): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(tooLate(answer_ms)), answer_ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const tooLate = (answer_ms: number): Problem =>
  new Problem(
    'service_unavailable',
    `The request was not answered within ${answer_ms / 1_000} seconds, because the database or the service is busy or away. Retry with the same idempotency key.`,
    { headers: { 'Retry-After': '5' } },
  );
