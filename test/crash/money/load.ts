/** The load of `soak -- money`: clients of a merchant, each of which asks one thing after the other until it is answered, whatever dies. */
import { setTimeout as sleep } from 'node:timers/promises';
import { newId } from '../../../src/core/values/id.ts';
import { type Answer, type Caller, callerOf, type Json } from '../../harness.ts';
import { fresh } from '../../shop.ts';
import type { Crew } from '../crew.ts';

export type Noun = 'click' | 'customer' | 'sale' | 'refund' | 'payout_batch';

/** The ids of successful answers; of refunds the merchant's own. */
export type Made = Record<Noun, string[]>;

export interface Shop {
  merchant: Caller;
  program_id: string;
  partners: { id: string; handle: string }[];
  made: Made;
  /** The sales that were answered, with what may be refunded of each. */
  sales: { id: string; left_minor: number }[];
}

const day_ms = 86_400_000;
const most_in_bulk = 20;
const pause_ms = 60;
/** One answer in so many is asked for again, by the same key. */
const repeat_every = 10;
const come_again = ['idempotency_key_in_flight', 'service_unavailable'];

export class Load {
  readonly #apis: Crew;
  readonly #below: (bound: number) => number;
  readonly #working: Promise<unknown>[] = [];
  #failure: unknown;
  #stopping = false;
  /** The number of answered requests. */
  answered = 0;

  constructor(apis: Crew, below: (bound: number) => number) {
    this.#apis = apis;
    this.#below = below;
  }

  start(shop: Shop, clients: number): void {
    for (let nth = 0; nth < clients; nth++) this.#repeat(() => this.#oneOf(shop, deeds));
    this.#repeat(() => this.#payOut(shop));
  }

  /** Waits for so many answers more. @throws what went wrong with the load */
  async more(answers: number): Promise<void> {
    for (const until = this.answered + answers; this.answered < until; await sleep(20)) {
      if (this.#failure !== undefined) throw this.#failure;
    }
  }

  /** Each client ends what it is at. @throws what went wrong with the load */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#working);
    if (this.#failure !== undefined) throw this.#failure;
  }

  #repeat(work: () => Promise<unknown>): void {
    const working = async () => {
      while (!this.#stopping) {
        await work();
        await sleep(this.#below(pause_ms));
      }
    };
    this.#working.push(
      working().catch((error) => {
        this.#failure ??= error;
      }),
    );
  }

