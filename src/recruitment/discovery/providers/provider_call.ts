/** One HTTP call to a provider, and what is known when it fails. The one place where a call's failure is judged. */
import type { Dispatcher } from 'undici';
import type { z } from 'zod';
import { type ProviderContext, ProviderFailure } from './provider.ts';

const max_answer_bytes = 2 * 1024 * 1024;
const longest_wait_ms = 86_400_000;

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
    throw new ProviderFailure(isBeforeSending(error) ? 'unavailable' : 'lost', `${title} could not be asked.`);
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
  const text = await readText(response.body);
  return { status: response.statusCode, headers: response.headers, body: parsed(text) };
}

async function readText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > max_answer_bytes) throw new Error('answer too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type CallError = Error & { code?: string; syscall?: string; errors?: CallError[] };

/** Judging the address, resolving the name, connecting or the TLS handshake failed: not a byte of the request was written. */
function isBeforeSending(error: unknown): boolean {
  const { code = '', syscall = '', errors } = error as CallError;
  if (errors !== undefined && errors.length > 0) return errors.every(isBeforeSending);
  if (['UND_ERR_CONNECT_TIMEOUT', 'address_not_allowed', 'name_not_resolved'].includes(code)) return true;
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true;
  return /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code);
}

/** @throws ProviderFailure `unavailable` when the answer has not the form that is documented */
export function readAs<Schema extends z.ZodType>(title: string, schema: Schema, { body }: Answer): z.output<Schema> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  throw new ProviderFailure('unavailable', `${title} answered something that is not documented.`);
}

/** The wait that `Retry-After` asks for, in seconds or as a date, up to a day. */
export function retryAfter({ headers }: Answer, now: number): number | undefined {
  const value = String(headers['retry-after'] ?? '').trim();
  if (value === '') return undefined;
  const wait_ms = /^\d{1,9}$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - now;
  return Number.isNaN(wait_ms) ? undefined : Math.min(Math.max(wait_ms, 0), longest_wait_ms);
}

/** A path below the base URL, whatever that ends with. What is undefined is left out. */
export function urlBelow(base: string, path: string, query: Record<string, string | undefined>): URL {
  const url = new URL(base.replace(/\/+$/, '') + path);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
  return url;
}
