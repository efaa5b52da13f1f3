import fc from 'fast-check';
import t from 'tap';
import { transactionIdOf } from '../../../src/program/payouts/rails/wise_transfer.ts';
import { type Answer, type Json, sql, startRail } from '../../harness.ts';
import { effort, seeded } from '../../runner/effort.ts';
import { openShop, type Shop } from '../../shop.ts';
import { booksOf, settleAll } from './books.ts';
import { generated, payee, setRail } from './fixture.ts';
import { Ledger } from './ledger.ts';
import { PayPalServer } from './rails/paypal_server.ts';
import type { Movement } from './rails/provider_server.ts';
import { WiseServer } from './rails/wise_server.ts';

/** Wise gives back what it cancels after funding. */
class RefundingWise extends WiseServer {
  override advance(key: string, status: string): void {
    super.advance(key, status);
    if (status === 'cancelled') this.bringBack(transactionIdOf({ idempotency_key: key }));
  }
}

const paypal = await new PayPalServer().start();
const wise = await new RefundingWise().start();
t.teardown(() => paypal.stop());
t.teardown(() => wise.stop());
paypal.next_status = 'PENDING';
for (const currency of ['USD', 'JPY', 'KWD']) {
  paypal.balances[currency] = 1e12;
  wise.balances[currency] = 1e12;
}
const rail = await startRail({ provider_urls: { paypal: paypal.url, wise: wise.url } });

const currencies = ['USD', 'JPY', 'KWD'] as const;
const rate_bps = 1234;
const methods = [
  { method: 'paypal', details: { email: 'ada@partner.example.com' } },
  { method: 'wise', details: { account_id: '333' } },
  { method: 'wise', details: { account_id: '333' } },
];

const nth = fc.nat({ max: 1000 });
const partner = fc.nat({ max: methods.length - 1 });
const currency = fc.constantFrom(...currencies);
const amount = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 100, max: 100_000 }));
type Given<Fields> = { [Name in keyof Fields]: Fields[Name] extends fc.Arbitrary<infer Value> ? Value : never };
const of = <Kind extends string, Fields extends Record<string, fc.Arbitrary<unknown>>>(kind: Kind, fields: Fields) =>
  fc.record({ kind: fc.constant(kind), ...fields }) as unknown as fc.Arbitrary<{ kind: Kind } & Given<Fields>>;

