import { createHmac } from 'node:crypto';
import type { Vault } from '../core/secret.ts';
import { railSignature } from '../core/signature.ts';
import type { TaskContext } from '../core/task.ts';
import { AddressRefused, checkEndpointUrl, NameNotResolved } from './address.ts';
import { laneOrigin } from './agent.ts';

/** "Any 2xx within 10 seconds acknowledges": over name, connection, TLS, headers and body together. */
export const timeout_ms = 10_000;
/** How much of a response is read and kept. */
const most_response_bytes = 16_384;

export interface Receiver {
  endpoint_id: string;
  url: string;
  /** `whsec_…`, the newest first; two during a rotation. */
  secrets: string[];
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

/** Makes one attempt. Never throws: whatever goes wrong is the attempt's outcome. Redirects are never followed. */
export async function send(
  receiver: Receiver,
  delivery: Sendable,
  { agent, services, cut_off }: TaskContext,
): Promise<Outcome> {
  const at = new Date();
  const started = performance.now();
  const outcome = (of: Pick<Outcome, 'acknowledged' | 'status_code' | 'response_body' | 'error'>): Outcome => ({
    ...of,
    at: at.toISOString(),
    duration_ms: Math.round(performance.now() - started),
  });
  try {
    const judged = checkEndpointUrl(receiver.url, {
      allowPrivate: services.allow_private_addresses,
      ownHosts: services.own_hosts,
    });
    if (!judged.ok) throw new AddressRefused(judged.reason);
    const response = await agent.request({
      origin: laneOrigin(judged.url, receiver.endpoint_id),
      path: judged.url.pathname + judged.url.search,
      method: 'POST',
      headers: headersOf(receiver, delivery, Math.floor(at.getTime() / 1000)),
      body: delivery.body,
      signal: AbortSignal.any([AbortSignal.timeout(timeout_ms), cut_off]),
    });
    const status_code = response.statusCode;
    const response_body = await firstBytes(response.body);
    const acknowledged = status_code >= 200 && status_code < 300;
    return outcome({
      acknowledged,
      status_code,
      response_body,
      error: acknowledged ? null : `The endpoint answered ${status_code}.`,
    });
  } catch (error) {
    return outcome({ acknowledged: false, status_code: null, response_body: null, error: reasonOf(error) });
  }
}

/** The headers of section 6, "Request": ours, and the same delivery in Standard Webhooks form. */
export function headersOf({ secrets }: Receiver, delivery: Sendable, t: number): Record<string, string> {
  const { event_id, event_type, delivery_id, attempt, body, request_id } = delivery;
  return {
    'Content-Type': 'application/json',
    'User-Agent': 'Rail-Webhooks/1.0',
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
export const openSecrets = (vault: Vault, endpoint_id: string, sealed: (Buffer | null)[]): string[] =>
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
  const { name, code } = error as { name?: string; code?: string };
  if (name === 'TimeoutError' || /TIMEOUT/i.test(code ?? '')) return 'No complete response within 10 seconds.';
  if (code === 'ECONNREFUSED') return 'The connection was refused.';
  if (/CERT|TLS|SSL|SELF_SIGNED|ALTNAME/.test(code ?? '')) return 'The TLS certificate was not accepted.';
  return 'The connection failed or was closed before the response was complete.';
}
