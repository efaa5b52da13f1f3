/**
 * Stripe Connect: one transfer to the partner's connected account for each payout. It is paid once it is in their Stripe balance; Stripe
 * pays it out to their bank by their own schedule. https://docs.stripe.com/api/transfers
 */
import { z } from 'zod';
import { verifySignature } from '../../../core/encryption/signature.ts';
import { parsedJson, urlBelow } from '../../../core/net/answer.ts';
import { fractionDigits } from '../../../core/values/money.ts';
import { Problem } from '../../../core/values/problem.ts';
import { at, listAt, quoted, textAt } from './answer.ts';
import { type Answer, asksAgain, type CallResult, callProvider, doubtful, unknown } from './provider_call.ts';
import {
  type Credentials,
  type PayoutErrorCode,
  type Rail,
  type RailContext,
  type RailOutcome,
  type ReceivedWebhook,
  type Refusal,
  type Transfer,
  type TransferContext,
  type WebhookContext,
  WebhookRefused,
  type WebhookSubjects,
} from './rail.ts';
import { hundredth, stripeAmount, three_decimals } from './stripe_amount.ts';

const title = 'Stripe';
/** Answers keep the form of this version, also when Stripe publishes a newer one: https://docs.stripe.com/api/versioning */
export const api_version = '2026-10-28.endive';
/** Stripe forgets a key after 24 hours at the earliest. */
const key_life_s = 23 * 3600;
/** A call that was not answered may still be at work for this long: until then, an empty list proves nothing. */
const settling_ms = 10 * 60_000;

/** Codes of Stripe's errors; all others are `provider_rejected`. */
const error_codes: Readonly<Record<string, PayoutErrorCode>> = {
  balance_insufficient: 'insufficient_funds',
  insufficient_funds: 'insufficient_funds',
  account_invalid: 'recipient_invalid',
  insufficient_capabilities_for_transfer: 'recipient_invalid',
  account_closed: 'account_closed',
  amount_too_large: 'limit_exceeded',
};

export const stripe: Rail = {
  name: 'stripe',
  title,
  credentials: z.strictObject({
    secret_key: z
      .string()
      .regex(/^(?:sk|rk)_(?:test|live)_[A-Za-z0-9_]{8,255}$/, 'must be a secret or restricted key: sk_… or rk_…')
      .describe('A secret key, or a restricted key that may write transfers and read balances.'),
    webhook_secret: z
      .string()
      .regex(/^whsec_[A-Za-z0-9+/=_-]{8,255}$/, 'must be a signing secret: whsec_…')
      .optional()
      .describe(
        'The signing secret of the webhook endpoint that points to Rail. Without it, outcomes are polled only.',
      ),
  }),
  secrets: ['secret_key', 'webhook_secret'],
  urls: { test: 'https://api.stripe.com', live: 'https://api.stripe.com' },
  key_life_s,
  refuse,
  check,
  submit,
  lookUp,
  verifyWebhook,
};

function refuse(amount_minor: number, currency: string): Refusal | undefined {
  if (fractionDigits(currency) > 2 && !three_decimals.has(currency)) {
    return { error_code: 'currency_not_supported', message: `Stripe does not transfer ${currency}.` };
  }
  if (three_decimals.has(currency) && amount_minor % 10 !== 0) {
    return { error_code: 'provider_rejected', message: `Stripe transfers ${currency} in steps of 0.010 only.` };
  }
  if (hundredth.has(currency) && amount_minor % 100 !== 0) {
    return { error_code: 'provider_rejected', message: `Stripe transfers whole amounts of ${currency} only.` };
  }
  return undefined;
}

