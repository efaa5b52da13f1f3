import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Agent, Dispatcher } from 'undici';
import { railSignature } from '../../core/encryption/signature.ts';
import type { Vault } from '../../core/encryption/vault.ts';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { AddressRefused, checkEndpointUrl } from '../../core/net/address.ts';
import { retryAfterOf } from '../../core/net/answer.ts';
import { connectionOrigin } from '../../core/net/origin.ts';
import { NameNotResolved } from '../../core/net/resolve.ts';
import type { Services } from '../../core/resource/services.ts';
import { databaseTime } from '../../core/values/clock.ts';
import { inSpan } from '../../core/values/trace.ts';
import { isChat } from './chat.ts';

/**
 * "Any 2xx within 10 seconds acknowledges": over name, connection, TLS and headers together. The status line decides; what there is of a body
 * is read in the time that is left.
 */
export const timeout_ms = 10_000;
export const user_agent = 'Rail-Webhooks/1.0';
/** The bytes of a response that are read and kept. */
const most_response_bytes = 16_384;

/** The stored columns of an endpoint that are needed to send to it. */
export interface Addressee {
  endpoint_id: string;
  type: string;
  url: string;
  https_only: boolean;
  /** The signing secret; of a team chat, its address. */
  secret: Buffer;
  previous_secret: Buffer | null;
}

/** The receiver of a run. */
export interface Receiver {
  /** Undefined where the URL is not one to send to, for the reason given. */
  target: { origin: URL; path: string } | undefined;
  refusal: string;
  /** The URL that is shown: of a team chat, a hint. */
  shown_url: string;
  /** The keys of the newest secret first; two during a rotation. None for a team chat, which verifies no signature. */
  keys: SigningKeys[];
}

/** The signing keys of a secret, `whsec_…`: the whole text in Rail's own form, and the base64 after its prefix in Standard Webhooks form. */
interface SigningKeys {
  rail: KeyObject;
  standard: KeyObject;
}

/** @throws Error when the secret cannot be opened */
export function receiverOf(
  { endpoint_id, type, url, https_only, secret, previous_secret }: Addressee,
  { vault, allow_private_addresses, own_hosts }: Services,
): Receiver {
  const secrets = openSecrets(vault, endpoint_id, [secret, previous_secret]);
  const address = isChat(type) ? (secrets[0] as string) : url;
  const checked = checkEndpointUrl(address, {
    allowPrivate: allow_private_addresses,
    ownHosts: own_hosts,
    httpsOnly: https_only && !allow_private_addresses,
  });
  const keys = isChat(type) ? [] : secrets.map(keysOf);
  if (!checked.ok) return { target: undefined, refusal: checked.reason, shown_url: url, keys };
  const target = {
    origin: connectionOrigin(checked.url, endpoint_id),
    path: checked.url.pathname + checked.url.search,
  };
  return { target, refusal: '', shown_url: url, keys };
}

export interface Sendable {
  delivery_id: string;
  event_id: string;
  event_type: string;
  /** Attempts made before this one. */
  attempt: number;
  body: string;
  request_id: string | null;
  /** The place of the event's cause in a trace. */
  traceparent?: string | null;
}

export interface Outcome {
  acknowledged: boolean;
  at: string;
  duration_ms: number;
  status_code: number | null;
  response_body: string | null;
  error: string | null;
  /** Why there was no answer, for the operator; undefined where there was one. */
  failure?: Failure | undefined;
  /** The parts of the request that do not follow from the delivery. Signatures are of no use after five minutes. */
  url: string;
  rail_signature: string | null;
  webhook_signature: string | null;
  /** The least wait before the next attempt that a team chat asks for. */
  retry_after_s?: number | undefined;
}

type SendContext = Pick<WorkerContext, 'cut_off'> & { agent: Agent };

/** Sends to one receiver, one request after another. While one is on its way, the next is signed. */
export class Sender {
  readonly #receiver: Receiver;
  readonly #context: SendContext;
  #signed: { of: Sendable; t: number; headers: Record<string, string> } | undefined;

  constructor(receiver: Receiver, context: SendContext) {
    this.#receiver = receiver;
    this.#context = context;
  }

