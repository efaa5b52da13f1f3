/**
 * PayPal Payouts, API v1: one batch with one item for each payout. `sender_batch_id` is what PayPal knows a repetition by, for 30 days.
 * https://developer.paypal.com/docs/api/payments.payouts-batch/v1/
 */
import { z } from 'zod';
import { Problem } from '../../../core/values/problem.ts';
import { decimalOf } from './amount.ts';
import { listAt, textAt } from './answer.ts';
import { errorCodeOf, messageOf, outcomeOfBatch } from './paypal_outcome.ts';
import { callPayPal, secretsOf, tokenOf } from './paypal_token.ts';
import { verifyPayPalWebhook } from './paypal_webhook.ts';
import { type Answer, asksAgain, doubtful, unknown } from './provider_call.ts';
import type { Credentials, Rail, RailContext, RailOutcome, Refusal, Transfer, TransferContext } from './rail.ts';

const title = 'PayPal';
const scope_for_payouts = 'https://uri.paypal.com/payments/payouts';
const day_s = 86_400;

/** https://developer.paypal.com/reports/reference/supported-currencies */
const currencies = new Set(
  'AUD BRL CAD CNY CHF CZK DKK EUR GBP HKD HUF ILS JPY MXN MYR NOK NZD PHP PLN SEK SGD THB TWD USD'.split(' '),
);
/** "This currency does not support decimals. Decimal amounts will throw an error." */
const whole_only = new Set(['HUF', 'JPY', 'TWD']);

export const paypal: Rail = {
  name: 'paypal',
  title,
  credentials: z.strictObject({
    client_id: z.string().min(1).max(255).describe("The client id of your REST API app in PayPal's developer portal."),
    client_secret: z.string().min(1).max(255).describe('The secret of that app.'),
    webhook_id: z
      .string()
      .regex(/^[A-Za-z0-9]{1,50}$/, 'must be the id of a webhook')
      .optional()
      .describe("The id of the app's webhook that points to Rail. Without it, outcomes are polled only."),
  }),
  secrets: ['client_secret'],
  urls: { test: 'https://api-m.sandbox.paypal.com', live: 'https://api-m.paypal.com' },
  key_life_s: 29 * day_s,
  refuse,
  check,
  submit,
  lookUp,
  cancel,
  verifyWebhook: verifyPayPalWebhook,
};

function refuse(amount_minor: number, currency: string): Refusal | undefined {
  if (!currencies.has(currency)) {
    return { error_code: 'currency_not_supported', message: `PayPal does not pay out ${currency}.` };
  }
  if (whole_only.has(currency) && /\.0*[1-9]/.test(decimalOf(amount_minor, currency))) {
    return { error_code: 'provider_rejected', message: `PayPal pays out whole amounts of ${currency} only.` };
  }
  return undefined;
}

/** HUF and TWD have hundredths in ISO 4217, and none at PayPal. */
const amountOf = ({ amount_minor, currency }: Transfer): string => {
  const decimal = decimalOf(amount_minor, currency);
  return whole_only.has(currency) ? decimal.replace(/\.0+$/, '') : decimal;
};

async function check(credentials: Credentials, context: RailContext): Promise<{ account: string; warnings: string[] }> {
  const token = await tokenOf(credentials, context);
  if ('kind' in token) {
    if (token.kind !== 'answered') throw new Problem('service_unavailable', 'PayPal does not answer. Try again.');
    throw new Problem(
      'invalid_parameter',
      'PayPal refused the client id and the secret in this mode. Check both, and the mode.',
      {
        param: 'client_secret',
      },
    );
  }
  const warnings = [];
  if (!token.scopes.includes(scope_for_payouts)) {
    warnings.push('Payouts are not enabled for this app, or not yet. Ask PayPal to enable them for your account.');
  }
  if (credentials.webhook_id === undefined) warnings.push('Without webhook_id, outcomes are polled only.');
  else await requireWebhook(credentials, context);
  return { account: token.app_id ?? (credentials.client_id as string), warnings };
}

async function requireWebhook(credentials: Credentials, context: RailContext): Promise<void> {
  const path = `/v1/notifications/webhooks/${encodeURIComponent(credentials.webhook_id as string)}`;
  const result = await callPayPal({ method: 'GET', path }, credentials, context);
  if (result.kind === 'answered' && result.status === 200) return;
  if (result.kind === 'answered' && (result.status === 404 || result.status === 400)) {
    throw new Problem('invalid_parameter', 'This app has no webhook with this id.', { param: 'webhook_id' });
  }
  throw new Problem('service_unavailable', 'PayPal does not answer. Try again.');
}

