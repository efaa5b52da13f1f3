import { createHash, randomBytes, sign } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { createAuthority } from '../../../../src/demo/authority.ts';
import { type Answer, type Call, minorUnits, ProviderServer, runAlone, type Webhook } from './provider_server.ts';

interface Batch {
  id: string;
  key: string;
  status: string;
  item: {
    id: string;
    receiver: string;
    amount: { value: string; currency: string };
    status: string;
    error?: { name: string; message: string };
  };
}

const whole_only = ['HUF', 'JPY', 'TWD'];
const supported = [...whole_only, 'EUR', 'GBP', 'USD'];
const newId = (): string => randomBytes(8).toString('hex').toUpperCase().slice(0, 13);
const money_went = ['SUCCESS', 'UNCLAIMED'];

/** PayPal: OAuth, Payouts v1 and signed webhooks, as documented at developer.paypal.com. */
export class PayPalServer extends ProviderServer {
  readonly credentials = { client_id: 'client-1', client_secret: 'secret-of-paypal', webhook_id: 'WH1234567890' };
  /** In minor units. */
  readonly balances: Record<string, number> = { USD: 10_000_00, EUR: 10_000_00, JPY: 1_000_000, HUF: 1_000_000_00 };
  readonly authority = createAuthority();
  scopes = 'https://uri.paypal.com/payments/payouts https://uri.paypal.com/services/applications/webhooks';
  /** The state of an item when its batch is read for the first time. `PENDING`: it waits for `settle`. */
  next_status = 'SUCCESS';
  token_life_s = 32_400;
  readonly #tokens = new Set<string>();
  readonly #batches = new Map<string, Batch>();
  readonly #signer = this.authority.issue({ name: 'messageverificationcerts.sandbox.paypal.com', key_type: 'rsa' });

  /** Every token is void from now on. */
  revokeTokens(): void {
    this.#tokens.clear();
  }

  /** Returns whether a batch of the key has come. */
  has(key: string): boolean {
    return this.#batches.values().some((batch) => batch.key === key);
  }

  /** A late change of an item's state. */
  settle(key: string, status: string, error?: { name: string; message: string }): void {
    const batch = this.#batchOf(key);
    const came_back = ['RETURNED', 'REFUNDED', 'REVERSED'].includes(status);
    if (money_went.includes(status) && !money_went.includes(batch.item.status)) this.#pay(batch);
    if (came_back) this.bringBack(key);
    batch.status = status === 'FAILED' ? 'DENIED' : 'SUCCESS';
    batch.item = { ...batch.item, status, ...(error ? { error } : {}) };
  }

  webhook(
    key: string,
    options: { event_type?: string; at?: string; signed_with?: string; cert_url?: string } = {},
  ): Webhook {
    const { event_type = 'PAYMENT.PAYOUTS-ITEM.SUCCEEDED', at = new Date().toISOString() } = options;
    const batch = this.#batchOf(key);
    const resource = event_type.includes('BATCH') ? { batch_header: headerOf(batch) } : itemOf(batch);
    const body = { id: `WH-${newId()}`, event_version: '1.0', create_time: at, event_type, resource };
    const raw_body = Buffer.from(JSON.stringify(body));
    const id = randomBytes(8).toString('hex');
    const signed = Buffer.from(`${id}|${at}|${this.credentials.webhook_id}|${crc32(raw_body)}`);
    return {
      raw_body,
      headers: {
        'paypal-transmission-id': id,
        'paypal-transmission-time': at,
        'paypal-transmission-sig': sign('sha256', signed, options.signed_with ?? this.#signer.key).toString('base64'),
        'paypal-auth-algo': 'SHA256withRSA',
        'paypal-cert-url': options.cert_url ?? `${this.url}/v1/notifications/certs/CERT-0123456789-abcdef`,
      },
    };
  }

  protected override handle(call: Call): Answer {
    const { method, path } = call;
    if (path.startsWith('/v1/notifications/certs/')) return { status: 200, body: this.#signer.cert };
    if (path === '/v1/oauth2/token') return this.#token(call);
    if (!this.#tokens.has(call.headers.authorization ?? '')) return refusal(401, 'AUTHENTICATION_FAILURE');
    if (method === 'POST' && path === '/v1/payments/payouts') return this.#create(JSON.parse(call.raw));
    const [, kind, id = '', action] = /^\/v1\/payments\/(payouts|payouts-item)\/([^/]+)(\/cancel)?$/.exec(path) ?? [];
    if (kind === 'payouts') return this.#read(id);
    if (kind === 'payouts-item' && action) return this.#cancel(id);
    if (path.startsWith('/v1/notifications/webhooks/')) return this.#webhookEndpoint(path);
    return refusal(404, 'INVALID_RESOURCE_ID');
  }

  #token({ headers }: Call): Answer {
    const { client_id, client_secret } = this.credentials;
    const expected = `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`;
    if (headers.authorization !== expected) {
      const error_description = `Client Authentication failed for ${headers.authorization}`;
      return { status: 401, body: { error: 'invalid_client', error_description } };
    }
    const access_token = `A21AA${randomBytes(24).toString('hex')}`;
    this.#tokens.add(`Bearer ${access_token}`);
    const { scopes: scope, token_life_s: expires_in } = this;
    return {
      status: 200,
      body: { scope, access_token, token_type: 'Bearer', app_id: 'APP-80W284485P519543T', expires_in },
    };
  }

  #create({
    sender_batch_header,
    items,
  }: {
    sender_batch_header: { sender_batch_id: string };
    items: unknown[];
  }): Answer {
    const key = sender_batch_header.sender_batch_id;
    const { receiver, amount, sender_item_id } = items[0] as Batch['item'] & { sender_item_id: string };
    if (!supported.includes(amount.currency)) return invalid('items[0].amount.currency', 'Currency is not supported');
    const minor = minorUnits(amount.value, amount.currency);
    if (minor === undefined || (whole_only.includes(amount.currency) && amount.value.includes('.'))) {
      return invalid('items[0].amount.value', `Invalid amount ${amount.value}`);
    }
    if (!receiver.includes('@') || receiver.length > 127) return invalid('items[0].receiver', 'Receiver is invalid');
    const original = [...this.#batches.values()].find((each) => each.key === key);
    if (original) return duplicate(original, this.url);
    if ((this.balances[amount.currency] ?? 0) < minor) return refusal(422, 'INSUFFICIENT_FUNDS');
    const item = { id: newId(), receiver, amount, status: 'PENDING' };
    const batch = { id: newId(), key: sender_item_id, status: 'PENDING', item };
    this.#batches.set(batch.id, batch);
    return { status: 201, body: { batch_header: headerOf(batch) } };
  }

  #read(id: string): Answer {
    const batch = this.#batches.get(id);
    if (!batch) return refusal(404, 'INVALID_RESOURCE_ID');
    if (batch.item.status === 'PENDING' && this.next_status !== 'PENDING') this.settle(batch.key, this.next_status);
    return { status: 200, body: { batch_header: headerOf(batch), items: [itemOf(batch)], links: [] } };
  }

