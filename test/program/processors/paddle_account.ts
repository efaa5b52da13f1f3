import { createHmac, randomBytes } from 'node:crypto';
import type { Json } from '../../harness.ts';
import { type Answer, type Call, ProviderServer, type Webhook } from '../payouts/rails/provider_server.ts';

const made = (prefix: string): string => `${prefix}_${randomBytes(9).toString('hex')}`;

/** An account at Paddle, as documented at developer.paddle.com. */
export class PaddleAccount extends ProviderServer {
  readonly credentials = { api_key: 'pdl_sdbx_apikey_0123456789abcdef' };
  readonly settings: Json[] = [];
  readonly events: Json[] = [];
  readonly #objects = new Map<string, Json>();

  put(object: Json): Json {
    this.#objects.set(object.id, object);
    return object;
  }

  emit(event_type: string, data: Json, occurred_at = '2026-01-02T03:04:05.678901Z'): Json {
    const event = {
      ...{ event_id: made('evt'), event_type, occurred_at, notification_id: made('ntf') },
      data: structuredClone(this.put(data)),
    };
    this.events.push(event);
    return event;
  }

  webhook(
    event: Json,
    { secret = this.settings.at(-1)?.endpoint_secret_key, ts = Math.floor(Date.now() / 1000) }: Json = {},
  ): Webhook {
    const raw_body = Buffer.from(JSON.stringify(event));
    const h1 = createHmac('sha256', secret).update(`${ts}:`).update(raw_body).digest('hex');
    return { raw_body, headers: { 'paddle-signature': `ts=${ts};h1=${h1}` } };
  }

  protected override handle({ method, path, headers, raw, query }: Call): Answer {
    if (headers.authorization !== `Bearer ${this.credentials.api_key}`)
      return {
        status: 401,
        body: { error: { code: 'authentication_malformed', detail: 'Authentication header is wrong.' } },
      };
    const [, noun, id] = path.split('/');
    if (noun === 'notification-settings') return this.#setting(method, id, raw);
    if (noun === 'events') return this.#page(query);
    if (noun === 'discounts') return method === 'POST' ? this.#discount(JSON.parse(raw)) : this.#discounts(query);
    if (id !== undefined) {
      const object = this.#objects.get(id);
      return object ? { status: 200, body: { data: object } } : { status: 404, body: { error: { code: 'not_found' } } };
    }
    return this.#list(noun as string, query);
  }

  /** By id, which begins with the time, a page after another. */
  #list(noun: string, query: URLSearchParams): Answer {
    const prefix = { transactions: 'txn', adjustments: 'adj', customers: 'ctm', subscriptions: 'sub' }[noun] ?? 'none';
    const [from, until] = [query.get('billed_at[GTE]') ?? '', query.get('billed_at[LT]') ?? '~'];
    const found = [...this.#objects.values()]
      .filter(({ id, status, billed_at = '' }) => {
        if (!id.startsWith(`${prefix}_`)) return false;
        return status === (query.get('status') ?? status) && (from === '' || (billed_at >= from && billed_at < until));
      })
      .sort((one, other) => (one.id < other.id ? -1 : 1));
    const sorted = query.get('order_by') === 'id[DESC]' ? found.reverse() : found;
    const after = query.get('after');
    const rest = after === null ? sorted : sorted.slice(sorted.findIndex(({ id }) => id === after) + 1);
    const per_page = Math.min(Number(query.get('per_page') ?? 50), noun === 'adjustments' ? 50 : 200);
    return {
      status: 200,
      body: { data: rest.slice(0, per_page), meta: { pagination: { has_more: rest.length > per_page } } },
    };
  }

  discount(code: string): Json | undefined {
    return [...this.#objects.values()].find((one) => one.id.startsWith('dsc_') && one.code === code);
  }

  #discount(sent: Json): Answer {
    const wrong = (field: string, message: string): Answer => ({
      status: 400,
      body: { error: { code: 'bad_request', detail: 'Invalid request.', errors: [{ field, message }] } },
    });
    if (!/^[a-zA-Z0-9]{1,32}$/.test(sent.code)) return wrong('code', 'must be letters and digits');
    if (sent.usage_limit === 13) return wrong('usage_limit', 'must not be 13');
    return { status: 201, body: { data: this.put({ ...sent, id: made('dsc'), status: 'active' }) } };
  }

  #discounts(query: URLSearchParams): Answer {
    const data = [...this.#objects.values()].filter(
      ({ id, code, status }) => id.startsWith('dsc_') && code === query.get('code') && status === query.get('status'),
    );
    return { status: 200, body: { data } };
  }

  #setting(method: string, id: string | undefined, raw: string): Answer {
    const setting = this.settings.find((one) => one.id === id);
    if (method === 'POST') {
      const created = { ...JSON.parse(raw), id: made('ntfset'), active: true, endpoint_secret_key: made('pdl_ntfset') };
      this.settings.push(created);
      return { status: 201, body: { data: created } };
    }
    if (id === undefined) return { status: 200, body: { data: this.settings } };
    if (!setting) return { status: 404, body: { error: { code: 'not_found' } } };
    if (method === 'DELETE') {
      this.settings.splice(this.settings.indexOf(setting), 1);
      return { status: 204 };
    }
    return { status: 200, body: { data: setting } };
  }

  #page(query: URLSearchParams): Answer {
    const newest = this.events.toReversed();
    const after = query.get('after');
    const rest = after === null ? newest : newest.slice(newest.findIndex(({ event_id }) => event_id === after) + 1);
    const per_page = Math.min(Number(query.get('per_page') ?? 50), 50);
    return {
      status: 200,
      body: { data: rest.slice(0, per_page), meta: { pagination: { has_more: rest.length > per_page } } },
    };
  }
}