  /**
   * Makes one attempt. Never throws: whatever goes wrong is the attempt's outcome. Redirects are never followed.
   * @param next what is likely to be sent after it
   * @returns undefined when it was cut off before the endpoint had answered
   */
  send(delivery: Sendable, next?: Sendable): Promise<Outcome | undefined> {
    const { delivery_id, event_id, event_type, attempt, traceparent: parent } = delivery;
    if (!parent) return this.#send(delivery, next);
    const attributes = {
      ...{ 'rail.delivery_id': delivery_id, 'rail.event_id': event_id, 'rail.event_type': event_type },
      'rail.attempt': attempt + 1,
    };
    return inSpan('deliver', { parent, kind: 'client', attributes }, async (span) => {
      const outcome = await this.#send(delivery, next, span?.traceparent);
      if (outcome)
        span?.set({
          'http.response.status_code': outcome.status_code ?? 0,
          'rail.outcome': outcome.failure ?? 'answered',
        });
      return outcome;
    });
  }

  async #send(delivery: Sendable, next: Sendable | undefined, traceparent?: string): Promise<Outcome | undefined> {
    const { cut_off } = this.#context;
    const at = new Date(databaseTime());
    const started = performance.now();
    const exchange = new Exchange();
    const sent: Sent = { url: this.#receiver.shown_url, rail_signature: null, webhook_signature: null };
    const timer = setTimeout(() => exchange.abort(new DeadlinePassed()), timeout_ms);
    const cut = () => exchange.abort(new CutOff());
    cut_off.addEventListener('abort', cut, { once: true });
    try {
      const t = Math.floor(at.getTime() / 1000);
      const headers = { ...this.#headersOf(delivery, t), ...(traceparent && { traceparent }) };
      Object.assign(sent, signaturesIn(headers));
      this.#begin(exchange, delivery, headers);
      if (next) this.#signed = { of: next, t, headers: headersOf(this.#receiver, next, t) };
      return outcomeOf({ ...this.#heeded(await exchange.answer), ...sent }, at, started);
    } catch (error) {
      if (cut_off.aborted) return undefined;
      const [failure, reason] = failureOf(error);
      return outcomeOf({ status_code: null, response_body: null, error: reason, failure, ...sent }, at, started);
    } finally {
      clearTimeout(timer);
      cut_off.removeEventListener('abort', cut);
    }
  }

  /** A team chat that is sent too much says for how long it takes nothing. */
  #heeded({ retry_after_s, ...answer }: Answer): Answer {
    const heeds = this.#receiver.keys.length === 0 && answer.status_code === 429;
    return heeds ? { ...answer, retry_after_s } : answer;
  }

  /** @throws AddressRefused */
  #begin(exchange: Exchange, { body }: Sendable, headers: Record<string, string>): void {
    const { target, refusal } = this.#receiver;
    if (!target) throw new AddressRefused(refusal);
    this.#context.agent.dispatch({ ...target, method: 'POST', headers, body }, exchange);
  }

  #headersOf(delivery: Sendable, t: number): Record<string, string> {
    const signed = this.#signed?.of === delivery && this.#signed.t === t ? this.#signed.headers : undefined;
    return signed ?? headersOf(this.#receiver, delivery, t);
  }
}

class DeadlinePassed extends Error {}
class CutOff extends Error {}

type Answer = Pick<Outcome, 'status_code' | 'response_body' | 'error' | 'failure' | 'retry_after_s'>;

type Sent = Pick<Outcome, 'url' | 'rail_signature' | 'webhook_signature'>;

/** Returns the signatures to store. A team chat has none. */
const signaturesIn = (headers: Record<string, string>): Omit<Sent, 'url'> => ({
  rail_signature: headers['Rail-Signature'] ?? null,
  webhook_signature: headers['webhook-signature'] ?? null,
});

const outcomeOf = (answer: Answer & Sent, at: Date, started: number): Outcome => ({
  ...answer,
  acknowledged: answer.error === null,
  at: at.toISOString(),
  duration_ms: Math.round(performance.now() - started),
});

/**
 * A request and its answer, which is read to 16 KiB and no further: the rest is cut off with its connection. From its status on, a 2xx is an
 * answer, whatever becomes of its body.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #answered = Promise.withResolvers<Answer>();
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #status_code = 0;
  #retry_after_s: number | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #abortion: Error | undefined;

  /** Fails with AddressRefused, NameNotResolved, and whatever the connection fails with. */
  get answer(): Promise<Answer> {
    return this.#answered.promise;
  }

