/** One HTTP call to a provider, and what is known after it. The one place where a call's failure is checked. */
import { codeOf, isBeforeSending, parsedJson, readText, retryAfterOf } from '../../../core/net/answer.ts';
import type { RailOutcome } from './rail.ts';

/** A provider answers within this, or counts as silent. */
export const call_timeout_ms = 30_000;
const connect_timeout_ms = 10_000;
const max_answer_bytes = 1024 * 1024;

const agent_options = { connect: { timeout: connect_timeout_ms }, connections: 64, pipelining: 1, allowH2: false };
let client: ReturnType<typeof loadClient> | undefined;

/** Loads the client with the first call: a process that makes none is spared it. */
async function loadClient() {
  const { Agent, request } = await import('undici');
  return { request, dispatcher: new Agent(agent_options) };
}

export interface ProviderCall {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  url: URL;
  headers?: Record<string, string>;
  body?: string;
  cut_off: AbortSignal;
  /** The most of an answer that is read. */
  most_bytes?: number;
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
export async function callProvider(call: ProviderCall): Promise<CallResult> {
  const { method, url, headers, body, cut_off, most_bytes = max_answer_bytes } = call;
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
    const text = await readText(response.body, most_bytes);
    return { kind: 'answered', status: response.statusCode, headers: response.headers, text, body: parsedJson(text) };
  } catch (error) {
    if (late.aborted || cut_off.aborted) return { kind: 'lost', reason: 'no answer in time' };
    const reason = `${method} failed: ${codeOf(error)}`;
    return { kind: isBeforeSending(error) ? 'unreached' : 'lost', reason };
  }
}

export const later = (reason: string, retry_after_s?: number): RailOutcome => ({
  status: 'later',
  reason,
  ...(retry_after_s === undefined ? {} : { retry_after_s }),
});

export const unknown = (reason: string): RailOutcome => ({ status: 'unknown', reason });

/** Returns the outcome of a call that asks or prepares, and moves no money, when it has no usable answer. */
export function asksAgain(title: string, result: CallResult, now: Date): RailOutcome {
  if (result.kind !== 'answered') return later(`${title} could not be asked: ${result.reason}.`);
  return later(`${title} answered ${result.status}.`, retryAfterOf(result.headers['retry-after'], now.getTime()));
}

/** Returns the outcome of a call that may move money when it was not answered, or with 429 or 5xx. Undefined: the answer is definite and is to be read. */
export function doubtful(title: string, result: CallResult, now: Date): RailOutcome | undefined {
  if (result.kind === 'unreached') return later(`${title} was not reached: ${result.reason}.`);
  if (result.kind === 'lost') return unknown(`${title} did not answer: ${result.reason}.`);
  const { status, headers, body } = result;
  if (status === 429) return later(`${title} answered 429.`, retryAfterOf(headers['retry-after'], now.getTime()));
  if (status === 408 || status >= 500) return unknown(`${title} answered ${status}.`);
  if (status < 300 && (body === undefined || body === null))
    return unknown(`${title} answered ${status} without JSON.`);
  if (status >= 300 && status < 400) return unknown(`${title} answered ${status}, a redirect.`);
  return undefined;
}
