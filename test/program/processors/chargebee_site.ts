import { randomBytes } from 'node:crypto';
import type { Json } from '../../harness.ts';
import { type Answer, type Call, ProviderServer, type Webhook } from '../payouts/rails/provider_server.ts';

const made = (prefix: string): string => `${prefix}_${randomBytes(9).toString('hex')}`;
const basic = (name: string, password: string) => `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;

/** A site at Chargebee, as documented at apidocs.chargebee.com. */
export class ChargebeeSite extends ProviderServer {
  readonly credentials = {
    ...{ site: 'acme-test', api_key: 'test_0123456789abcdef' },
    ...{ webhook_username: 'rail', webhook_password: 'correct-horse-battery' },
  };
  readonly events: Json[] = [];

  emit(event_type: string, content: Json, fields: Json = {}): Json {
    const event = {
      ...{ id: made('ev'), object: 'event', event_type, api_version: 'v2', occurred_at: 1_764_000_000, source: 'api' },
      ...{ content: structuredClone(content), ...fields },
    };
    this.events.push(event);
    return event;
  }

  webhook(event: Json, password = this.credentials.webhook_password): Webhook {
    return {
      raw_body: Buffer.from(JSON.stringify(event)),
      headers: { authorization: basic(this.credentials.webhook_username, password) },
    };
  }

  readonly coupons = new Map<string, Json>();
  readonly invoices = new Map<string, Json>();

  protected override handle({ path, headers, query, raw }: Call): Answer {
    if (headers.authorization !== basic(this.credentials.api_key, ''))
      return {
        status: 401,
        body: { api_error_code: 'api_authentication_failed', message: 'Sorry, authentication failed.' },
      };
    const [, , , noun, id] = path.split('/');
    if (noun === 'events' && id !== undefined) {
      const event = this.events.find((one) => one.id === id);
      return event ? { status: 200, body: { event } } : { status: 404, body: { api_error_code: 'resource_not_found' } };
    }
    if (noun === 'coupons' && id === 'create_for_items')
      return this.#coupon(Object.fromEntries(new URLSearchParams(raw)));
    if (noun === 'coupons') {
      const coupon = this.coupons.get(id as string);
      return coupon
        ? { status: 200, body: { coupon } }
        : { status: 404, body: { api_error_code: 'resource_not_found' } };
    }
    if (noun === 'invoices') {
      const invoice = this.invoices.get(id as string);
      return invoice
        ? { status: 200, body: { invoice } }
        : { status: 404, body: { api_error_code: 'resource_not_found' } };
    }
    if (noun === 'transactions' && id === undefined) return this.#transactions(query);
    if (noun === 'transactions') {
      const told = this.events.find(({ content }) => content.transaction?.id === id);
      return told
        ? { status: 200, body: { transaction: told.content.transaction } }
        : { status: 404, body: { api_error_code: 'resource_not_found' } };
    }
    if (noun !== 'events') return { status: 200, body: { list: [] } };
    const after = Number(query.get('occurred_at[after]') ?? 0);
    const found = this.events.filter(({ occurred_at }) => occurred_at > after);
    const [from, limit] = [Number(query.get('offset') ?? 0), Number(query.get('limit') ?? 10)];
    const more = found.length > from + limit ? { next_offset: String(from + limit) } : {};
    return { status: 200, body: { list: found.slice(from, from + limit).map((event) => ({ event })), ...more } };
  }

  #coupon(sent: Json): Answer {
    if (this.coupons.has(sent.id)) return { status: 400, body: { api_error_code: 'duplicate_entry', param: 'id' } };
    if (sent.discount_percentage === '0.01')
      return {
        status: 400,
        body: { api_error_code: 'param_wrong_value', param: 'discount_percentage', message: 'too little' },
      };
    const coupon = { ...sent, status: 'active', meta_data: JSON.parse(sent.meta_data) };
    this.coupons.set(sent.id, coupon);
    return { status: 200, body: { coupon } };
  }

  /** By their dates, a page after another. */
  #transactions(query: URLSearchParams): Answer {
    const after = Number(query.get('date[after]') ?? 0);
    const by_id = new Map(
      this.events.flatMap(({ content }) =>
        content.transaction ? [[content.transaction.id, content.transaction]] : [],
      ),
    );
    const found = [...by_id.values()].filter(({ date }) => date > after).sort((one, other) => one.date - other.date);
    const [from, limit] = [Number(query.get('offset') ?? 0), Number(query.get('limit') ?? 10)];
    const more = found.length > from + limit ? { next_offset: String(from + limit) } : {};
    return {
      status: 200,
      body: { list: found.slice(from, from + limit).map((transaction) => ({ transaction })), ...more },
    };
  }
}