async function check(credentials: Credentials, context: RailContext): Promise<{ account: string; warnings: string[] }> {
  const refused = (message: string) => new Problem('invalid_parameter', message, { param: 'secret_key' });
  if (!credentials.secret_key?.includes(`_${context.mode}_`)) {
    throw refused(`In ${context.mode} mode, the key begins with sk_${context.mode}_ or rk_${context.mode}_.`);
  }
  const balance = await call({ method: 'GET', path: '/v1/balance' }, credentials, context);
  if (balance.kind !== 'answered' || balance.status === 429 || balance.status >= 500) {
    throw new Problem('service_unavailable', 'Stripe does not answer. Try again.');
  }
  if (balance.status !== 200) throw refused(`Stripe refuses the key: ${messageOf(balance, credentials)}`);
  if (at(balance.body, 'livemode') !== (context.mode === 'live'))
    throw refused('The key is for the other mode. Send a key for this mode.');
  const account = await call({ method: 'GET', path: '/v1/account' }, credentials, context);
  const warnings = ['A payout is paid once it is in the balance of the partner at Stripe, which is not their bank.'];
  if (!credentials.webhook_secret) warnings.push('Without webhook_secret, outcomes are polled only.');
  return { account: (account.kind === 'answered' && textAt(account.body, 'id')) || 'not readable', warnings };
}

async function submit(transfer: Transfer, credentials: Credentials, context: TransferContext): Promise<RailOutcome> {
  const is_repetition = context.last_sent_at !== null;
  if (is_repetition) {
    const found = await lookUp(transfer, credentials, context);
    if (found !== undefined && found.status !== 'unknown') return found;
    if (context.now.getTime() - Date.parse(transfer.began_at) > key_life_s * 1000) return found ?? neverAccepted();
  }
  const request = {
    method: 'POST',
    path: '/v1/transfers',
    form: formOf(transfer),
    key: transfer.idempotency_key,
  } as const;
  const result = await call(request, credentials, context);
  const doubt = doubtful(title, result, context.now);
  if (doubt) return doubt;
  const answer = result as Answer;
  if (answer.status < 300) return outcomeOf(answer.body) ?? unknown('Stripe answered without a transfer.');
  return refusalOf(answer, credentials, is_repetition);
}

/** The same transfer gives the same bytes: under one key, Stripe refuses others. */
const formOf = (transfer: Transfer): Record<string, string> => ({
  amount: String(stripeAmount(transfer.amount_minor, transfer.currency)),
  currency: transfer.currency.toLowerCase(),
  destination: transfer.destination.account_id ?? '',
  transfer_group: transfer.idempotency_key,
  description: `Payout ${transfer.payout_id} from ${transfer.program_name}`.slice(0, 500),
  'metadata[payout_id]': transfer.payout_id,
});

const neverAccepted = (): RailOutcome => ({
  status: 'failed',
  reference: null,
  error_code: 'provider_unavailable',
  error_message: 'Stripe did not accept the transfer within the life of its idempotency key, and has no such transfer.',
});

/** Stripe checks keys and permissions before it looks at an idempotency key: these say nothing about an earlier call. */
function refusalOf(answer: Answer, credentials: Credentials, is_repetition: boolean): RailOutcome {
  const error_message = messageOf(answer, credentials);
  const is_undecided = answer.status === 409 || textAt(answer.body, 'error', 'type') === 'idempotency_error';
  if (is_undecided || (is_repetition && (answer.status === 401 || answer.status === 403))) {
    return unknown(`Stripe refused the repetition: ${error_message}`);
  }
  return { status: 'failed', reference: null, error_code: errorCodeOf(answer.body), error_message };
}

function errorCodeOf(body: unknown): PayoutErrorCode {
  const [code, param] = [textAt(body, 'error', 'code') ?? '', textAt(body, 'error', 'param')];
  if (error_codes[code]) return error_codes[code];
  if (param === 'destination') return 'recipient_invalid';
  return param === 'currency' ? 'currency_not_supported' : 'provider_rejected';
}

