/** Parts of HTTP calls to others: what an answer holds, and what is known of a call that failed. */
import { databaseTime } from '../values/clock.ts';

const longest_wait_s = 86_400;

/** @throws Error where the body is longer than that */
export async function readText(body: AsyncIterable<Buffer>, max_bytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > max_bytes) throw new Error('answer too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Undefined: it is no JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses the header `Retry-After`, in seconds or as a date: whole seconds, up to a day. Undefined where it asks for no wait. */
export function retryAfterOf(header: string | string[] | undefined, now_ms = databaseTime()): number | undefined {
  const text = [header].flat()[0]?.trim();
  if (text === undefined) return undefined;
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : (Date.parse(text) - now_ms) / 1_000;
  return seconds > 0 ? Math.min(Math.ceil(seconds), longest_wait_s) : undefined;
}

type CallError = Error & { code?: string; syscall?: string; errors?: CallError[] };

/** Checking the address, resolving the name, connecting or the TLS handshake failed: not a byte of the request was written. */
export function isBeforeSending(error: unknown): boolean {
  const { code = '', syscall = '', errors } = error as CallError;
  if (errors !== undefined && errors.length > 0) return errors.every(isBeforeSending);
  if (['UND_ERR_CONNECT_TIMEOUT', 'address_not_allowed', 'name_not_resolved'].includes(code)) return true;
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true;
  return /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code);
}

/** A code, never a message: that may quote what was sent. */
export function codeOf(error: unknown): string {
  const { code, name, errors } = error as CallError;
  return code ?? errors?.[0]?.code ?? name ?? 'unknown error';
}

/** A path below a base URL, whatever that ends with. What is undefined is left out. */
export function urlBelow(base: string, path: string, query: Record<string, string | undefined> = {}): URL {
  const url = new URL(base.replace(/(?<!\/)\/+$/, '') + path);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
  return url;
}
