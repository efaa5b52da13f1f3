import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { transactionIdOf } from '../../../../src/program/payouts/rails/wise_transfer.ts';
import {
  type Answer,
  type Call,
  type Movement,
  minorUnits,
  ProviderServer,
  runAlone,
  type Webhook,
} from './provider_server.ts';

interface Quote {
  id: string;
  source: string;
  target: string;
  /** As it stood in the request, digit by digit. */
  amount: string;
  account: number;
  is_used: boolean;
  until: number;
}

interface Transfer {
  id: number;
  customerTransactionId: string;
  quote: Quote;
  status: string;
  created: string;
  reference: string;
}

/** Wise: quotes, transfers, funding and signed webhooks, as documented at docs.wise.com. */
export class WiseServer extends ProviderServer {
  readonly #keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
  readonly credentials = {
    api_token: 'token-of-wise-0123',
    profile_id: '222',
    webhook_public_key: this.#keys.publicKey.export({ type: 'spki', format: 'pem' }) as string,
  };
  /** In minor units. */
  readonly balances: Record<string, number> = { USD: 10_000_00, EUR: 10_000_00, JPY: 1_000_000, KWD: 10_000_000 };
  readonly recipients = new Set([333]);
  country = 'usa';
  /** Funding wants a second factor, as in the UK and the EEA. */
  wants_second_factor = false;
  readonly #quotes = new Map<string, Quote>();
  readonly #transfers: Transfer[] = [];

  override movedFor(key: string): Movement | undefined {
    return super.movedFor(transactionIdOf({ idempotency_key: key }));
  }