async function lookUp(
  transfer: Transfer,
  credentials: Credentials,
  context: TransferContext,
): Promise<RailOutcome | undefined> {
  const { idempotency_key } = transfer;
  const query = { transfer_group: idempotency_key, limit: '10' };
  const result = await call({ method: 'GET', path: '/v1/transfers', query }, credentials, context);
  if (result.kind !== 'answered' || result.status !== 200 || !Array.isArray(at(result.body, 'data'))) {
    return asksAgain(title, result, context.now);
  }
  const found = listAt(result.body, 'data').find((each) => textAt(each, 'transfer_group') === idempotency_key);
  if (found !== undefined) return outcomeOf(found) ?? unknown('Stripe showed something else than a transfer.');
  const sent_at = context.last_sent_at === null ? Number.NEGATIVE_INFINITY : Date.parse(context.last_sent_at);
  if (context.now.getTime() - sent_at > settling_ms) return undefined;
  return unknown('Stripe has no such transfer yet, and may still be at work on the call.');
}

/** A transfer that is reversed in part stays paid: only the merchant can reverse one, and Rail keeps no parts of payouts. */
function outcomeOf(transfer: unknown): RailOutcome | undefined {
  const [reference, created] = [textAt(transfer, 'id'), at(transfer, 'created')];
  if (reference === undefined || typeof created !== 'number') return undefined;
  if (at(transfer, 'reversed') === true) {
    const error_message = 'The transfer was reversed.';
    return { status: 'returned', reference, error_code: 'returned', error_message };
  }
  return { status: 'paid', reference, paid_at: new Date(created * 1000).toISOString(), fee_minor: 0 };
}

function messageOf({ status, body }: Answer, { secret_key = '', webhook_secret = '' }: Credentials): string {
  const words = [textAt(body, 'error', 'code'), textAt(body, 'error', 'message')].filter((word) => word !== undefined);
  return quoted(words.join(': '), [secret_key, webhook_secret]) || `Stripe answered ${status}.`;
}

interface StripeCall {
  method: 'GET' | 'POST';
  path: string;
  query?: Record<string, string>;
  form?: Record<string, string>;
  /** The key by which Stripe recognizes a repetition: https://docs.stripe.com/api/idempotent_requests */
  key?: string;
}

const call = (
  { method, path, query, form, key }: StripeCall,
  { secret_key }: Credentials,
  context: RailContext,
): Promise<CallResult> =>
  callProvider({
    method,
    url: urlBelow(context.url, path, query),
    headers: {
      authorization: `Bearer ${secret_key}`,
      'stripe-version': api_version,
      ...(form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
      ...(key ? { 'idempotency-key': key } : {}),
    },
    ...(form ? { body: new URLSearchParams(form).toString() } : {}),
    cut_off: context.cut_off,
  });

async function verifyWebhook(
  { headers, raw_body }: ReceivedWebhook,
  { webhook_secret }: Credentials,
  { now }: WebhookContext,
): Promise<WebhookSubjects> {
  if (!webhook_secret) throw new WebhookRefused('The credentials have no webhook_secret.');
  const event = verified(raw_body, String(headers['stripe-signature'] ?? ''), webhook_secret, now);
  if (textAt(event, 'type') === undefined) throw new WebhookRefused('The body is not an event.');
  if (textAt(event, 'data', 'object', 'object') !== 'transfer') return { references: [], idempotency_keys: [] };
  return {
    references: [textAt(event, 'data', 'object', 'id')].filter((id) => id !== undefined),
    idempotency_keys: [textAt(event, 'data', 'object', 'transfer_group')].filter((key) => key !== undefined),
  };
}

/** Stripe signs as Rail does: https://docs.stripe.com/webhooks/signature */
function verified(raw_body: Buffer, signature: string, secret: string, now: Date): unknown {
  try {
    verifySignature(signature, secret, raw_body, now.getTime());
  } catch {
    throw new WebhookRefused('The signature does not match, or is stale.');
  }
  return parsedJson(raw_body.toString('utf8'));
}