/** The steps of a history. `nth` chooses among the objects of that time. */
const step = fc.oneof(
  { weight: 5, arbitrary: of('sale', { partner, currency, amount }) },
  { weight: 2, arbitrary: of('bonus', { partner, currency, amount }) },
  { weight: 3, arbitrary: of('refund', { nth, amount: fc.option(amount, { nil: 0 }) }) },
  { weight: 2, arbitrary: of('correct', { nth, amount }) },
  { weight: 1, arbitrary: of('deleteSale', { nth }) },
  {
    weight: 5,
    arbitrary: of('batch', { nth: fc.oneof({ weight: 4, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: nth }) }),
  },
  { weight: 6, arbitrary: of('send', { nth }) },
  { weight: 3, arbitrary: of('sendBatch', { nth }) },
  { weight: 10, arbitrary: of('outcome', { nth, choice: fc.nat({ max: 5 }) }) },
  { weight: 4, arbitrary: of('poll', {}) },
  { weight: 3, arbitrary: of('retry', { nth }) },
  { weight: 2, arbitrary: of('markPaid', { nth }) },
  { weight: 2, arbitrary: of('deletePayout', { nth }) },
  { weight: 1, arbitrary: of('suspend', { partner, status: fc.constantFrom('active', 'active', 'suspended') }) },
  { weight: 1, arbitrary: of('deletePartner', { partner, nth }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** Everybody has earned something in each currency, and some of it is in payouts. */
const prelude: Step[] = [
  ...methods.flatMap((_, partner) =>
    currencies.flatMap((currency): Step[] => [
      { kind: 'sale', partner, currency, amount: 12_345 },
      { kind: 'bonus', partner, currency, amount: 500 },
    ]),
  ),
  { kind: 'batch', nth: -1 },
];

/** The next states of an item, at each provider. */
const next_states: Record<string, Record<string, string[]>> = {
  paypal: {
    PENDING: ['SUCCESS', 'SUCCESS', 'FAILED', 'UNCLAIMED'],
    UNCLAIMED: ['SUCCESS', 'RETURNED'],
    FAILED: ['SUCCESS'],
    SUCCESS: ['REFUNDED'],
  },
  wise: {
    processing: ['outgoing_payment_sent', 'outgoing_payment_sent', 'cancelled', 'funds_refunded'],
    outgoing_payment_sent: ['funds_refunded', 'charged_back'],
  },
};

/** One run: a program, what the model says of it, and what the providers were told to do. */
class World {
  readonly shop: Shop;
  readonly partners: Json[];
  readonly ledger = new Ledger(rate_bps);
  readonly sales: Json[] = [];
  readonly deleted = new Set<number>();
  readonly states = new Map<string, string>();
  readonly by_hand = new Set<string>();
  readonly answers: Record<string, number> = {};

  constructor(shop: Shop, partners: Json[]) {
    this.shop = shop;
    this.partners = partners;
  }

  /** @throws where the answer is a defect */
  async ask(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await this.shop.merchant.request(method, path, body);
    if (answer.status >= 500) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`);
    return answer;
  }

  async take(step: Step): Promise<void> {
    const { status } = (await this.#take(step)) ?? { status: 0 };
    this.answers[`${step.kind} ${status}`] = (this.answers[`${step.kind} ${status}`] ?? 0) + 1;
  }

  #take(step: Step): Promise<Answer | undefined> {
    switch (step.kind) {
      case 'sale':
        return this.#sell(step);
      case 'bonus':
        return this.#grant(step);
      case 'refund':
        return this.#refund(step);
      case 'correct':
        return this.#correct(step);
      case 'deleteSale':
        return this.#deleteSale(step);
      case 'batch':
        return this.#batch(step);
      case 'send':
        return this.#onPayout(step.nth, "status = 'pending'", (id) => this.ask('POST', `/v1/payouts/${id}/send`));
      case 'sendBatch':
        return this.#sendBatch(step);
      case 'outcome':
        return this.#outcome(step);
      case 'poll':
        return this.check().then(() => undefined);
      case 'retry':
        return this.#onPayout(step.nth, "status = 'failed'", (id) => this.ask('POST', `/v1/payouts/${id}/retry`));
      case 'markPaid':
        return this.#markPaid(step);
      case 'deletePayout':
        return this.#onPayout(step.nth, "status in ('pending', 'failed')", (id) =>
          this.ask('DELETE', `/v1/payouts/${id}`),
        );
      case 'suspend':
        return this.ask('PATCH', `/v1/partners/${this.#id(step.partner)}`, { status: step.status });
      case 'deletePartner':
        return this.#deletePartner(step);
    }
  }

  #id = (nth: number): string => this.partners[nth]?.id;

  async #sell({ partner, currency, amount }: Step & { kind: 'sale' }): Promise<Answer> {
    const answer = await this.ask('POST', '/v1/sales', {
      program_id: this.shop.program_id,
      partner_id: this.#id(partner),
      ...{ amount_minor: amount, currency, external_charge_id: `ch_${this.sales.length}_${this.shop.program_id}` },
    });
    // A partner who is suspended earns nothing.
    if (answer.status !== 201 || answer.body.activity_outcome !== 'commission_created') return answer;
    this.sales.push(answer.body);
    this.ledger.sell(partner, currency, amount);
    return answer;
  }

  async #grant({ partner, currency, amount }: Step & { kind: 'bonus' }): Promise<Answer> {
    const body = { program_id: this.shop.program_id, partner_id: this.#id(partner), amount_minor: amount, currency };
    const answer = await this.ask('POST', '/v1/commissions', body);
    if (answer.status === 201) this.ledger.grant(partner, currency, amount);
    return answer;
  }

  async #refund({ nth, amount }: Step & { kind: 'refund' }): Promise<Answer | undefined> {
    const at = nth % (this.sales.length || 1);
    const sale = this.ledger.sales[at];
    if (!sale) return undefined;
    const body = amount > 0 ? { amount_minor: amount } : {};
    const answer = await this.ask('POST', `/v1/sales/${this.sales[at]?.id}/refund`, body);
    if (answer.status === 200) this.ledger.refund(at, amount || sale.amount - sale.refunded);
    return answer;
  }

  async #correct({ nth, amount }: Step & { kind: 'correct' }): Promise<Answer | undefined> {
    const at = nth % (this.sales.length || 1);
    if (!this.sales[at]) return undefined;
    const answer = await this.ask('PATCH', `/v1/sales/${this.sales[at]?.id}`, { amount_minor: amount });
    if (answer.status === 200) this.ledger.correct(at, amount);
    return answer;
  }

  async #deleteSale({ nth }: Step & { kind: 'deleteSale' }): Promise<Answer | undefined> {
    const at = nth % (this.sales.length || 1);
    if (!this.sales[at]) return undefined;
    const answer = await this.ask('DELETE', `/v1/sales/${this.sales[at]?.id}`);
    if (answer.status === 200) this.ledger.deleteSale(at);
    return answer;
  }

  /** By a cut-off at the time of a sale, or now. */
  async #batch({ nth }: Step & { kind: 'batch' }): Promise<Answer> {
    const cutoff = nth < 0 ? undefined : this.sales[nth % (this.sales.length || 1)]?.created_at;
    const body = { program_id: this.shop.program_id, ...(cutoff ? { cutoff } : {}) };
    const answer = await this.ask('POST', '/v1/payout_batches', body);
    if (answer.status === 202) await generated(this.shop.merchant, answer.body.id);
    return answer;
  }

  async #sendBatch({ nth }: Step & { kind: 'sendBatch' }): Promise<Answer | undefined> {
    const batches = await this.shop.list('payout_batches', 'status=ready');
    const batch = batches[nth % (batches.length || 1)];
    return batch && this.ask('POST', `/v1/payout_batches/${batch.id}/send`);
  }

  async #onPayout(nth: number, where: string, ask: (id: string) => Promise<Answer>): Promise<Answer | undefined> {
    const payouts = await this.shop.list(
      'payouts',
      where.startsWith("status = '") ? `status=${where.split("'")[1]}` : '',
    );
    const payout = payouts[nth % (payouts.length || 1)];
    return payout && ask(payout.id);
  }

  async #markPaid({ nth }: Step & { kind: 'markPaid' }): Promise<Answer | undefined> {
    const answer = await this.#onPayout(nth, '', (id) => this.ask('POST', `/v1/payouts/${id}/mark_paid`));
    if (answer?.status !== 200) return answer;
    const { id, partner_id, currency, amount_minor } = answer.body;
    this.by_hand.add(id);
    this.ledger.payByHand(
      this.partners.findIndex((one) => one.id === partner_id),
      currency,
      amount_minor,
    );
    return answer;
  }

  /** Seldom, since little happens to who is deleted. */
  async #deletePartner({ partner, nth }: Step & { kind: 'deletePartner' }): Promise<Answer | undefined> {
    if (nth % 4 !== 0) return undefined;
    const answer = await this.ask('DELETE', `/v1/partners/${this.#id(partner)}`);
    if (answer.status === 200) this.deleted.add(partner);
    return answer;
  }

  /** A provider decides about one of its transfers. */
  async #outcome({ nth, choice }: Step & { kind: 'outcome' }): Promise<undefined> {
    const attempts = (await this.#attempts()).filter(({ last_answer }) => last_answer !== null);
    const attempt = attempts[nth % (attempts.length || 1)];
    if (!attempt) return;
    const { id, rail: by } = attempt;
    const states = next_states[by] as Record<string, string[]>;
    const state = this.states.get(id) ?? (Object.keys(states)[0] as string);
    const possible = states[state] ?? [];
    const next = possible[choice % (possible.length || 1)];
    if (next === undefined) return;
    if (by === 'paypal') paypal.settle(id, next);
    else wise.advance(id, next);
    this.states.set(id, next);
  }

  #attempts = (): Promise<Json[]> =>
    rail.query(sql`
      select a.id, a.payout_id, a.rail, a.status, a.last_answer, a.currency, a.amount_minor, p.partner_id
      from program.payout_attempt a join program.payout p on p.id = a.payout_id
      where a.program_id = ${this.shop.program_id} order by a.id`);

  /** Returns the amount that a rail moved. Money that has not arrived yet is the merchant's, as returned money is. */
  movedFor(key: string): Movement | undefined {
    const [by_paypal, by_wise] = [paypal.movedFor(key), wise.movedFor(key)];
    const moved = by_paypal ?? by_wise;
    const is_on_its_way = by_paypal ? this.states.get(key) === 'UNCLAIMED' : !this.states.has(key);
    return moved && { ...moved, came_back: moved.came_back || is_on_its_way };
  }

  #out = ({ id }: Json): number => {
    const moved = this.movedFor(id);
    return moved && !moved.came_back ? moved.amount_minor : 0;
  };

  /** Compares Rail with the model, once the rails have been asked about everything. @throws Error with all that differs */
  async check(): Promise<void> {
    await settleAll(rail, this.shop);
    const attempts = await this.#attempts();
    const balances = await rail.query<Json>(sql`
      select partner_id, currency, sum(amount_minor)::bigint as open from program.commission
      where program_id = ${this.shop.program_id} and deleted_at is null and status in ('pending', 'approved', 'due')
      group by partner_id, currency`);
    const faults = this.partners.flatMap(({ id }, nth) =>
      currencies.flatMap((currency) => {
        const of_balance = attempts.filter((one) => one.partner_id === id && one.currency === currency);
        const paid = of_balance.reduce(
          (sum, attempt) => sum + this.#out(attempt),
          this.ledger.paidByHand(nth, currency),
        );
        const open = balances.find((one) => one.partner_id === id && one.currency === currency)?.open ?? 0;
        return this.deleted.has(nth)
          ? this.#faultsOfDeleted(nth, currency, paid, of_balance)
          : differs(`what partner ${nth} is owed in ${currency}`, open, this.ledger.earned(nth, currency) - paid);
      }),
    );
    const twice = [...paypal.moved(), ...wise.moved()].filter(({ times }) => times !== 1);
    faults.push(...twice.map(({ key, times }) => `${key} was paid ${times} times`));
    if (faults.length > 0) throw new Error(faults.join('\n'));
  }

  /** Never more than was earned at any time, but for what was paid twice by the rail's and the merchant's own doing. */
  #faultsOfDeleted(nth: number, currency: string, paid: number, attempts: Json[]): string[] {
    const by_payout = Map.groupBy(attempts, ({ payout_id }) => payout_id as string);
    const excess = [...by_payout].reduce((sum, [payout_id, those]) => {
      const outs = those.map(this.#out).filter((out) => out > 0);
      const too_many = outs.length + (this.by_hand.has(payout_id) ? 1 : 0) - 1;
      return sum + Math.max(0, too_many) * (outs[0] ?? 0);
    }, 0);
    const most = this.ledger.earnedAtMost(nth, currency) + excess;
    return paid > most ? [`deleted partner ${nth} was paid ${paid} ${currency}, and earned ${most} at most`] : [];
  }
}

