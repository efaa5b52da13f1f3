/**
 * The interface of every billing processor: a client without a state of its own, which knows neither the database nor programs. What an event says
 * is read into facts, which are the same for all processors: `apply.ts` gives them their effects.
 */
import type { z } from 'zod';
import { isStorable } from '../../core/values/texts/stored_text.ts';
import { billing_processors } from '../programs/program.ts';
import type { NewSale } from '../sales/new_sale.ts';

export const processor_names = billing_processors;
export type ProcessorName = (typeof processor_names)[number];
export const processor_modes = ['test', 'live'] as const;
export type ProcessorMode = (typeof processor_modes)[number];

export type Credentials = Readonly<Record<string, string>>;

/** The connection to an account at a processor. */
export interface Account {
  mode: ProcessorMode;
  credentials: Credentials;
  /** The base URL of the processor: its own, or what a setting puts in its place. */
  url: string;
  /** Aborts the calls. */
  cut_off: AbortSignal;
}

/** A webhook as it came. */
export interface Delivery {
  /** By lower-case name, as Node has them. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  raw_body: Buffer;
  now_ms: number;
}

/** An event as the inbox keeps it. */
export interface Envelope {
  external_event_id: string;
  type: string;
  external_object_id: string | null;
  external_customer_id: string | null;
  /** Null: the processor has another account for tests, and says it nowhere. */
  livemode: boolean | null;
  /** ISO 8601. */
  occurred_at: string;
  /** The order of events of one second. */
  rank: number;
  /** The id of the customer at the processor, or else of what the event is about: events of one queue are worked on in order. */
  queue: string;
}

/** The facts of a sale that are known before its customer is. Amounts are in minor units of ISO 4217. */
export interface SaleFact extends Pick<NewSale, 'external_charge_id' | 'amount_minor' | 'currency'> {
  kind: 'sale';
  parts: Partial<Pick<NewSale, 'tax_minor' | 'shipping_minor' | 'fee_minor' | 'discount_minor'>>;
  external_customer_id: string | null;
  external_subscription_id?: string | undefined;
  product_id?: string | undefined;
  click_id?: string | undefined;
  /** The ids of the promotions that were used. */
  coupon_external_ids: string[];
  customer: { email?: string | undefined; name?: string | undefined };
  occurred_at: string;
  metadata: Record<string, string>;
  /** Other ids of the same payment at the processor. */
  also_known_as: string[];
  /** Ids of what was paid, by which the API may have recorded the sale: nothing else names them. */
  paid_for?: string[];
}

/** The facts that an event states. `at`: the time at the processor, ISO 8601. */
export type Fact =
  | SaleFact
  /** Who the customer is: the click that brought them, or the customer here. */
  | {
      kind: 'customer';
      external_customer_id: string;
      click_id?: string | undefined;
      customer_id?: string | undefined;
      email?: string | undefined;
      name?: string | undefined;
    }
  /** Another id of something that has one. */
  | { kind: 'alias'; of: string; external_id: string }
  | {
      kind: 'refund';
      external_refund_id: string;
      /** The payment that is refunded. */
      of: string;
      amount_minor: number;
      /** ISO 4217. Undefined: that of the payment. */
      currency?: string | undefined;
      status: 'succeeded' | 'failed';
      reason?: string | undefined;
      /** When it was made. */
      refunded_at: string;
      at: string;
    }
  | {
      kind: 'dispute';
      external_dispute_id: string;
      of: string;
      amount_minor: number;
      currency?: string | undefined;
      status: 'open' | 'won' | 'lost';
      /** It is closed without having been one: nothing follows unless it is known. */
      only_if_known?: boolean;
      /** The processor shows it as a refund: a request may have recorded it as one. */
      is_refund?: boolean;
      reason?: string | undefined;
      opened_at: string;
      at: string;
    }
  | {
      kind: 'subscription';
      external_subscription_id: string;
      external_customer_id: string;
      click_id?: string | undefined;
      status: 'trial' | 'active' | 'cancelled';
      at: string;
    }
  | { kind: 'coupon'; external_id: string; active: boolean; at: string }
  /** The processor no longer lets this service in. */
  | { kind: 'disconnected'; message: string };

/** No effect follows from an event, and why. */
export interface Nothing {
  kind: 'nothing';
  reason: string;
  message: string;
}

/** Reads from the processor what an event does not hold. */
export interface Question {
  path: string;
  query?: Record<string, string>;
}

/** An event is read in steps: into what follows, or into what has to be asked first. */
export type Reading =
  | Fact[]
  | Nothing
  | {
      ask: Question[];
      worth_it_for?: Attributable;
      /** Prefixes of ids: where no sale is known by such an id, nothing is asked, and the answers are undefined. */
      where_sales_are?: string[];
    };

/** Who might be credited: where nobody here is known by any of it, nothing needs to be asked. */
export interface Attributable {
  external_customer_id: string | null;
  click_id?: string | undefined;
  /** The sale may have a coupon, which the answer names. */
  by_coupon: boolean;
  /** The ids of the payment: they are known to be nothing here where nobody is credited, so that what is about it does not wait. */
  payment_ids?: string[];
}

/** An event whose amount cannot be read: somebody has to look, for it may be money. */
export class Unreadable extends Error {
  override readonly name = 'Unreadable';
}

/** The `refusal` of processors that sign. */
export const refusal_of_signed =
  'The webhook is not signed with the secret of this program, its time is more than five minutes from the current time, or its body is not an event.';

/** A webhook that is not signed with the secret, is stale, or is no event. */
export class DeliveryRefused extends Error {
  override readonly name = 'DeliveryRefused';
}

const longest_id = 255;

/** @throws DeliveryRefused where an id of it is none of a processor, or its time cannot be stored */
export function requireEnvelope(envelope: Envelope): Envelope {
  const { external_event_id, external_object_id, external_customer_id, queue, occurred_at } = envelope;
  const ids = [external_event_id, external_object_id, external_customer_id, queue].filter((id) => id !== null);
  const are_kept = ids.every((id) => id.length <= longest_id && isStorable(id));
  // Years of more than four digits, and those before the first, begin with a sign.
  if (!are_kept || occurred_at < '1970') throw new DeliveryRefused('The body is not an event.');
  return envelope;
}

/** The processor refuses the key. */
export class KeyRefused extends Error {
  override readonly name = 'KeyRefused';
}

/** The processor does not answer, or not now: try again later. */
export class ProcessorAway extends Error {
  override readonly name = 'ProcessorAway';
}

export interface Connected {
  /** The account, as the processor names it. */
  account: string;
  warnings: string[];
  /** With what was made for this connection, such as the secret of a webhook endpoint. */
  credentials: Credentials;
  endpoint_id: string | null;
}

export interface Page {
  events: unknown[];
  next: string | null;
}

export const promotion_durations = ['once', 'repeating', 'forever'] as const;

/** A coupon with its code, to be made at a processor. */
export interface Promotion {
  program_id: string;
  code: string;
  /** There is one of these two. */
  percent_off_bps?: number | undefined;
  amount_off_minor?: number | undefined;
  /** ISO 4217, of `amount_off_minor`. */
  currency?: string | undefined;
  duration: (typeof promotion_durations)[number];
  /** The months of `repeating`. */
  duration_months?: number | undefined;
  max_redemptions?: number | undefined;
  expires_at?: string | undefined;
  /** The program, the code and the terms in one: by it, what an earlier request made is found. */
  key: string;
}

/** A time from which on, and one before which. ISO 8601. */
export interface Span {
  since: string;
  until: string;
}

export const movement_kinds = ['charge', 'refund', 'dispute'] as const;

/** A charge, refund or dispute as the processor lists it, to be compared with what is recorded of it. */
export interface Movement {
  kind: (typeof movement_kinds)[number];
  /** Its ids, the one by which people find it first. */
  ids: string[];
  /** The ids that its events are about. */
  about: string[];
  /** The payment that is refunded or disputed; null for a charge. */
  of: string | null;
  /** In minor units of ISO 4217. */
  amount_minor: number;
  currency: string;
}

export interface Processor {
  name: ProcessorName;
  /** For people. */
  title: string;
  /** What may be wrong with a webhook that is refused, for whoever sends it. */
  refusal: string;
  /** The fields that a caller sends. Strict: an unknown field is refused. */
  credentials: z.ZodObject;
  /** The field of `credentials` whose last characters are shown. */
  identifying: string;
  urls: Readonly<Record<ProcessorMode, string>>;
  /** The types of events that have effects; others are counted, and not kept. */
  types: readonly string[];
  /** Those of them that tell of a charge. */
  charge_types: readonly string[];
  /**
   * Tries the credentials.
   * @param endpoint_id the webhook endpoint of the connection, to look for; null: there is none yet
   * @returns the account, and what is to be corrected at the processor
   * @throws Problem invalid_parameter, whose `param` names the field; service_unavailable where the processor does not answer
   */
  check(account: Account, endpoint_id: string | null): Promise<{ account: string; warnings: string[] }>;
  /** Has the processor send its events to a URL, and nothing else. @throws Problem */
  connect(account: Account, webhook_url: string): Promise<{ credentials: Credentials; endpoint_id: string | null }>;
  /** Deletes the webhook endpoints of connections that have ended, and old ones to this URL that are of none: a request may be making one. */
  disconnect(
    account: Account,
    webhook_url: string,
    endpoints: { keep: string | null; ended_ids: string[] },
  ): Promise<void>;
  /** Verifies a webhook, and reads what the inbox needs of it. Undefined: no event of a type that has effects. @throws DeliveryRefused */
  receive(delivery: Delivery, credentials: Credentials): Envelope | undefined;
  /** Reads what the inbox needs of an event. Undefined: of a type without effects. @throws DeliveryRefused where it is no event */
  envelope(event: unknown): Envelope | undefined;
  /**
   * A page of the events of the account since a time, as they were sent, and where the next page begins; null after the last.
   * @throws KeyRefused, ProcessorAway
   */
  events(account: Account, since: string, from: string | null): Promise<Page>;
  /**
   * The same of what happened before the processor remembers its events: made of its objects, a list after the other, as it would send them now.
   * @throws KeyRefused, ProcessorAway
   */
  history(account: Account, since: string, from: string | null): Promise<Page>;
  /** A page of what was charged, refunded and disputed in a span. @throws KeyRefused, ProcessorAway */
  movements(account: Account, span: Span, from: string | null): Promise<{ movements: Movement[]; next: string | null }>;
  /** Events that say what an id is, as the processor would send them now: none where it does not know it. @throws KeyRefused, ProcessorAway */
  find(account: Account, external_id: string): Promise<unknown[]>;
  /**
   * Makes a promotion, or finds the one that an earlier request of the same key made.
   * @returns its id, which sales name
   * @throws Problem invalid_parameter, whose `param` is a field of the promotion if one is refused; KeyRefused, ProcessorAway
   */
  createPromotion(account: Account, promotion: Promotion): Promise<string>;
  /** @param answers what was asked so far, in order */
  read(body: unknown, answers: unknown[]): Reading;
  /** @throws KeyRefused, ProcessorAway */
  ask(account: Account, question: Question): Promise<unknown>;
}