  #cancel(id: string): Answer {
    const batch = [...this.#batches.values()].find(({ item }) => item.id === id);
    if (!batch) return refusal(404, 'INVALID_RESOURCE_ID');
    if (batch.item.status !== 'UNCLAIMED') return refusal(400, 'ITEM_INCORRECT_STATUS');
    this.settle(batch.key, 'RETURNED');
    return { status: 200, body: itemOf(batch) };
  }

  #webhookEndpoint(path: string): Answer {
    const id = path.slice(path.lastIndexOf('/') + 1);
    return id === this.credentials.webhook_id ? { status: 200, body: { id } } : refusal(404, 'INVALID_RESOURCE_ID');
  }

  #pay({ key, item: { amount } }: Batch): void {
    const minor = minorUnits(amount.value, amount.currency) as number;
    this.balances[amount.currency] = (this.balances[amount.currency] ?? 0) - minor;
    this.move(key, minor, amount.currency);
  }

  #batchOf(key: string): Batch {
    const batch = [...this.#batches.values()].find((each) => each.key === key);
    if (!batch) throw new Error(`no batch ${key}`);
    return batch;
  }
}

const debug_id = (): string => createHash('sha1').update(newId()).digest('hex').slice(0, 13);
const refusal = (status: number, name: string): Answer => ({
  status,
  body: { name, message: `${name} message.`, debug_id: debug_id() },
});
const invalid = (field: string, issue: string): Answer => ({
  status: 400,
  body: {
    name: 'VALIDATION_ERROR',
    message: 'Invalid request - see details',
    debug_id: debug_id(),
    details: [{ field, location: 'body', issue }],
  },
});

function duplicate({ id }: Batch, url: string): Answer {
  const link = [{ href: `${url}/v1/payments/payouts/${id}`, rel: 'self', method: 'GET', encType: 'application/json' }];
  const issue = 'Batch with given sender_batch_id already exists';
  return {
    status: 400,
    body: {
      name: 'USER_BUSINESS_ERROR',
      message: 'User business error.',
      debug_id: debug_id(),
      details: [{ field: 'SENDER_BATCH_ID', location: 'body', issue, link }],
      links: [],
    },
  };
}

const headerOf = ({ id, key, status }: Batch): object => ({
  payout_batch_id: id,
  batch_status: status,
  time_created: new Date().toISOString(),
  sender_batch_header: { sender_batch_id: key },
});

const itemOf = ({ id, key, item }: Batch): object => ({
  payout_item_id: item.id,
  ...(item.status === 'SUCCESS' ? { transaction_id: `T${item.id}` } : {}),
  transaction_status: item.status,
  payout_item_fee: { currency: 'USD', value: '0.25' },
  payout_batch_id: id,
  payout_item: { recipient_type: 'EMAIL', amount: item.amount, receiver: item.receiver, sender_item_id: key },
  time_processed: '2026-11-22T10:17:41Z',
  ...(item.error ? { errors: item.error } : {}),
});

if (import.meta.main) {
  const server = new PayPalServer();
  await runAlone(server, () => ({ credentials: server.credentials, authority: server.authority.cert }));
}
