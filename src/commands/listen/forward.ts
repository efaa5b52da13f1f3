import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'undici';
import { timeout_ms } from '../../webhooks/queue/send.ts';

/** The result of passing a webhook on to a local server. */
export interface Forwarded {
  /** The status for Rail: the local server's, or 502 or 504 where it gave none. */
  status: number;
  duration_ms: number;
  error: string | null;
  /** The rest of the local server's answer. */
  answer: { headers: Record<string, string>; body: Buffer };
}

/** Belong to the connection that they came on. */
const of_connection = ['connection', 'content-length', 'expect', 'host', 'keep-alive', 'transfer-encoding'];
const passed_back = ['content-type', 'content-encoding', 'retry-after'];

/**
 * Passes a webhook on as it came: the exact body, and all headers that are not the connection's. Redirects are not followed, because Rail
 * does not either. Never throws.
 * @param gone aborted when nobody waits for the answer any more
 */
export async function forward(
  to: URL,
  headers: IncomingHttpHeaders,
  raw: Buffer,
  gone: AbortSignal,
): Promise<Forwarded> {
  const started = performance.now();
  const outcome = (of: Omit<Forwarded, 'duration_ms'>): Forwarded => ({
    ...of,
    duration_ms: Math.round(performance.now() - started),
  });
  const late = AbortSignal.timeout(timeout_ms);
  try {
    const response = await request(to, {
      method: 'POST',
      headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !of_connection.includes(name))),
      body: raw,
      signal: AbortSignal.any([late, gone]),
    });
    const body = Buffer.from(await response.body.arrayBuffer());
    const given = Object.entries(response.headers).filter(([name]) => passed_back.includes(name));
    return outcome({
      status: response.statusCode,
      error: null,
      answer: { headers: Object.fromEntries(given.map(([name, value]) => [name, String(value)])), body },
    });
  } catch (error) {
    const nothing = { headers: {}, body: Buffer.alloc(0) };
    if (late.aborted) return outcome({ status: 504, error: 'no answer within 10 seconds', answer: nothing });
    return outcome({ status: 502, error: reasonOf(error), answer: nothing });
  }
}

/** A name with several addresses fails with one error for each. */
function reasonOf(error: unknown): string {
  const { code, message, errors } = error as Error & { code?: string; errors?: { code?: string }[] };
  return code ?? errors?.[0]?.code ?? message;
}

/** Returns whether the local server accepted it: then Rail does not send it again. */
export const isAcknowledged = ({ status }: Forwarded): boolean => status >= 200 && status < 300;

/** For people. */
export function forwardedLine({ status, duration_ms, error }: Forwarded): string {
  return error === null ? `→ ${status} in ${duration_ms} ms` : `→ ${status}: ${error}`;
}
