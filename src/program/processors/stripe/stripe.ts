/** Stripe: signed webhooks, whose endpoint is created here with exactly the events that have effects. https://docs.stripe.com/webhooks */
import { z } from 'zod';
import { verifySignature } from '../../../core/encryption/signature.ts';
import { parsedJson } from '../../../core/net/answer.ts';
import { databaseTime } from '../../../core/values/clock.ts';
import { Problem } from '../../../core/values/problem.ts';
import { at, listAt, textAt } from '../../payouts/rails/answer.ts';
import { api_version } from '../../payouts/rails/stripe.ts';
import { translated } from '../call.ts';
import {
  type Account,
  type Credentials,
  type Delivery,
  DeliveryRefused,
  type Envelope,
  type Processor,
  refusal_of_signed,
  requireEnvelope,
} from '../processor.ts';
import { callStripe, readStripe, stripeMessage } from './client.ts';
import { readers } from './events.ts';
import { idAt, numberAt, timeOf } from './fields.ts';
import { findAtStripe, pathInOurVersion, stripeEvents, stripeHistory } from './look_up.ts';
import { stripeMovements } from './movements.ts';
import { createStripePromotion } from './promotion.ts';

/** The objects that a restricted key must be allowed to read. */
const readable = [
  ['/v1/customers', 'Customers'],
  ['/v1/charges', 'Charges and Refunds'],
  ['/v1/invoices', 'Invoices'],
  ['/v1/checkout/sessions', 'Checkout Sessions'],
  ['/v1/subscriptions', 'Subscriptions'],
  ['/v1/disputes', 'Disputes'],
  ['/v1/promotion_codes', 'Promotion Codes'],
  ['/v1/events', 'Events'],
] as const;

export const stripe: Processor = {
  name: 'stripe',
  title: 'Stripe',
  refusal: refusal_of_signed,
  credentials: z.strictObject({
    secret_key: z
      .string()
      .regex(/^(?:sk|rk)_(?:test|live)_[A-Za-z0-9_]{8,255}$/, 'must be a secret or restricted key: sk_… or rk_…')
      .describe(
        'A restricted key that may read Customers, Charges and Refunds, Invoices, Checkout Sessions, Subscriptions, Disputes, Promotion Codes and Events, and write Webhook Endpoints; or a secret key.',
      ),
    webhook_secret: z
      .string()
      .regex(/^whsec_[A-Za-z0-9+/=]{16,255}$/, 'must be the signing secret of a webhook endpoint: whsec_…')
      .optional()
      .describe(
        'Leave it out, and the webhook endpoint is created. The secret of an endpoint that you created at `webhook_url` yourself, or that `stripe listen --forward-to <webhook_url>` prints: Stripe creates no endpoints on localhost.',
      ),
  }),
  identifying: 'secret_key',
  urls: { test: 'https://api.stripe.com', live: 'https://api.stripe.com' },
  types: Object.keys(readers),
  charge_types: [
    ...['invoice.paid', 'charge.succeeded', 'charge.captured'],
    ...['checkout.session.completed', 'checkout.session.async_payment_succeeded'],
  ],
  check,
  connect,
  disconnect,
  receive,
  envelope,
  events: stripeEvents,
  history: stripeHistory,
  movements: stripeMovements,
  createPromotion: createStripePromotion,
  find: findAtStripe,
  read: (body, answers) => {
    const reader = readers[textAt(body, 'type') ?? ''];
    if (!reader) return { kind: 'nothing', reason: 'unknown_type', message: 'Events of this type have no effect.' };
    const [object, time] = [at(body, 'data', 'object'), timeOf(at(body, 'created'), reader.rank)];
    const path = pathInOurVersion(body);
    if (path === undefined) return reader.read(object, { at: time, answers });
    if (answers.length === 0) return { ask: [{ path }] };
    const [anew = object, ...rest] = answers;
    return reader.read(anew, { at: time, answers: rest });
  },
  ask: (account, { path, query }) => readStripe(account, path, query),
};

const refused = (message: string) => new Problem('invalid_parameter', message, { param: 'secret_key' });

async function check(account: Account, endpoint_id: string | null): Promise<{ account: string; warnings: string[] }> {
  const { mode, credentials } = account;
  if (!credentials.secret_key?.includes(`_${mode}_`))
    throw refused(`In ${mode} mode, the key begins with sk_${mode}_ or rk_${mode}_.`);
  await Promise.all(readable.map(([path, permission]) => requireReadable(account, path, permission)));
  const own = await callStripe(account, { path: '/v1/account' }).catch(translated('Stripe', 'secret_key'));
  return {
    account: (own.status === 200 && textAt(own.body, 'id')) || 'not readable',
    warnings: await lacks(account, endpoint_id),
  };
}