async function submit(transfer: Transfer, credentials: Credentials, context: TransferContext): Promise<RailOutcome> {
  if (context.state.payout_batch_id !== undefined) return readBatch(transfer, credentials, context);
  if (isKeyOver(transfer, context)) return unknown('PayPal no longer knows the key, and cannot be asked without it.');
  const result = await callPayPal(
    {
      method: 'POST',
      path: '/v1/payments/payouts',
      headers: { 'paypal-request-id': transfer.idempotency_key },
      body: requestOf(transfer),
    },
    credentials,
    context,
  );
  const doubt = doubtful(title, result, context.now);
  if (doubt) return doubt;
  const answer = result as Answer;
  const batch_id =
    answer.status < 300 ? textAt(answer.body, 'batch_header', 'payout_batch_id') : originalOf(answer.body);
  if (batch_id === undefined) return refusalOf(answer, credentials, context);
  const known = { ...context, state: { ...context.state, payout_batch_id: batch_id } };
  if (answer.status >= 300) {
    await context.keep(known.state);
    return readBatch(transfer, credentials, known);
  }
  await context.keep(known.state, { with_outcome: true });
  return outcomeOfBatch(answer.body, transfer, { now: context.now, secrets: secretsOf(credentials, context) });
}

/** The same transfer gives the same bytes. */
function requestOf(transfer: Transfer): string {
  const { idempotency_key, program_name, payout_id, currency, destination } = transfer;
  return JSON.stringify({
    sender_batch_header: {
      sender_batch_id: idempotency_key,
      email_subject: `Your payout from ${program_name.replaceAll(/[^\x20-\x7e]/g, '').slice(0, 200)}`,
    },
    items: [
      {
        recipient_type: 'EMAIL',
        receiver: destination.email ?? '',
        amount: { value: amountOf(transfer), currency },
        sender_item_id: idempotency_key,
        note: `Payout ${payout_id}`,
      },
    ],
  });
}

/** "The API rejects the request with an error message that … includes a HATEOAS link to the original payout." Only its id is used. */
function originalOf(body: unknown): string | undefined {
  if (textAt(body, 'name') !== 'USER_BUSINESS_ERROR') return undefined;
  const duplicate = listAt(body, 'details').find(
    (detail) => textAt(detail, 'field')?.toUpperCase() === 'SENDER_BATCH_ID',
  );
  const links = [...listAt(duplicate, 'link'), ...listAt(duplicate, 'links'), ...listAt(body, 'links')];
  const ids = links.map(
    (link) => /\/payments\/payouts\/([A-Za-z0-9]{1,30})(?:\?|$)/.exec(textAt(link, 'href') ?? '')?.[1],
  );
  return duplicate === undefined ? undefined : ids.find((id) => id !== undefined);
}

/**
 * A refusal that does not link the original says nothing about an earlier call, which may have been accepted before the credentials, the
 * limits or the balance changed. Only that the request is invalid holds for every call with the same bytes.
 */
function refusalOf({ status, body }: Answer, credentials: Credentials, context: TransferContext): RailOutcome {
  const name = textAt(body, 'name');
  const error_message = messageOf(body, secretsOf(credentials, context));
  if (status < 300) return unknown(`PayPal answered ${status} without a batch.`);
  if (name === 'USER_BUSINESS_ERROR' || (context.last_sent_at !== null && name !== 'VALIDATION_ERROR')) {
    return unknown(`PayPal refused the repetition: ${error_message}`);
  }
  const error_code = errorCodeOf(name, listAt(body, 'details'));
  return { status: 'failed', reference: null, error_code, error_message };
}

async function lookUp(
  transfer: Transfer,
  credentials: Credentials,
  context: TransferContext,
): Promise<RailOutcome | undefined> {
  if (context.state.payout_batch_id !== undefined) return readBatch(transfer, credentials, context);
  if (context.last_sent_at === null) return undefined;
  return unknown('PayPal shows a batch by its id alone, which is not known. Repeating the call returns it.');
}

async function readBatch(transfer: Transfer, credentials: Credentials, context: TransferContext): Promise<RailOutcome> {
  const path = `/v1/payments/payouts/${encodeURIComponent(context.state.payout_batch_id as string)}`;
  const result = await callPayPal({ method: 'GET', path }, credentials, context);
  if (result.kind !== 'answered' || result.status !== 200 || result.body === undefined) {
    return asksAgain(title, result, context.now);
  }
  const sender_batch_id = textAt(result.body, 'batch_header', 'sender_batch_header', 'sender_batch_id');
  if (sender_batch_id !== transfer.idempotency_key) return unknown('PayPal showed the batch of another payout.');
  return outcomeOfBatch(result.body, transfer, { now: context.now, secrets: secretsOf(credentials, context) });
}

/** "You can cancel payout items with a transaction_status of UNCLAIMED." Everything else is what it is. */
async function cancel(
  transfer: Transfer,
  credentials: Credentials,
  context: TransferContext,
): Promise<RailOutcome | undefined> {
  const found = await lookUp(transfer, credentials, context);
  if (found?.status !== 'processing' || found.reference === null) return found;
  const path = `/v1/payments/payouts-item/${encodeURIComponent(found.reference)}/cancel`;
  const result = await callPayPal({ method: 'POST', path }, credentials, context);
  if (result.kind !== 'answered') return asksAgain(title, result, context.now);
  return lookUp(transfer, credentials, context);
}

const isKeyOver = ({ began_at }: Transfer, { now, last_sent_at }: TransferContext): boolean =>
  last_sent_at !== null && now.getTime() - Date.parse(began_at) > 29 * day_s * 1000;