  #oneOf(shop: Shop, among: Deed[]): Promise<unknown> {
    return (among[this.#below(among.length)] as Deed)(shop, this.#ask, this.#below);
  }

  /** A batch of all that is due, sent once its payouts are there, if there are any. */
  async #payOut(shop: Shop): Promise<void> {
    await sleep(1_000 + this.#below(2_000));
    const { id } = await this.#ask(shop, 'payout_batches', { program_id: shop.program_id });
    shop.made.payout_batch.push(id);
    const status = async () => (await this.#answer(shop, 'GET', `payout_batches/${id}`)).body.status;
    while ((await status()) === 'generating') await sleep(100);
    if ((await status()) === 'ready') await this.#ask(shop, `payout_batches/${id}/send`);
  }

  readonly #ask: Ask = async (shop, path, body) => {
    const key = newId('ask');
    const answer = await this.#answer(shop, 'POST', path, body, key);
    if (this.#below(repeat_every) === 0) {
      const again = await this.#answer(shop, 'POST', path, body, key);
      if (again.text !== answer.text) throw new Error(`POST ${path} was answered anew: ${again.text}, ${answer.text}`);
    }
    return answer.body;
  };

  /** Asks, with the same key, any API that runs until one answers. @throws Error when the answer is not that it is done */
  async #answer({ merchant }: Shop, method: string, path: string, body?: object, key?: string): Promise<Answer> {
    for (;;) {
      const apis = this.#apis.running;
      const api = apis[this.#below(apis.length)];
      const caller = api && callerOf(api.url, merchant.key, merchant.organization_id);
      const headers = key === undefined ? undefined : { 'Idempotency-Key': key };
      const answer = await caller?.request(method, `/v1/${path}`, body, headers).catch(unlessBroken);
      if (answer && answer.status < 300) {
        this.answered++;
        return answer;
      }
      if (answer && !come_again.includes(answer.body.error?.code))
        throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`);
      await sleep(50);
    }
  }
}

/** @throws what is not a connection's end */
function unlessBroken(error: Error & { code?: string }): undefined {
  if (!/^(E|UND_ERR)/.test(error.code ?? '')) throw error;
}

type Ask = (shop: Shop, path: string, body?: object) => Promise<Json>;
type Below = (bound: number) => number;
type Deed = (shop: Shop, ask: Ask, below: Below) => Promise<void>;

const oneOf = <One>(those: readonly One[], below: Below): One | undefined => those[below(those.length)];

function newClick({ program_id, partners }: Shop, below: Below): object {
  const landing_url = 'https://acme.example.com/';
  return { program_id, value: oneOf(partners, below)?.handle, landing_url, visitor_token: newId('visitor') };
}

/** By a customer now, or by a partner's so long ago that it is due in some seconds. */
function newSale({ program_id, partners, made }: Shop, below: Below) {
  const customer_id = below(2) === 0 ? oneOf(made.customer, below) : undefined;
  const occurred_at = new Date(Date.now() - day_ms + below(5_000)).toISOString();
  const by = customer_id ? { customer_id } : { partner_id: oneOf(partners, below)?.id, occurred_at };
  return {
    ...{ program_id, ...by, amount_minor: 100 * (1 + below(100)), currency: 'USD' },
    external_charge_id: fresh('charge'),
  };
}

function noteSales({ made, sales }: Shop, sold: Json[]): void {
  made.sale.push(...sold.map(({ id }) => id));
  sales.push(...sold.map(({ id, amount_minor }) => ({ id, left_minor: amount_minor })));
}

/** @throws Error when one of a bulk was refused */
function allMade({ data }: Json, noun: Noun): Json[] {
  const refused = data.find(({ status }: Json) => status !== 201);
  if (refused) throw new Error(`One of many was refused: ${JSON.stringify(refused)}`);
  return data.map((one: Json) => one[noun]);
}

const many = <One>(make: () => One, below: Below): One[] => Array.from({ length: 1 + below(most_in_bulk) }, make);

const deeds: Deed[] = [
  async (shop, ask, below) => {
    const click = await ask(shop, 'clicks', newClick(shop, below));
    shop.made.click.push(click.id);
    if (below(2) === 0) return;
    const email = `${newId('grace')}@customer.example.com`;
    const customer = await ask(shop, 'customers', { program_id: shop.program_id, click_id: click.id, email });
    shop.made.customer.push(customer.id);
  },
  async (shop, ask, below) => {
    const clicks = await ask(
      shop,
      'clicks/bulk',
      many(() => newClick(shop, below), below),
    );
    shop.made.click.push(...allMade(clicks, 'click').map(({ id }) => id));
  },
  async (shop, ask, below) => noteSales(shop, [await ask(shop, 'sales', newSale(shop, below))]),
  async (shop, ask, below) => {
    const sales = await ask(
      shop,
      'sales/bulk',
      many(() => newSale(shop, below), below),
    );
    noteSales(shop, allMade(sales, 'sale'));
  },
  async (shop, ask, below) => {
    const sale = oneOf(shop.sales, below);
    if (!sale || sale.left_minor === 0) return;
    const amount_minor = below(2) === 0 ? sale.left_minor : 100;
    sale.left_minor -= amount_minor;
    const external_refund_id = fresh('refund');
    await ask(shop, `sales/${sale.id}/refund`, { amount_minor, external_refund_id });
    shop.made.refund.push(external_refund_id);
  },
];
