import { randomBytes } from 'node:crypto';
import { Stripe } from 'stripe';
import type { Json } from '../../harness.ts';
import { type Answer, type Call, ProviderServer, type Webhook } from '../payouts/rails/provider_server.ts';

const made = (prefix: string): string => `${prefix}_${randomBytes(9).toString('hex')}`;
const list = (data: Json[], has_more = false): Answer => ({ status: 200, body: { object: 'list', data, has_more } });

/**
 * An account at Stripe: its objects and events, the calls that Rail makes of it, and its webhook endpoints, as documented at docs.stripe.com. Time is
 * what a test says.
 */
export class StripeAccount extends ProviderServer {
  readonly credentials: { secret_key: string } = { secret_key: 'rk_test_0123456789abcdefgh' };
  /** The id of the account. */
  account = 'acct_shop';
  readonly endpoints: Json[] = [];
  readonly events: Json[] = [];
  /** The permissions that the key lacks. */
  readonly forbidden = new Set<string>();
  readonly #objects = new Map<string, Json>();

  /** Keeps an object as it is now. */
  put<Kept extends Json>(object: Kept): Kept {
    this.#objects.set(object.id, object);
    return object;
  }

  /** An event of what an object is now. */
  emit(type: string, object: Json, fields: Json = {}): Json {
    this.put(object);
    const event = {
      ...{
        id: made('evt'),
        object: 'event',
        api_version: '2026-10-28.endive',
        created: object.created ?? 1_764_000_000,
      },
      ...{ livemode: false, pending_webhooks: 1, request: null, type, data: { object: structuredClone(object) } },
      ...fields,
    };
    this.events.push(event);
    return event;
  }

  /** The event as it is sent to the newest endpoint. */
  webhook(event: Json, { secret = this.endpoints.at(-1)?.secret ?? 'whsec_none', timestamp }: Json = {}): Webhook {
    const payload = JSON.stringify(event, null, 2);
    const signed = Stripe.webhooks.generateTestHeaderString({ payload, secret, ...(timestamp ? { timestamp } : {}) });
    return { raw_body: Buffer.from(payload), headers: { 'stripe-signature': signed } };
  }

  protected override handle(call: Call): Answer {
    const { path, headers, method } = call;
    if (headers.authorization !== `Bearer ${this.credentials.secret_key}`)
      return refusal(401, `Invalid API Key provided: ${headers.authorization}`);
    if (headers['stripe-version'] !== '2026-10-28.endive') return refusal(400, 'Invalid Stripe API version.');
    const noun = path.split('/').slice(2).join('/');
    if (this.forbidden.has(`${method} ${path}`)) return refusal(403, 'The provided key does not have the permissions.');
    if (noun === 'account') return { status: 200, body: { id: this.account, object: 'account' } };
    if (noun.startsWith('webhook_endpoints')) return this.#endpoint(call, noun.split('/')[1]);
    if (method === 'POST') return this.#made(noun, new URLSearchParams(call.raw));
    return this.#read(call, noun);
  }

  /** A coupon, whose id is that which is sent, or a promotion code, of which one is active. */
  #made(noun: string, form: URLSearchParams): Answer {
    const sent = Object.fromEntries(form);
    if (noun === 'coupons') {
      if (Number(sent.percent_off ?? 1) > 100) return refusal(400, 'Invalid percent_off.', { param: 'percent_off' });
      if (this.#objects.has(sent.id as string))
        return refusal(400, 'Coupon already exists.', { code: 'resource_already_exists' });
      return { status: 200, body: this.put({ ...sent, id: sent.id as string, object: 'coupon', created: 0 }) };
    }
    if (noun !== 'promotion_codes') return refusal(404, `Unrecognized request URL (POST ${noun}).`);
    const { code = '', 'promotion[coupon]': coupon } = sent;
    if (!/^[A-Za-z0-9-]+$/.test(code))
      return refusal(400, 'Promotion codes have letters and digits.', { param: 'code' });
    const is_taken = [...this.#objects.values()].some(
      (one) => one.object === 'promotion_code' && one.active && one.code.toLowerCase() === code.toLowerCase(),
    );
    if (is_taken) return refusal(400, `An active promotion code with \`code: ${code}\` already exists.`);
    const promotion = { ...sent, id: made('promo'), object: 'promotion_code', active: true, code, created: 0 };
    return { status: 200, body: this.put({ ...promotion, promotion: { type: 'coupon', coupon } }) };
  }

