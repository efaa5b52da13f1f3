/** One HTTP call to a provider, and what is known when it fails. The one place where a call's failure is classified. */
import type { Dispatcher } from 'undici';
import type { z } from 'zod';
import { isBeforeSending, parsedJson, readText, retryAfterOf } from '../../core/net/answer.ts';
import { type ProviderContext, ProviderFailure } from './provider.ts';

const max_answer_bytes = 2 * 1024 * 1024;

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** The body as JSON. Undefined: it is none. */
  body: unknown;
}

/**
 * Asks a provider. Redirects are not followed.
 * @throws ProviderFailure `unavailable` where it was not reached or answered 5xx, `lost` where no answer came in time
 */
export async function ask(
  title: string,
  url: URL,
  { dispatcher, cut_off, timeout_ms }: ProviderContext,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const late = AbortSignal.timeout(timeout_ms);
  const answer = await send(url, dispatcher, AbortSignal.any([late, cut_off]), headers).catch((error: unknown) => {
    if (late.aborted || cut_off.aborted) throw new ProviderFailure('lost', `${title} did not answer in time.`);
    throw new ProviderFailure(isBeforeSending(error) ? 'unavailable' : 'lost', `${title} did not answer.`);
  });
  if (answer.status >= 500) throw new ProviderFailure('unavailable', `${title} answered ${answer.status}.`);
  return answer;
}

async function send(
  url: URL,
  dispatcher: Dispatcher,
  signal: AbortSignal,
  headers: Record<string, string>,
): Promise<Answer> {
  signal.throwIfAborted();
  const response = await dispatcher.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: 'GET',
    headers: { accept: 'application/json', 'user-agent': 'Rail', ...headers },
    signal,
  });
  const text = await readText(response.body, max_answer_bytes);
  return { status: response.statusCode, headers: response.headers, body: parsedJson(text) };
}

/** @throws ProviderFailure `unavailable` when the answer has not the form that is documented */
export function readAs<Schema extends z.ZodType>(title: string, schema: Schema, { body }: Answer): z.output<Schema> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  throw new ProviderFailure('unavailable', `${title} answered something that is not documented.`);
}

/** The time that `Retry-After` asks to wait. Undefined: it does not. */
export function retryAfterMs({ headers }: Answer): number | undefined {
  const wait_s = retryAfterOf(headers['retry-after']);
  return wait_s === undefined ? undefined : wait_s * 1_000;
}
