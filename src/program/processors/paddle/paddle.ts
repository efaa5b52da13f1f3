/** Paddle Billing: signed webhooks, whose notification setting is created here. https://developer.paddle.com/webhooks/signature-verification */
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { sameText } from '../../../core/encryption/vault.ts';
import { parsedJson } from '../../../core/net/answer.ts';
import { Problem } from '../../../core/values/problem.ts';
import { at, listAt, textAt } from '../../payouts/rails/answer.ts';
import { callProcessor, messageOf, readProcessor, translated } from '../call.ts';
import {
  type Account,
  type Credentials,
  type Delivery,
  DeliveryRefused,
  type Envelope,
  type Page,
  type Processor,
  refusal_of_signed,
  requireEnvelope,
} from '../processor.ts';
import { caller } from './client.ts';
import { readers, timeAt } from './events.ts';
import { paddleMovements } from './movements.ts';
import { createPaddlePromotion } from './promotion.ts';

const { title } = caller;

/** The tolerated difference of the sender's clock: Paddle's own library allows 5 seconds, by which a queue of some seconds loses events. */
const tolerance_s = 300;

/** The objects that a key must be allowed to read. */
const readable = [
  '/transactions',
  '/adjustments',
  '/customers',
  '/subscriptions',
  '/discounts',
  '/notification-settings',
];

export const paddle: Processor = {
  name: 'paddle',
  title,
  refusal: refusal_of_signed,
  credentials: z.strictObject({
    api_key: z
      .string()
      .regex(/^[A-Za-z0-9_+/=-]{20,255}$/, 'must be an API key: pdl_live_apikey_… or pdl_sdbx_apikey_…')
      .describe(
        'An API key that may read transactions, adjustments, customers, subscriptions and discounts, and write notification settings.',
      ),
  }),
  identifying: 'api_key',
  urls: { test: 'https://sandbox-api.paddle.com', live: 'https://api.paddle.com' },
  types: Object.keys(readers),
  charge_types: ['transaction.completed'],
  check,
  connect,
  disconnect,
  receive,
  envelope,
  events,
  history,
  movements: paddleMovements,
  createPromotion: createPaddlePromotion,
  find,
  read: (body, answers) => {
    const reader = readers[textAt(body, 'event_type') ?? ''];
    if (!reader) return { kind: 'nothing', reason: 'unknown_type', message: 'Events of this type have no effect.' };
    return reader.read(at(body, 'data'), { at: timeAt(body, 'occurred_at') ?? '', answers });
  },
  ask: (account, { path, query }) => readProcessor(caller, account, path, query),
};

const refused = (message: string) => new Problem('invalid_parameter', message, { param: 'api_key' });

async function check(account: Account, endpoint_id: string | null): Promise<{ account: string; warnings: string[] }> {
  const { api_key = '' } = account.credentials;
  const other = account.mode === 'live' ? 'pdl_sdbx_' : 'pdl_live_';
  if (api_key.startsWith(other))
    throw refused(`The key is of the other mode. In ${account.mode} mode, send a key of it.`);
  await Promise.all(
    readable.map(async (path) => {
      const call = { path, query: { per_page: '1' } };
      const answer = await callProcessor(caller, account, call).catch(translated(title, 'api_key'));
      if (answer.status !== 200) throw refused(`The key may not read ${path}: ${messageOf(caller, answer, account)}`);
    }),
  );
  return { account: `key ${api_key.slice(0, 20)}…`, warnings: await lacks(account, endpoint_id) };
}

async function lacks(account: Account, endpoint_id: string | null): Promise<string[]> {
  if (endpoint_id === null) return [];
  const path = `/notification-settings/${encodeURIComponent(endpoint_id)}`;
  const { status, body } = await callProcessor(caller, account, { path }).catch(translated(title, 'api_key'));
  if (status === 200 && at(body, 'data', 'active') === true) return [];
  return [
    `The notification ${endpoint_id} was deleted or disabled at Paddle. Set the credentials again to create one.`,
  ];
}

async function connect(
  account: Account,
  webhook_url: string,
): Promise<{ credentials: Credentials; endpoint_id: string | null }> {
  const setting = {
    ...{ description: 'Rail: sales of partners', type: 'url', destination: webhook_url, api_version: 1 },
    ...{ include_sensitive_fields: false, subscribed_events: Object.keys(readers) },
  };
  const body = { text: JSON.stringify(setting), type: 'application/json' };
  const call = { method: 'POST', path: '/notification-settings', body } as const;
  const answer = await callProcessor(caller, account, call).catch(translated(title, 'api_key'));
  const [endpoint_id, secret] = [textAt(answer.body, 'data', 'id'), textAt(answer.body, 'data', 'endpoint_secret_key')];
  if (answer.status < 300 && endpoint_id && secret)
    return { credentials: { ...account.credentials, webhook_secret: secret }, endpoint_id };
  throw refused(
    `Paddle did not create a notification setting for ${webhook_url}. The key must be allowed to write notification settings: ${messageOf(caller, answer, account)}`,
  );
}

