import { randomBytes } from 'node:crypto';
import { Stripe } from 'stripe';
import { type Answer, type Call, ProviderServer, runAlone, type Webhook } from './provider_server.ts';

interface Transfer {
  id: string;
  object: 'transfer';
  amount: number;
  amount_reversed: number;
  created: number;
  currency: string;
  destination: string;
  livemode: boolean;
  reversed: boolean;
  transfer_group: string;
}

interface Saved {
  raw: string;
  answer: Answer;
}

const three_decimals = ['bhd', 'jod', 'kwd', 'omr', 'tnd'];
const newId = (prefix: string): string => `${prefix}_${randomBytes(9).toString('hex')}`;

/** Stripe: transfers with idempotency keys, lists and signed events, as documented at docs.stripe.com. */
export class StripeServer extends ProviderServer {
  readonly credentials = { secret_key: 'sk_test_0123456789abcdef', webhook_secret: 'whsec_0123456789abcdef' };
  /** As Stripe counts them. */
  readonly balances: Record<string, number> = { usd: 10_000_00, jpy: 1_000_000, kwd: 10_000_000, huf: 1_000_000_00 };
  readonly accounts = new Set(['acct_partner']);
  /** True if its key is of live mode. */
  livemode = false;
  readonly #transfers: Transfer[] = [];
  readonly #saved = new Map<string, Saved>();

  /** A key is older than 24 hours: Stripe no longer knows it. */
  forgetKeys(): void {
    this.#saved.clear();
  }

  /** Takes back what was transferred, or a part of it. */
  reverse(key: string, amount?: number): void {
    const transfer = this.#transferOf(key);
    transfer.amount_reversed = amount ?? transfer.amount;
    transfer.reversed = transfer.amount_reversed === transfer.amount;
    if (transfer.reversed) this.bringBack(key);
  }

  webhook(key: string, options: { type?: string; secret?: string; timestamp?: number } = {}): Webhook {
    const { type = 'transfer.created', secret = this.credentials.webhook_secret, timestamp } = options;
    const object = this.#transferOf(key);
    const payload = JSON.stringify({ id: newId('evt'), object: 'event', type, data: { object }, livemode: false });
    const signed = Stripe.webhooks.generateTestHeaderString({
      payload,
      secret,
      ...(timestamp === undefined ? {} : { timestamp }),
    });
    return { raw_body: Buffer.from(payload), headers: { 'stripe-signature': signed } };
  }

  protected override handle(call: Call): Answer {
    const { method, path } = call;
    if (call.headers.authorization !== `Bearer ${this.credentials.secret_key}`) {
      return refusal(401, { type: 'invalid_request_error', message: `Invalid API Key: ${call.headers.authorization}` });
    }
    if (path === '/v1/balance')
      return { status: 200, body: { object: 'balance', livemode: this.livemode, available: [] } };
    if (path === '/v1/account') return { status: 200, body: { object: 'account', id: 'acct_platform' } };
    if (path === '/v1/transfers' && method === 'POST') return this.#repeated(call) ?? this.#create(call);
    if (path === '/v1/transfers') return this.#list(call);
    return refusal(404, { type: 'invalid_request_error', message: `Unrecognized request URL (${method}: ${path}).` });
  }

  /** "We save the resulting status code and body of the first request made for any given key, regardless of whether it succeeds or fails." */
  protected override answered({ method, headers, raw }: Call, answer: Answer): void {
    const key = headers['idempotency-key'];
    if (method !== 'POST' || typeof key !== 'string' || this.#saved.has(key) || answer.status === 401) return;
    this.#saved.set(key, { raw, answer });
  }

  #repeated({ headers, raw }: Call): Answer | undefined {
    const saved = this.#saved.get(String(headers['idempotency-key']));
    if (!saved) return undefined;
    if (saved.raw === raw) return { ...saved.answer, headers: { 'idempotent-replayed': 'true' } };
    const message = 'Keys for idempotent requests can only be used with the same parameters they were first used with.';
    return refusal(400, { type: 'idempotency_error', message });
  }

  #create(call: Call): Answer {
    const form = new URLSearchParams(call.raw);
    const [amount, currency] = [Number(form.get('amount')), form.get('currency') ?? ''];
    const destination = form.get('destination') ?? '';
    const key = form.get('transfer_group') ?? '';
    const wrong = this.#objection(amount, currency, destination);
    if (wrong) return wrong;
    const transfer: Transfer = {
      id: newId('tr'),
      object: 'transfer',
      amount,
      amount_reversed: 0,
      created: Math.floor(Date.now() / 1000),
      currency,
      destination,
      livemode: this.livemode,
      reversed: false,
      transfer_group: key,
    };
    this.#transfers.unshift(transfer);
    this.balances[currency] = (this.balances[currency] ?? 0) - amount;
    this.move(key, amount, currency.toUpperCase());
    const answer = { status: 200, body: { ...transfer } };
    this.#save(call, answer);
    return answer;
  }

  /** The effect and the key are one: an answer that gets lost is replayed. */
  #save({ headers, raw }: Call, answer: Answer): void {
    const key = headers['idempotency-key'];
    if (typeof key === 'string') this.#saved.set(key, { raw, answer });
  }

  #objection(amount: number, currency: string, destination: string): Answer | undefined {
    const type = 'invalid_request_error';
    if (!this.accounts.has(destination)) {
      const message = `No such destination: '${destination}'`;
      return refusal(400, { type, code: 'resource_missing', param: 'destination', message });
    }
    if (this.balances[currency] === undefined) {
      return refusal(400, { type, param: 'currency', message: `Invalid currency: ${currency}` });
    }
    if (!(amount > 0) || (three_decimals.includes(currency) && amount % 10 !== 0)) {
      return refusal(400, { type, code: 'parameter_invalid_integer', param: 'amount', message: 'Invalid amount' });
    }
    if (this.balances[currency] < amount) {
      return refusal(400, { type, code: 'balance_insufficient', message: 'You have insufficient available funds.' });
    }
    return undefined;
  }

  #list({ query }: Call): Answer {
    const data = this.#transfers.filter(({ transfer_group }) => transfer_group === query.get('transfer_group'));
    return { status: 200, body: { object: 'list', url: '/v1/transfers', has_more: false, data } };
  }

  #transferOf(key: string): Transfer {
    const transfer = this.#transfers.find(({ transfer_group }) => transfer_group === key);
    if (!transfer) throw new Error(`no transfer ${key}`);
    return transfer;
  }
}

const refusal = (status: number, error: object): Answer => ({ status, body: { error } });

if (import.meta.main) {
  const server = new StripeServer();
  await runAlone(server, () => ({ credentials: server.credentials }));
}
