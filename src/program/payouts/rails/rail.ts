/**
 * The interface of every payout rail. A rail is a client without a state of its own: the caller stores the state of an attempt with it, so that any
 * worker can continue where another one was killed.
 */
import type { z } from 'zod';

export const rail_names = ['paypal', 'wise', 'stripe'] as const;
export type RailName = (typeof rail_names)[number];
export const rail_modes = ['test', 'live'] as const;
export type RailMode = (typeof rail_modes)[number];

export const payout_error_codes = [
  'recipient_invalid',
  'recipient_unclaimed',
  'account_closed',
  'returned',
  'compliance_hold',
  'limit_exceeded',
  'insufficient_funds',
  'currency_not_supported',
  'provider_rejected',
  'provider_unavailable',
] as const;
export type PayoutErrorCode = (typeof payout_error_codes)[number];

/** The transfer, as it is stored with the attempt: it never changes afterwards, so that a repetition sends the same bytes. */
export interface Transfer {
  /** `<payout id>-<attempt>`. */
  idempotency_key: string;
  payout_id: string;
  program_name: string;
  partner_name: string;
  partner_email: string;
  amount_minor: number;
  currency: string;
  /** The details of the partner's payout method: `{email}` for PayPal, `{account_id}` for Wise and Stripe. */
  destination: Record<string, string>;
  /** The time at which the attempt began. The provider's key lives from then on. */
  began_at: string;
}

/** The known state of a transfer after a call. Texts hold no secrets. */
export type RailOutcome =
  | { status: 'paid'; reference: string | null; paid_at: string; fee_minor: number | null }
  /** Accepted and not terminal. `note` says what a person has to do, if anything. */
  | { status: 'processing'; reference: string | null; note?: string }
  /** Definite: nothing was paid, and nothing will be under this key. */
  | { status: 'failed'; reference: string | null; error_code: PayoutErrorCode; error_message: string }
  /** It was paid, and came back. */
  | { status: 'returned'; reference: string | null; error_code: PayoutErrorCode; error_message: string }
  /** This call had no effect. What an earlier one did is as unknown as before. */
  | { status: 'later'; reason: string; retry_after_s?: number }
  /** The call may have had its effect. After this and after `later`, call `submit` again under the same key, with backoff. */
  | { status: 'unknown'; reason: string };

export type Credentials = Readonly<Record<string, string>>;

/** The settings of a rail's calls: the provider, and the deadline. */
export interface RailContext {
  mode: RailMode;
  /** The base URL of the provider: one of `urls`, or what a setting puts in its place. */
  url: string;
  now: Date;
  /** Aborts the calls. */
  cut_off: AbortSignal;
}

export interface TransferContext extends RailContext {
  /**
   * The time at which `submit` was last called for this transfer: committed before the call, and restored where the call came to `later`. Null: no
   * call can have had an effect.
   */
  last_sent_at: string | null;
  /** The stored state of this attempt. */
  state: Readonly<Record<string, string>>;
  /**
   * Replaces what the attempt keeps. Commits it before it resolves: the next call relies on it. `with_outcome`: no call follows, and repeating the
   * last one would return it again, so it may be written together with the outcome.
   */
  keep(state: Record<string, string>, options?: { with_outcome: true }): Promise<void>;
}

export interface WebhookContext {
  mode: RailMode;
  url: string;
  now: Date;
  cut_off: AbortSignal;
  /** Certificates in PEM that are trusted as roots. Unset: those of Node, with `NODE_EXTRA_CA_CERTS`. */
  authorities?: readonly string[];
}

export interface ReceivedWebhook {
  /** By lower-case name, as Node has them. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  raw_body: Buffer;
}

/** The transfers to look up. Both lists are empty where the webhook concerns none. */
export interface WebhookSubjects {
  /** The references, as in `RailOutcome`. */
  references: string[];
  idempotency_keys: string[];
}

/** A webhook that is forged, stale or malformed, or that cannot be verified with these credentials. */
export class WebhookRefused extends Error {
  override readonly name = 'WebhookRefused';
}

/** A webhook that could not be verified now, because a certificate could not be fetched: answer 503, so that the provider sends it again. */
export class WebhookNotVerifiable extends Error {
  override readonly name = 'WebhookNotVerifiable';
}

export interface Refusal {
  error_code: PayoutErrorCode;
  message: string;
}

export interface Rail {
  name: RailName;
  /** For people. */
  title: string;
  /** Strict: an unknown field is refused. */
  credentials: z.ZodObject;
  /** The fields of `credentials` that are never shown. */
  secrets: readonly string[];
  /** The provider's base URL for each mode. */
  urls: Readonly<Record<RailMode, string>>;
  /** The time for which `submit` repeats a call under its key, counted from `began_at`: the provider's own time, less a margin. Null: for ever. */
  key_life_s: number | null;
  /** Returns the refusal that is known before a call: a currency, or an amount that the provider cannot express. */
  refuse(amount_minor: number, currency: string): Refusal | undefined;
  /**
   * Tries the credentials. Moves no money.
   * @returns the account at the provider, and what the owner should know about it
   * @throws Problem invalid_parameter, whose `param` names the field; service_unavailable where the provider does not answer
   */
  check(credentials: Credentials, context: RailContext): Promise<{ account: string; warnings: string[] }>;
  /**
   * Sends the transfer. May be called again for the same transfer at any time: it is paid once, because the key's life is over after
   * `key_life_s`, and from then on this only looks up. Never throws for what the provider does; only for what `keep` throws.
   */
  submit(transfer: Transfer, credentials: Credentials, context: TransferContext): Promise<RailOutcome>;
  /**
   * Asks the provider, and pays nothing. Undefined: it provably has no such transfer, and no call to it is under way. A payout that was paid
   * may be found `failed` here, where it came back before anybody looked; one that never was paid may be found `returned`.
   */
  lookUp(transfer: Transfer, credentials: Credentials, context: TransferContext): Promise<RailOutcome | undefined>;
  /** Gives up a transfer that is not paid yet, where the provider can: the outcome says whether it did. */
  cancel?(transfer: Transfer, credentials: Credentials, context: TransferContext): Promise<RailOutcome | undefined>;
  /**
   * Verifies a webhook as the provider documents it. It only says what to look up: its contents decide nothing.
   * @throws WebhookRefused, WebhookNotVerifiable
   */
  verifyWebhook(webhook: ReceivedWebhook, credentials: Credentials, context: WebhookContext): Promise<WebhookSubjects>;
}
