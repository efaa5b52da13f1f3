import type { Test } from 'tap';
import type {
  Credentials,
  Rail,
  RailOutcome,
  Transfer,
  TransferContext,
  WebhookContext,
} from '../../../../src/program/payouts/rails/rail.ts';
import type { ProviderServer, Webhook } from './provider_server.ts';

let number = 0;

type Fields = Partial<Transfer> & { credentials?: Credentials };

/** One attempt at a payout, kept as the caller of a rail keeps it: what a crash leaves is what was committed before. */
export class Attempt {
  readonly rail: Rail;
  readonly transfer: Transfer;
  credentials: Credentials;
  state: Record<string, string> = {};
  last_sent_at: string | null = null;
  now = new Date();
  readonly #url: string;

  constructor(rail: Rail, server: ProviderServer & { credentials: Credentials }, fields: Fields = {}) {
    const { credentials = server.credentials, ...transfer } = fields;
    number += 1;
    const payout_id = `pyt_01kap3b6n8f2v9w4x7y0z1${String(number).padStart(4, '0')}`;
    this.rail = rail;
    this.#url = server.url;
    this.credentials = credentials;
    this.transfer = {
      idempotency_key: `${payout_id}-1`,
      payout_id,
      program_name: 'Acmé',
      partner_name: 'Ada Lovelace',
      partner_email: 'ada@partner.example.com',
      amount_minor: 1980,
      currency: 'USD',
      destination: { email: 'ada@partner.example.com', account_id: rail.name === 'stripe' ? 'acct_partner' : '333' },
      began_at: this.now.toISOString(),
      ...transfer,
    };
  }

  get key(): string {
    return this.transfer.idempotency_key;
  }

  get context(): TransferContext {
    return {
      ...this.#calling(),
      last_sent_at: this.last_sent_at,
      state: this.state,
      keep: async (state) => {
        this.state = { ...state };
      },
    };
  }

  /** @param isKilled asked whenever something is to be kept: whether the process dies at that moment */
  async submit(isKilled: () => boolean = () => false): Promise<RailOutcome> {
    const { context, last_sent_at } = this;
    const keep = async (state: Record<string, string>) => {
      if (isKilled()) throw new Error('killed');
      await context.keep(state);
    };
    this.last_sent_at = this.now.toISOString();
    const outcome = await this.rail.submit(this.transfer, this.credentials, { ...context, keep });
    if (outcome.status === 'later') this.last_sent_at = last_sent_at;
    return outcome;
  }

  lookUp(): Promise<RailOutcome | undefined> {
    return this.rail.lookUp(this.transfer, this.credentials, this.context);
  }

  async cancel(): Promise<RailOutcome | undefined> {
    return this.rail.cancel?.(this.transfer, this.credentials, this.context);
  }

  check(credentials: Credentials = this.credentials) {
    return this.rail.check(credentials, this.#calling());
  }

  verify({ headers, raw_body }: Webhook, context: Partial<WebhookContext> = {}) {
    return this.rail.verifyWebhook({ headers, raw_body }, this.credentials, { ...this.#calling(), ...context });
  }

  #calling() {
    return { mode: 'test' as const, url: this.#url, now: this.now, cut_off: new AbortController().signal };
  }

  pass(seconds: number): void {
    this.now = new Date(this.now.getTime() + seconds * 1000);
  }
}

/** Everything that a rail shows or throws, searched for what must never be there. */
export function holdsNoSecret(t: Test, shown: unknown, secrets: string[]): void {
  const text =
    shown instanceof Error ? `${shown.message} ${shown.stack} ${JSON.stringify(shown)}` : JSON.stringify(shown);
  for (const secret of secrets) t.notOk(text.includes(secret), `${text.slice(0, 200)} does not hold a secret`);
}

export async function startServer<Server extends ProviderServer>(t: Test, server: Server): Promise<Server> {
  await server.start();
  t.teardown(() => server.stop());
  return server;
}