const differs = (what: string, is: number, should_be: number): string[] =>
  is === should_be ? [] : [`${what} is ${is} instead of ${should_be}`];

async function openWorld(): Promise<World> {
  const shop = await openShop(rail, { holding_period_days: 0, min_payout_minor: 1 });
  await setRail(rail, shop, 'paypal', paypal.credentials);
  await setRail(rail, shop, 'wise', wise.credentials);
  await shop.rule({ rate_value: rate_bps });
  const partners: Json[] = [];
  for (const payout_method of methods) partners.push(await payee(shop, [], { payout_method }));
  return new World(shop, partners);
}

t.test('no partner is paid more than they earned, and each balance is what a ledger says', async (t) => {
  const answers: Record<string, number> = {};
  const run = fc.asyncProperty(
    fc.array(fc.noBias(step), { minLength: 25, maxLength: 50, size: 'max' }),
    async (steps) => {
      const world = await openWorld();
      for (const one of [...prelude, ...steps]) await world.take(one);
      await world.check();
      const faults = await booksOf(rail, world.shop, world);
      if (faults.length > 0) throw new Error(faults.join('\n'));
      for (const [answer, count] of Object.entries(world.answers)) answers[answer] = (answers[answer] ?? 0) + count;
    },
  );
  await fc.assert(run, {
    numRuns: Number(process.env.PAYOUT_MODEL_RUNS ?? effort.payout_model_runs),
    interruptAfterTimeLimit: 200_000,
    endOnFailure: true,
    ...(process.env.PAYOUT_MODEL_SEED ? { seed: Number(process.env.PAYOUT_MODEL_SEED) } : seeded),
  });
  t.comment(JSON.stringify(answers));
  t.same(await rail.audit(), []);
});