async function disconnect(
  account: Account,
  webhook_url: string,
  { keep, ended_ids }: { keep: string | null; ended_ids: string[] },
): Promise<void> {
  const list = await readProcessor(caller, account, '/notification-settings', { per_page: '200' });
  for (const setting of listAt(list, 'data')) {
    const id = textAt(setting, 'id');
    if (id === undefined || id === keep || textAt(setting, 'destination') !== webhook_url) continue;
    // One that is not known yet may be that of a request that is still under way.
    if (!ended_ids.includes(id)) continue;
    await callProcessor(caller, account, {
      method: 'DELETE',
      path: `/notification-settings/${encodeURIComponent(id)}`,
    });
  }
}

function receive({ headers, raw_body, now_ms }: Delivery, { webhook_secret = '' }: Credentials): Envelope | undefined {
  verify(String(headers['paddle-signature'] ?? ''), raw_body, webhook_secret, now_ms);
  return envelope(parsedJson(raw_body.toString('utf8')));
}

/** `ts=…;h1=…`, with several `h1` while a secret is rotated: any of them is valid. @throws DeliveryRefused */
export function verify(header: string, raw_body: Buffer, secret: string, now_ms: number): void {
  const parts = header.split(';').map((part) => part.trim());
  const ts = parts.find((part) => part.startsWith('ts='))?.slice(3) ?? '';
  const presented = parts.filter((part) => part.startsWith('h1=')).map((part) => part.slice(3));
  const refuse = () => new DeliveryRefused('The signature does not match, or is stale.');
  if (secret === '' || !/^\d{1,12}$/.test(ts)) throw refuse();
  const expected = createHmac('sha256', secret).update(`${ts}:`).update(raw_body).digest('hex');
  if (!presented.some((one) => sameText(one, expected))) throw refuse();
  if (Math.abs(now_ms / 1000 - Number(ts)) > tolerance_s) throw refuse();
}

function envelope(event: unknown): Envelope | undefined {
  const [external_event_id, type] = [textAt(event, 'event_id'), textAt(event, 'event_type')];
  const occurred_at = timeAt(event, 'occurred_at');
  if (external_event_id === undefined || type === undefined || occurred_at === undefined)
    throw new DeliveryRefused('The body is not an event.');
  const reader = readers[type];
  if (!reader) return undefined;
  const data = at(event, 'data');
  const external_object_id = textAt(data, 'id') ?? null;
  const external_customer_id =
    (type.startsWith('customer.') ? external_object_id : textAt(data, 'customer_id')) ?? null;
  return requireEnvelope({
    ...{ external_event_id, type, rank: reader.rank, external_object_id, external_customer_id, livemode: null },
    occurred_at,
    queue: external_customer_id ?? textAt(data, 'transaction_id') ?? external_object_id ?? external_event_id,
  });
}

/** Newest first, until they are older than that. */
async function events(account: Account, since: string, from: string | null): Promise<Page> {
  const query = { per_page: '200', order_by: 'id[DESC]', ...(from === null ? {} : { after: from }) };
  const list = await readProcessor(caller, account, '/events', query);
  const all = listAt(list, 'data');
  const recent = all.filter((event) => Date.parse(textAt(event, 'occurred_at') ?? '') >= Date.parse(since));
  const last = textAt(all.at(-1), 'event_id');
  const goes_on = at(list, 'meta', 'pagination', 'has_more') === true && recent.length === all.length;
  return { events: recent, next: goes_on && last !== undefined ? last : null };
}

/** The lists that a history is made of, with the type of event that says what one of it is. */
const histories: readonly [path: string, type: string, query: Record<string, string>][] = [
  ['/customers', 'customer.created', {}],
  ['/subscriptions', 'subscription.updated', {}],
  ['/transactions', 'transaction.completed', { status: 'completed' }],
  ['/adjustments', 'adjustment.updated', {}],
];

async function history(account: Account, since: string, from: string | null): Promise<Page> {
  const [nth, after] = [Number(from?.split(':')[0] ?? 0), from?.split(':')[1] ?? ''];
  const [path, event_type, query] = histories[nth] ?? ['', '', {}];
  const list = await readProcessor(caller, account, path, {
    ...{ per_page: '200', order_by: 'id[ASC]', ...query, ...(after === '' ? {} : { after }) },
  });
  const all = listAt(list, 'data');
  const recent = all.filter((data) => Date.parse(textAt(data, 'created_at') ?? '') >= Date.parse(since));
  const last = textAt(all.at(-1), 'id');
  const next_list = nth + 1 < histories.length ? `${nth + 1}:` : null;
  const has_more = at(list, 'meta', 'pagination', 'has_more') === true && last !== undefined;
  const events = recent.map((data) => ({
    ...{ event_id: `found_${textAt(data, 'id')}`, event_type, data },
    occurred_at: textAt(data, 'billed_at') ?? textAt(data, 'created_at'),
  }));
  return { events, next: has_more ? `${nth}:${last}` : next_list };
}

async function find(account: Account, external_id: string): Promise<unknown[]> {
  if (!external_id.startsWith('txn_')) return [];
  const found = await readProcessor(caller, account, `/transactions/${encodeURIComponent(external_id)}`);
  const data = at(found, 'data');
  if (textAt(data, 'status') !== 'completed') return [];
  const occurred_at = textAt(data, 'billed_at') ?? textAt(data, 'created_at');
  return [{ event_id: `found_${external_id}`, event_type: 'transaction.completed', occurred_at, data }];
}