async function lacks(account: Account, endpoint_id: string | null): Promise<string[]> {
  if (endpoint_id === null) return [];
  const path = `/v1/webhook_endpoints/${encodeURIComponent(endpoint_id)}`;
  const { status, body } = await callStripe(account, { path }).catch(translated('Stripe', 'secret_key'));
  if (status === 200 && textAt(body, 'status') === 'enabled') return [];
  return [
    `The webhook endpoint ${endpoint_id} was deleted or disabled at Stripe. Set the credentials again to create one.`,
  ];
}

async function requireReadable(account: Account, path: string, permission: string): Promise<void> {
  const answer = await callStripe(account, { path, query: { limit: '1' } }).catch(translated('Stripe', 'secret_key'));
  if (answer.status === 200) return;
  if (answer.status === 403)
    throw refused(
      `The key may not read ${permission}. Allow it in the Stripe Dashboard: ${stripeMessage(answer, account)}`,
    );
  throw refused(`Stripe refuses the key: ${stripeMessage(answer, account)}`);
}

/** Stripe tells the secret of an endpoint once, when it is created: so each connection has its own, or that of one which a person created. */
async function connect(
  account: Account,
  webhook_url: string,
): Promise<{ credentials: Credentials; endpoint_id: string | null }> {
  if (account.credentials.webhook_secret !== undefined) return { credentials: account.credentials, endpoint_id: null };
  const form: [string, string][] = [
    ['url', webhook_url],
    ['api_version', api_version],
    ['description', 'Rail: sales of partners'],
    ...Object.keys(readers).map((type): [string, string] => ['enabled_events[]', type]),
  ];
  const call = { method: 'POST', path: '/v1/webhook_endpoints', form } as const;
  const answer = await callStripe(account, call).catch(translated('Stripe', 'secret_key'));
  const [endpoint_id, webhook_secret] = [textAt(answer.body, 'id'), textAt(answer.body, 'secret')];
  if (answer.status === 200 && endpoint_id && webhook_secret)
    return { credentials: { ...account.credentials, webhook_secret }, endpoint_id };
  throw refused(
    `Stripe did not create a webhook endpoint for ${webhook_url}. The key must be allowed to write Webhook Endpoints: ${stripeMessage(answer, account)}`,
  );
}

/** No request takes longer. */
const settled_s = 600;

async function disconnect(
  account: Account,
  webhook_url: string,
  { keep, ended_ids }: { keep: string | null; ended_ids: string[] },
): Promise<void> {
  const list = await readStripe(account, '/v1/webhook_endpoints', { limit: '100' });
  for (const endpoint of listAt(list, 'data')) {
    const id = textAt(endpoint, 'id');
    if (id === undefined || id === keep || textAt(endpoint, 'url') !== webhook_url) continue;
    // Without one that is kept, it may be a person's.
    const is_settled = keep !== null && numberAt(endpoint, 'created') <= databaseTime() / 1000 - settled_s;
    if (!ended_ids.includes(id) && !is_settled) continue;
    await callStripe(account, { method: 'DELETE', path: `/v1/webhook_endpoints/${encodeURIComponent(id)}` });
  }
}

function receive({ headers, raw_body, now_ms }: Delivery, { webhook_secret = '' }: Credentials): Envelope | undefined {
  return envelope(verified(raw_body, String(headers['stripe-signature'] ?? ''), webhook_secret, now_ms));
}

/** Stripe signs as Rail does: https://docs.stripe.com/webhooks/signature */
function verified(raw_body: Buffer, signature: string, secret: string, now_ms: number): unknown {
  try {
    if (secret === '') throw new Error('no secret');
    verifySignature(signature, secret, raw_body, now_ms);
  } catch {
    throw new DeliveryRefused('The signature does not match, or is stale.');
  }
  return parsedJson(raw_body.toString('utf8'));
}

function envelope(event: unknown): Envelope | undefined {
  const [external_event_id, type, created] = [textAt(event, 'id'), textAt(event, 'type'), at(event, 'created')];
  if (external_event_id === undefined || type === undefined || typeof created !== 'number')
    throw new DeliveryRefused('The body is not an event.');
  const reader = readers[type];
  if (!reader) return undefined;
  const object = at(event, 'data', 'object');
  const external_object_id = textAt(object, 'id') ?? null;
  const is_customer = textAt(object, 'object') === 'customer';
  const external_customer_id = (is_customer ? external_object_id : idAt(object, 'customer')) ?? null;
  const payment = idAt(object, 'payment_intent') ?? idAt(object, 'invoice') ?? idAt(object, 'charge');
  return requireEnvelope({
    ...{ external_event_id, type, rank: reader.rank, external_object_id, external_customer_id },
    livemode: at(event, 'livemode') === true,
    occurred_at: timeOf(created),
    queue: external_customer_id ?? payment ?? external_object_id ?? external_event_id,
  });
}