  /** Nobody waits any longer: the connection is closed, and one that is still being opened is not written to. */
  abort(reason: Error): void {
    this.#fail(reason);
    this.#abortion = reason;
    this.#controller?.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#abortion) controller.abort(this.#abortion);
  }

  onResponseStart(_: Dispatcher.DispatchController, status_code: number, headers: IncomingHttpHeaders): void {
    this.#status_code = status_code;
    this.#retry_after_s = retryAfterOf(headers['retry-after']);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size < most_response_bytes) return;
    this.#answer();
    controller.abort(new Error('The rest is not read.'));
  }

  onResponseEnd(): void {
    this.#answer();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  #fail(error: Error): void {
    if (this.#is_acknowledged) this.#answer();
    else this.#answered.reject(error);
  }

  get #is_acknowledged(): boolean {
    return this.#status_code >= 200 && this.#status_code < 300;
  }

  #answer(): void {
    const status_code = this.#status_code;
    const read = Buffer.concat(this.#chunks).subarray(0, most_response_bytes).toString('utf8');
    this.#answered.resolve({
      status_code,
      response_body: read.replaceAll('\0', '\uFFFD'),
      error: this.#is_acknowledged ? null : `The endpoint answered ${status_code}.`,
      retry_after_s: this.#retry_after_s,
    });
  }
}

/** The headers of section 6, "Request": ours, and the same delivery in Standard Webhooks form. Of a team chat, the first two alone. */
export function headersOf({ keys }: Pick<Receiver, 'keys'>, delivery: Sendable, t: number): Record<string, string> {
  const { event_id, event_type, delivery_id, attempt, body, request_id } = delivery;
  const common = { 'Content-Type': 'application/json', 'User-Agent': user_agent };
  if (keys.length === 0) return common;
  const rail = keys.map((each) => each.rail);
  return {
    ...common,
    'Rail-Signature': railSignature(rail, t, body),
    'Rail-Event': event_type,
    'Rail-Event-Id': event_id,
    'Rail-Delivery-Id': delivery_id,
    'Rail-Attempt': String(attempt + 1),
    ...(request_id === null ? {} : { 'Rail-Request-Id': request_id }),
    'webhook-id': event_id,
    'webhook-timestamp': String(t),
    'webhook-signature': keys.map(({ standard }) => `v1,${standardSignature(standard, event_id, t, body)}`).join(' '),
  };
}

/** Base64 HMAC-SHA256 of `<id>.<timestamp>.<body>`. */
const standardSignature = (key: KeyObject, event_id: string, t: number, body: string): string =>
  createHmac('sha256', key).update(`${event_id}.${t}.${body}`).digest('base64');

/** Key objects sign several times as fast as the bytes they are made of. */
const keysOf = (secret: string): SigningKeys => ({
  rail: createSecretKey(secret, 'utf8'),
  standard: createSecretKey(secret.slice('whsec_'.length), 'base64'),
});

/** Decrypts an endpoint's secrets; those that are not there are left out. */
const openSecrets = (vault: Vault, endpoint_id: string, sealed: (Buffer | null)[]): string[] =>
  sealed.filter((secret) => secret !== null).map((secret) => vault.decrypt(secret, endpoint_id));

export type Failure = 'address' | 'dns' | 'timeout' | 'refused' | 'tls' | 'broken';

/** With the reason in the merchant's words, which are no oracle for the inside: what the system says of an address stays here. */
function failureOf(error: unknown): [failure: Failure, reason: string] {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof AddressRefused) return ['address', cause.message];
    if (cause instanceof NameNotResolved) return ['dns', cause.message];
  }
  const { code } = error as { code?: string };
  if (error instanceof DeadlinePassed || /TIMEOUT/i.test(code ?? ''))
    return ['timeout', 'No complete response within 10 seconds.'];
  if (code === 'ECONNREFUSED') return ['refused', 'The connection was refused.'];
  if (/CERT|TLS|SSL|SELF_SIGNED|ALTNAME|UNABLE_TO/.test(code ?? ''))
    return ['tls', 'The TLS certificate was not accepted.'];
  return ['broken', 'The connection failed or was closed before the response was complete.'];
}
