import { createHmac } from 'node:crypto';
import type { Agent } from 'undici';
import type { Services } from '../core/operation.ts';
import type { Vault } from '../core/secret.ts';
import { railSignature } from '../core/signature.ts';
import type { TaskContext } from '../core/task.ts';
import { AddressRefused, checkEndpointUrl, NameNotResolved } from './address.ts';
import { laneOrigin } from './agent.ts';

/** "Any 2xx within 10 seconds acknowledges": over name, connection, TLS, headers and body together. */
export const timeout_ms = 10_000;
export const user_agent = 'Rail-Webhooks/1.0';
/** How much of a response is read and kept. */
const most_response_bytes = 16_384;

/** What is stored of an endpoint that is needed to send to it. */
export interface Addressee {
  endpoint_id: string;
  url: string;
  https_only: boolean;
  secret: Buffer;
  previous_secret: Buffer | null;
}

/** Who is sent to, in a turn. */
export interface Receiver {
  /** Undefined where the URL is not one to send to, for the reason given. */
  target: { origin: URL; path: string } | undefined;
  refusal: string;
  /** `whsec_…`, the newest first; two during a rotation. */
  secrets: string[];
}

/** @throws Error when the secret cannot be opened */
export function receiverOf(
  { endpoint_id, url, https_only, secret, previous_secret }: Addressee,
  { vault, allow_private_addresses, own_hosts }: Services,
): Receiver {
  const judged = checkEndpointUrl(url, {
    allowPrivate: allow_private_addresses,
    ownHosts: own_hosts,
    httpsOnly: https_only,
  });
  const secrets = openSecrets(vault, endpoint_id, [secret, previous_secret]);
  if (!judged.ok) return { target: undefined, refusal: judged.reason, secrets };
  const target = { origin: laneOrigin(judged.url, endpoint_id), path: judged.url.pathname + judged.url.search };
  return { target, refusal: '', secrets };
}

export interface Sendable {
  delivery_id: string;
  event_id: string;
  event_type: string;
  /** Attempts made before this one. */
  attempt: number;
  body: string;
  request_id: string | null;
}

export interface Outcome {
  acknowledged: boolean;
  at: string;
  duration_ms: number;
  status_code: number | null;
  response_body: string | null;
  error: string | null;
}

export type SendContext = Pick<TaskContext, 'cut_off'> & { agent: Agent };

/**
 * Makes one attempt. Never throws: whatever goes wrong is the attempt's outcome. Redirects are never followed.
 * @returns undefined when it was cut off before the endpoint had answered
 */
export async function send(
  receiver: Receiver,
  delivery: Sendable,
  { agent, cut_off }: SendContext,
): Promise<Outcome | undefined> {
  const at = new Date();
  const started = performance.now();
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(new DeadlinePassed()), timeout_ms);
  const cut = () => over.abort();
  cut_off.addEventListener('abort', cut, { once: true });
  try {
    const answer = await unlessAborted(over.signal, exchange(receiver, delivery, { agent, at }, over.signal));
    return outcomeOf(answer, at, started);
  } catch (error) {
    if (cut_off.aborted) return undefined;
    return outcomeOf({ status_code: null, response_body: null, error: reasonOf(error) }, at, started);
  } finally {
    clearTimeout(timer);
    cut_off.removeEventListener('abort', cut);
  }
}

class DeadlinePassed extends Error {}

type Answer = Pick<Outcome, 'status_code' | 'response_body' | 'error'>;

const outcomeOf = (answer: Answer, at: Date, started: number): Outcome => ({
  ...answer,
  acknowledged: answer.error === null,
  at: at.toISOString(),
  duration_ms: Math.round(performance.now() - started),
});

/** @throws AddressRefused, NameNotResolved, and whatever the connection fails with */
async function exchange(
  receiver: Receiver,
  delivery: Sendable,
  { agent, at }: Omit<SendContext, 'cut_off'> & { at: Date },
  signal: AbortSignal,
): Promise<Answer> {
  if (!receiver.target) throw new AddressRefused(receiver.refusal);
  const { statusCode: status_code, body } = await agent.request({
    ...receiver.target,
    method: 'POST',
    headers: headersOf(receiver, delivery, Math.floor(at.getTime() / 1000)),
    body: delivery.body,
    signal,
  });
  const response_body = await firstBytes(body);
  const acknowledged = status_code >= 200 && status_code < 300;
  return { status_code, response_body, error: acknowledged ? null : `The endpoint answered ${status_code}.` };
}

/** A request that is still connecting does not listen to its signal, and is not written once it has connected: nobody waits for it. */
function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => aborted.reject(signal.reason), { once: true });
  return Promise.race([work, aborted.promise]);
}

/** The headers of section 6, "Request": ours, and the same delivery in Standard Webhooks form. */
export function headersOf(
  { secrets }: Pick<Receiver, 'secrets'>,
  delivery: Sendable,
  t: number,
): Record<string, string> {
  const { event_id, event_type, delivery_id, attempt, body, request_id } = delivery;
  return {
    'Content-Type': 'application/json',
    'User-Agent': user_agent,
    'Rail-Signature': railSignature(secrets, t, body),
    'Rail-Event': event_type,
    'Rail-Event-Id': event_id,
    'Rail-Delivery-Id': delivery_id,
    'Rail-Attempt': String(attempt + 1),
    ...(request_id === null ? {} : { 'Rail-Request-Id': request_id }),
    'webhook-id': event_id,
    'webhook-timestamp': String(t),
    'webhook-signature': secrets.map((secret) => `v1,${standardSignature(secret, event_id, t, body)}`).join(' '),
  };
}

/** Base64 HMAC-SHA256 of `<id>.<timestamp>.<body>`; the key is the secret without its prefix, base64-decoded. */
const standardSignature = (secret: string, event_id: string, t: number, body: string): string =>
  createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
    .update(`${event_id}.${t}.${body}`)
    .digest('base64');

/** Decrypts an endpoint's secrets; those that are not there are left out. */
const openSecrets = (vault: Vault, endpoint_id: string, sealed: (Buffer | null)[]): string[] =>
  sealed.filter((secret) => secret !== null).map((secret) => vault.decrypt(secret, endpoint_id));

/** Reads to 16 KiB and no further; the rest is cut off with its connection. */
async function firstBytes(body: AsyncIterable<Buffer> & { destroy?: () => unknown }): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= most_response_bytes) break;
  }
  return Buffer.concat(chunks).subarray(0, most_response_bytes).toString('utf8').replaceAll('\0', '\uFFFD');
}

/** In the merchant's words, and no oracle for the inside: what the system says of an address stays here. */
function reasonOf(error: unknown): string {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof AddressRefused || cause instanceof NameNotResolved) return cause.message;
  }
  const { code } = error as { code?: string };
  if (error instanceof DeadlinePassed || /TIMEOUT/i.test(code ?? '')) return 'No complete response within 10 seconds.';
  if (code === 'ECONNREFUSED') return 'The connection was refused.';
  if (/CERT|TLS|SSL|SELF_SIGNED|ALTNAME|UNABLE_TO/.test(code ?? '')) return 'The TLS certificate was not accepted.';
  return 'The connection failed or was closed before the response was complete.';
}
