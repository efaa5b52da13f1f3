/** One HTTP call to a provider, and what is known after it. The one place where a call's failure is judged. */
import type { RailOutcome } from './rail.ts';

/** A provider answers within this, or counts as silent. */
export const call_timeout_ms = 30_000;
const connect_timeout_ms = 10_000;
const max_answer_bytes = 1024 * 1024;
const longest_wait_s = 86_400;

const agent_options = { connect: { timeout: connect_timeout_ms }, connections: 64, pipelining: 1, allowH2: false };
let client: ReturnType<typeof loadClient> | undefined;

/** With the first call: a process that makes none is spared it. */
async function loadClient() {
  const { Agent, request } = await import('undici');
  return { request, dispatcher: new Agent(agent_options) };
}

export interface ProviderCall {
  method: 'GET' | 'POST' | 'PUT';
  url: URL;
  headers?: Record<string, string>;
  body?: string;
  cut_off: AbortSignal;
}

export interface Answer {
  kind: 'answered';
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /** The body as JSON. Undefined: it is none. */
  body: unknown;
}

/** `unreached`: the provider never saw the call. `lost`: it may have, and nobody knows what it answered. */
export type CallResult = Answer | { kind: 'unreached'; reason: string } | { kind: 'lost'; reason: string };

/** Never throws. Redirects are not followed. */
export async function callProvider({ method, url, headers, body, cut_off }: ProviderCall): Promise<CallResult> {
  if (cut_off.aborted) return { kind: 'unreached', reason: 'the time for the call was over before it began' };
  client ??= loadClient();
  const { request, dispatcher } = await client;
  const late = AbortSignal.timeout(call_timeout_ms);
  try {
    const response = await request(url, {
      method,
      headers: { accept: 'application/json', 'user-agent': 'Rail', ...headers },
      body: body ?? null,
      signal: AbortSignal.any([late, cut_off]),
      dispatcher,
    });
    const text = await readText(response.body);
    return { kind: 'answered', status: response.statusCode, headers: response.headers, text, body: parsed(text) };
  } catch (error) {
    if (late.aborted || cut_off.aborted) return { kind: 'lost', reason: 'no answer in time' };
    const reason = `${method} failed: ${codeOf(error)}`;
    return { kind: isBeforeSending(error) ? 'unreached' : 'lost', reason };
  }
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

/** Codes, never messages: these may quote what was sent. */
function codeOf(error: unknown): string {
  const { code, name, errors } = error as CallError;
  return code ?? errors?.[0]?.code ?? name ?? 'unknown error';
}

/** Resolving the name, connecting or the TLS handshake failed: not a byte of the request was written. */
function isBeforeSending(error: unknown): boolean {
  const { code = '', syscall = '', errors } = error as CallError;
  if (errors !== undefined && errors.length > 0) return errors.every(isBeforeSending);
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || syscall === 'connect' || syscall === 'getaddrinfo') return true;
  return /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code);
}

/** The wait that `Retry-After` asks for, in seconds or as a date, up to a day. */
export function retryAfter(headers: Answer['headers'], now: Date): number | undefined {
  const value = String(headers['retry-after'] ?? '').trim();
  if (value === '') return undefined;
  const seconds = /^\d{1,9}$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - now.getTime()) / 1000);
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 0), longest_wait_s);
}

export const later = (reason: string, retry_after_s?: number): RailOutcome => ({
  status: 'later',
  reason,
  ...(retry_after_s === undefined ? {} : { retry_after_s }),
});

export const unknown = (reason: string): RailOutcome => ({ status: 'unknown', reason });

/** What a call that asks or prepares, and moves no money, comes to when it has no usable answer. */
export function asksAgain(title: string, result: CallResult, now: Date): RailOutcome {
  if (result.kind !== 'answered') return later(`${title} could not be asked: ${result.reason}.`);
  return later(`${title} answered ${result.status}.`, retryAfter(result.headers, now));
}

/**
 * What a call that may move money comes to when it was not answered, or with 429 or 5xx. Undefined: the answer is definite and is to be read.
 */
export function doubtful(title: string, result: CallResult, now: Date): RailOutcome | undefined {
  if (result.kind === 'unreached') return later(`${title} was not reached: ${result.reason}.`);
  if (result.kind === 'lost') return unknown(`${title} did not answer: ${result.reason}.`);
  const { status, headers, body } = result;
  if (status === 429) return later(`${title} answered 429.`, retryAfter(headers, now));
  if (status === 408 || status >= 500) return unknown(`${title} answered ${status}.`);
  if (status < 300 && (body === undefined || body === null))
    return unknown(`${title} answered ${status} without JSON.`);
  if (status >= 300 && status < 400) return unknown(`${title} answered ${status}, a redirect.`);
  return undefined;
}

/** A path below the base URL, whatever that ends with. */
export function urlBelow(base: string, path: string, query: Record<string, string> = {}): URL {
  const url = new URL(base.replace(/\/+$/, '') + path);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url;
}