  expireQuotes(): void {
    for (const quote of this.#quotes.values()) quote.until = 0;
  }

  /** A late change of a transfer's state. */
  advance(key: string, status: string): void {
    const transfer = this.#transferOf(key);
    transfer.status = status;
    if (['funds_refunded', 'charged_back'].includes(status)) this.bringBack(transfer.customerTransactionId);
  }

  /** Funds a transfer as a person does at wise.com. */
  fundByHand(key: string): void {
    this.#pay(this.#transferOf(key));
  }

  webhook(
    key: string,
    options: { event_type?: string; sent_at?: string; signed_with?: string; is_test?: boolean } = {},
  ): Webhook {
    const { event_type = 'transfers#state-change', sent_at = new Date().toISOString() } = options;
    const { id, status, quote } = this.#transferOf(key);
    const resource = {
      type: 'transfer',
      id,
      profile_id: Number(this.credentials.profile_id),
      account_id: quote.account,
    };
    const data = { resource, current_state: status, previous_state: 'processing', occurred_at: sent_at };
    const raw_body = Buffer.from(JSON.stringify({ data, event_type, schema_version: '2.0.0', sent_at }));
    const signature = sign('sha256', raw_body, options.signed_with ?? this.#keys.privateKey).toString('base64');
    const test: Record<string, string> = options.is_test ? { 'x-test-notification': 'true' } : {};
    return { raw_body, headers: { 'x-signature-sha256': signature, 'x-delivery-id': randomUUID(), ...test } };
  }

  protected override handle(call: Call): Answer {
    const { method, path } = call;
    if (call.headers.authorization !== `Bearer ${this.credentials.api_token}`) {
      return { status: 401, body: { error: 'invalid_token', error_description: call.headers.authorization } };
    }
    const profile = `/v3/profiles/${this.credentials.profile_id}`;
    if (path === '/v2/profiles') return { status: 200, body: [this.#profile()] };
    if (path === `${profile}/quotes`) return this.#quote(call);
    if (path === '/v1/transfers') return method === 'POST' ? this.#create(call) : this.#list(call);
    const [, id, action] = /\/transfers\/(\d+)(\/cancel|\/payments)?$/.exec(path) ?? [];
    const transfer = this.#transfers.find((each) => each.id === Number(id));
    if (!transfer) return refusal(404, 'transfer.not-found');
    if (action === '/payments') return this.#fund(transfer);
    if (action === '/cancel') return this.#cancel(transfer);
    return { status: 200, body: shown(transfer) };
  }

  #profile(): object {
    const { profile_id } = this.credentials;
    return {
      id: Number(profile_id),
      type: 'BUSINESS',
      businessName: 'Acme Ltd',
      address: { countryIso3Code: this.country },
    };
  }

  #quote({ raw }: Call): Answer {
    const { sourceCurrency: source, targetCurrency: target, targetAccount: account } = JSON.parse(raw);
    const amount = /"targetAmount":([0-9.]+)/.exec(raw)?.[1] ?? '';
    if (!this.recipients.has(account)) return invalid('RECIPIENT_MISSING', 'targetAccount', 'Recipient is missing');
    if (this.balances[target] === undefined) return invalid('NOT_SUPPORTED', 'targetCurrency', 'Not supported');
    const quote = { id: randomUUID(), source, target, amount, account, is_used: false, until: Date.now() + 1_800_000 };
    this.#quotes.set(quote.id, quote);
    const fee = { total: 0.37, transferwise: 0.37, payIn: 0 };
    const body = {
      id: quote.id,
      sourceCurrency: source,
      targetCurrency: target,
      payOut: 'BANK_TRANSFER',
      expirationTime: new Date(quote.until).toISOString(),
      paymentOptions: [
        { payIn: 'BANK_TRANSFER', payOut: 'BANK_TRANSFER', fee: { ...fee, total: 1.5 } },
        { payIn: 'BALANCE', payOut: 'BANK_TRANSFER', fee },
      ],
    };
    return { status: 200, body };
  }

  #create({ raw }: Call): Answer {
    const { quoteUuid, customerTransactionId, targetAccount, details } = JSON.parse(raw);
    const repeated = this.#transfers.find((each) => each.customerTransactionId === customerTransactionId);
    if (repeated) return { status: 200, body: shown(repeated) };
    const quote = this.#quotes.get(quoteUuid);
    if (!quote || quote.account !== targetAccount) return invalid('NOT_VALID', 'quoteUuid', 'Quote is not valid');
    if (quote.is_used || quote.until < Date.now()) return invalid('NOT_VALID', 'quoteUuid', 'Quote is used or expired');
    quote.is_used = true;
    const transfer = {
      id: 16_521_632 + this.#transfers.length,
      customerTransactionId,
      quote,
      status: 'incoming_payment_waiting',
      created: new Date().toISOString(),
      reference: details.reference,
    };
    this.#transfers.unshift(transfer);
    return { status: 200, body: shown(transfer) };
  }

  #list({ query }: Call): Answer {
    const [limit, offset] = [Number(query.get('limit')), Number(query.get('offset'))];
    const since = query.get('createdDateStart') ?? '';
    const matching = this.#transfers.filter(
      (each) => each.created >= since && each.quote.target === query.get('targetCurrency'),
    );
    return { status: 200, body: matching.slice(offset, offset + limit).map(shown) };
  }

  #fund(transfer: Transfer): Answer {
    if (transfer.status !== 'incoming_payment_waiting') return refusal(422, 'transfer.invalid-state');
    if (this.wants_second_factor) {
      return {
        status: 403,
        headers: { 'x-2fa-approval-result': 'REJECTED', 'x-2fa-approval': randomUUID() },
        body: {},
      };
    }
    const minor = minorUnits(transfer.quote.amount, transfer.quote.target) as number;
    if ((this.balances[transfer.quote.source] ?? 0) < minor) {
      return { status: 200, body: { type: 'BALANCE', status: 'REJECTED', errorCode: 'transfer.insufficient_funds' } };
    }
    this.#pay(transfer);
    return { status: 201, body: { type: 'BALANCE', status: 'COMPLETED', errorCode: null } };
  }

  #pay(transfer: Transfer): void {
    const { source, target, amount } = transfer.quote;
    const minor = minorUnits(amount, target) as number;
    this.balances[source] = (this.balances[source] ?? 0) - minor;
    transfer.status = 'processing';
    this.move(transfer.customerTransactionId, minor, target);
  }

  #cancel(transfer: Transfer): Answer {
    if (!['incoming_payment_waiting', 'processing'].includes(transfer.status)) {
      return refusal(409, 'transfer.cancellation.not.allowed');
    }
    if (transfer.status === 'processing') this.bringBack(transfer.customerTransactionId);
    transfer.status = 'cancelled';
    return { status: 200, body: shown(transfer) };
  }

  #transferOf(key: string): Transfer {
    const id = transactionIdOf({ idempotency_key: key });
    const transfer = this.#transfers.find((each) => each.customerTransactionId === id);
    if (!transfer) throw new Error(`no transfer ${key}`);
    return transfer;
  }
}

const shown = ({ id, quote, status, customerTransactionId, created, reference }: Transfer): object => ({
  id,
  targetAccount: quote.account,
  quoteUuid: quote.id,
  status,
  reference,
  created,
  details: { reference },
  hasActiveIssues: false,
  sourceCurrency: quote.source,
  targetCurrency: quote.target,
  targetValue: Number(quote.amount),
  customerTransactionId,
});

const refusal = (status: number, code: string): Answer => ({ status, body: { code, message: `${code} message` } });
const invalid = (code: string, path: string, message: string): Answer => ({
  status: 422,
  body: { errors: [{ code, path, message, arguments: [] }] },
});

if (import.meta.main) {
  const server = new WiseServer();
  await runAlone(server, () => ({ credentials: server.credentials }));
}