  /** The objects of a kind. */
  all(object: string): Json[] {
    return [...this.#objects.values()].filter((one) => one.object === object);
  }

  #endpoint({ method, raw }: Call, id: string | undefined): Answer {
    const endpoint = this.endpoints.find((one) => one.id === id);
    if (method === 'POST') {
      const form = new URLSearchParams(raw);
      const created = {
        ...{ id: made('we'), object: 'webhook_endpoint', status: 'enabled', created: Math.floor(Date.now() / 1000) },
        ...{
          url: form.get('url'),
          api_version: form.get('api_version'),
          enabled_events: form.getAll('enabled_events[]'),
        },
      };
      const secret = `whsec_${randomBytes(24).toString('hex')}`;
      this.endpoints.push({ ...created, secret });
      return { status: 200, body: { ...created, secret } };
    }
    const shown = ({ secret: _, ...rest }: Json) => rest;
    if (id === undefined) return list(this.endpoints.map(shown));
    if (!endpoint) return refusal(404, 'No such webhook endpoint.');
    if (method === 'DELETE') {
      this.endpoints.splice(this.endpoints.indexOf(endpoint), 1);
      return { status: 200, body: { id, object: 'webhook_endpoint', deleted: true } };
    }
    return { status: 200, body: shown(endpoint) };
  }

  #read({ query }: Call, noun: string): Answer {
    const all = [...this.#objects.values()];
    const of = (object: string) => all.filter((one) => one.object === object);
    switch (noun) {
      case 'customers':
      case 'subscriptions':
      case 'disputes':
        return this.#history(of(noun.slice(0, -1)), query);
      case 'invoices':
        return this.#history(
          of('invoice').filter(({ status }) => !query.has('status') || status === query.get('status')),
          query,
        );
      case 'events':
        return this.#page(query);
      case 'invoice_payments':
        if (!query.has('payment[payment_intent]')) return this.#history(of('invoice_payment'), query);
        return list(
          of('invoice_payment').filter(
            ({ payment }) => payment.payment_intent === query.get('payment[payment_intent]'),
          ),
        );
      case 'checkout/sessions':
        if (!query.has('payment_intent')) return this.#history(of('checkout.session'), query);
        return list(of('checkout.session').filter((one) => one.payment_intent === query.get('payment_intent')));
      case 'refunds':
        if (!query.has('charge')) return this.#history(of('refund'), query);
        return list(of('refund').filter((one) => one.charge === query.get('charge')));
      case 'promotion_codes':
        if (query.has('code'))
          return list(
            of('promotion_code').filter(
              ({ active, code }) => active && code.toLowerCase() === query.get('code')?.toLowerCase(),
            ),
          );
        return list(of('promotion_code').filter((one) => one.promotion.coupon === query.get('coupon')));
    }
    const [kind = '', id] = noun.split('/');
    if (!['customers', 'charges', 'invoices', 'subscriptions', 'disputes'].includes(kind))
      return refusal(404, `Unrecognized request URL (${noun}).`);
    if (id === undefined && !query.has('payment_intent')) return this.#history(of('charge'), query);
    if (id === undefined) return list(of('charge').filter((one) => one.payment_intent === query.get('payment_intent')));
    const object = this.#objects.get(id);
    if (object && noun.endsWith('/lines')) return list(object.all_lines);
    return object ? { status: 200, body: this.#expanded(object, query) } : refusal(404, `No such object: ${id}`);
  }

  /** A list of objects, newest first, a page after another. */
  #history(objects: Json[], query: URLSearchParams): Answer {
    const since = Number(query.get('created[gte]') ?? 0);
    const until = Number(query.get('created[lt]') ?? Number.POSITIVE_INFINITY);
    const newest = objects.filter(({ created }) => created >= since && created < until).toReversed();
    const after = query.get('starting_after');
    const rest = after === null ? newest : newest.slice(newest.findIndex(({ id }) => id === after) + 1);
    const limit = Number(query.get('limit') ?? 10);
    return list(rest.slice(0, limit), rest.length > limit);
  }

  /** Discounts are ids, and payments are left out, unless they are asked for. */
  #expanded(object: Json, query: URLSearchParams): Json {
    const asked = [...query].filter(([name]) => name.startsWith('expand[')).map(([, field]) => field);
    const payments = () => this.all('invoice_payment').filter(({ invoice }) => invoice === object.id);
    return {
      ...object,
      ...(asked.includes('discounts')
        ? { discounts: object.discounts.map((id: string) => this.#objects.get(id)) }
        : {}),
      ...(asked.includes('payments') ? { payments: { object: 'list', data: payments(), has_more: false } } : {}),
    };
  }

  /** Newest first, a page after another. */
  #page(query: URLSearchParams): Answer {
    const since = Number(query.get('created[gte]') ?? 0);
    const types = [...query].filter(([name]) => name.startsWith('types[')).map(([, type]) => type);
    const newest = this.events
      .filter(({ created, type }) => created >= since && (types.length === 0 || types.includes(type)))
      .reverse();
    const after = query.get('starting_after');
    const rest = after === null ? newest : newest.slice(newest.findIndex(({ id }) => id === after) + 1);
    const limit = Number(query.get('limit') ?? 10);
    return list(rest.slice(0, limit), rest.length > limit);
  }
}

const refusal = (status: number, message: string, more: Json = {}): Answer => ({
  status,
  body: { error: { type: 'invalid_request_error', message, ...more } },
});
