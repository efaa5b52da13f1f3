import fc from 'fast-check';
import t from 'tap';
import { eventually, type Json, startRail } from '../harness.ts';
import { effort, seeded } from '../runner/effort.ts';
import { openShop, type Shop } from '../shop.ts';

const rail = await startRail();

const most = Number.MAX_SAFE_INTEGER;
/** Share of something, in basis points. */
const share = fc.integer({ min: 0, max: 10_000 });
const amount = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 200_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: most }) },
  { weight: 1, arbitrary: fc.constantFrom(0, 1, 2, 3, most) },
);
const rate = fc.oneof(
  fc.record({
    rate_type: fc.constant('percent'),
    rate_value: fc.constantFrom(1, 333, 2_000, 5_050, 10_000, 25_000),
    max_commission_minor: fc.option(fc.integer({ min: 1, max: 50_000 }), { freq: 3 }),
  }),
  fc.record({
    rate_type: fc.constant('fixed'),
    rate_value: fc.integer({ min: 1, max: 100_000 }),
    max_commission_minor: fc.constant(null),
  }),
);
const nth = fc.nat(10);
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('refund' as const), share }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refund_rest' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('correct' as const), amount, tax: share, discount: share }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('annotate' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('mature' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('pay' as const, 'lock' as const, 'unlock' as const), nth }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('approve' as const, 'reject' as const, 'void' as const, 'remove' as const),
      nth,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('edit' as const), nth, amount: fc.integer({ min: 0, max: 9_999 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('edit_rule' as const), rate }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('switch_base' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('reassign' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('hold' as const, 'release' as const, 'reverse' as const), nth }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('dispute' as const), share }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('close' as const), nth, outcome: fc.constantFrom('won', 'lost') }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Rate {
  rate_type: string;
  rate_value: number;
  max_commission_minor: number | null;
  net: boolean;
}

/** `value × numerator / denominator`, half away from zero. */
const scaled = (value: bigint, numerator: bigint, denominator: bigint): bigint =>
  (2n * value * numerator + denominator) / (2n * denominator);

/** The sum of a sale's commissions when one of them was edited, and the rest of its base then. */
interface Edit {
  total: bigint;
  left: bigint;
}

/** Computes the amount that a sale should earn, in other words than the service's. */
function owed(sale: Json, by: Rate | null, edit?: Edit): bigint {
  const [whole, refunded] = [BigInt(sale.amount_minor), BigInt(sale.refunded_minor)];
  if (by === null || refunded === whole) return 0n;
  const left = leftOf(sale, by);
  if (edit) {
    if (edit.left === 0n) return edit.total;
    return edit.total < 0n ? -scaled(-edit.total, left, edit.left) : scaled(edit.total, left, edit.left);
  }
  const earned = by.rate_type === 'fixed' ? BigInt(by.rate_value) : scaled(left, BigInt(by.rate_value), 10_000n);
  const cap = by.max_commission_minor;
  return cap !== null && earned > BigInt(cap) ? BigInt(cap) : earned;
}

/** Returns the rest of the base of a rate. */
function leftOf(sale: Json, by: Rate): bigint {
  const [whole, refunded] = [BigInt(sale.amount_minor), BigInt(sale.refunded_minor)];
  const parts = [sale.tax_minor, sale.shipping_minor, sale.fee_minor, sale.discount_minor].map(BigInt);
  const net = parts.reduce((left, part) => left - part, whole);
  const base = by.net ? (net < 0n ? 0n : net) : whole;
  return refunded === 0n ? base : scaled(base, whole - refunded, whole);
}

/** Beyond the integers that JSON carries exactly. */
const isTooLarge = (sale: Json, by: Rate | null, edit?: Edit): boolean => {
  const amount = owed(sale, by, edit);
  return amount > BigInt(most) || -amount > BigInt(most);
};

const total = (some: Json[]): bigint => some.reduce((sum, { amount_minor }) => sum + BigInt(amount_minor), 0n);
const isOpen = ({ status, payout_id }: Json): boolean => status !== 'paid' && payout_id === null;
/** Nothing keeps a batch from it but its time. */
const isPayable = ({ status, payout_id, kind }: Json): boolean =>
  ['pending', 'approved', 'due'].includes(status) && payout_id === null && kind !== 'clawback';
const part = (of: number, bps: number): number => Number(scaled(BigInt(of), BigInt(bps), 10_000n));

/** One sale, what is done to it, and what must be true of its commissions after each step. */
class Ledger {
  readonly shop: Shop;
  readonly partners: Json[];
  rule: Json;
  net: boolean;
  sale: Json;
  /** The rate that each partner's commission of the sale copied; null where nothing is earned. */
  readonly rates = new Map<string, Rate | null>();
  /** Partners whose commission of the sale was deleted by hand. */
  readonly removed = new Set<string>();
  /** By partner: the edit that holds instead of the rate. */
  readonly edits = new Map<string, Edit>();
  /** Corrections that were edited or cancelled by hand: what each came to by itself, and what it comes to now. */
  readonly decided = new Map<string, { partner_id: string; before: number; now: number }>();
  deleted = false;
  readonly told = new Map<string, number>();

  constructor(shop: Shop, partners: Json[], rule: Json, sale: Json, net: boolean) {
    this.shop = shop;
    this.partners = partners;
    this.rule = rule;
    this.sale = sale;
    this.net = net;
    this.#earn(sale, sale.partner_id, this.#rateNow());
  }

  /** By the rules as they are now: what comes to nothing copies no rate. */
  #earn(sale: Json, partner_id: string, by: Rate): void {
    this.rates.set(partner_id, owed(sale, by) > 0n ? by : null);
  }

  /** Returns whether the sale's partner has earned nothing by it so far: cancelled commissions count, those that went with the sale do not. */
  async #isNewTo(partner_id: string): Promise<boolean> {
    const earned = await this.shop.list('commissions', `sale_id=${this.sale.id}&partner_id=${partner_id}&kind=sale`);
    return earned.length === 0 && !this.removed.has(partner_id) && !this.edits.has(partner_id);
  }

  #rateNow(): Rate {
    const { rate_type, rate_value, max_commission_minor } = this.rule;
    return { rate_type, rate_value, max_commission_minor, net: this.net };
  }

  async #live(): Promise<Json[]> {
    return this.shop.commissionsOf(this.sale);
  }

  async #one(of: (one: Json) => boolean, at: number): Promise<Json | undefined> {
    const some = (await this.#live()).filter((one) => one.partner_id === this.sale.partner_id && of(one));
    return some[at % Math.max(1, some.length)];
  }

  async take(step: Step): Promise<void> {
    const { merchant } = this.shop;
    const path = `/v1/sales/${this.sale.id}`;
    switch (step.do) {
      case 'refund':
      case 'refund_rest': {
        const left = this.sale.amount_minor - this.sale.refunded_minor;
        if (left === 0) {
          const code = this.sale.amount_minor === 0 ? 'refund_exceeds_sale' : 'sale_already_refunded';
          return expect(merchant.request('POST', `${path}/refund`, {}), code);
        }
        if (left < most)
          await expect(merchant.request('POST', `${path}/refund`, { amount_minor: left + 1 }), 'refund_exceeds_sale');
        const amount_minor = step.do === 'refund' ? Math.max(1, part(left, step.share)) : undefined;
        const after = await this.shop.refund(this.sale, amount_minor === undefined ? {} : { amount_minor });
        check(after.refunded_minor === this.sale.refunded_minor + (amount_minor ?? left), 'refunds add up');
        return this.#settled(after);
      }
      case 'correct': {
        const fields = {
          amount_minor: step.amount,
          tax_minor: part(step.amount, step.tax),
          discount_minor: part(step.amount, step.discount),
        };
        if (fields.tax_minor + fields.discount_minor > step.amount)
          return expect(merchant.request('PATCH', path, fields), 'invalid_parameter');
        const before = this.sale;
        if (step.amount < before.refunded_minor)
          return expect(merchant.request('PATCH', path, fields), 'invalid_parameter');
        const changed = Object.entries(fields).some(([field, value]) => before[field] !== value);
        const anew = changed && (await this.#isNewTo(before.partner_id));
        const by = anew ? this.#rateNow() : (this.rates.get(before.partner_id) ?? null);
        const edit = anew ? undefined : this.edits.get(before.partner_id);
        if (isTooLarge({ ...before, ...fields, ...(anew ? { refunded_minor: 0 } : {}) }, by, edit))
          return expect(merchant.request('PATCH', path, fields), 'invalid_parameter');
        const after = await merchant.patch(path, fields);
        if (anew) this.#earn(after, before.partner_id, by as Rate);
        return changed ? this.#settled(after) : undefined;
      }
      case 'annotate':
        await merchant.patch(path, { metadata: { seen: true } });
        return;
      case 'mature':
        return this.#mature();
      case 'pay':
      case 'lock': {
        const may = step.do === 'pay' ? ({ status }: Json) => status !== 'paid' : isOpen;
        const one = await this.#one((some) => may(some) && some.status !== 'on_hold', step.nth);
        if (one) await this.shop[step.do](one);
        return;
      }
      case 'unlock': {
        if ((await this.#disputes('open')).length > 0) return;
        const one = await this.#one((locked) => locked.status === 'due' && locked.payout_id !== null, step.nth);
        if (one) await this.shop.lock(one, false);
        return;
      }
      case 'approve': {
        const one = await this.#one(({ status }) => status === 'pending', step.nth);
        if (one) await merchant.post(`/v1/commissions/${one.id}/approve`);
        return;
      }
      case 'reject':
      case 'void':
      case 'remove': {
        const one = await this.#one(isOpen, step.nth);
        if (!one) return;
        const others = (await this.#live()).filter((each) => each.partner_id === one.partner_id && isOpen(each));
        if (step.do === 'remove') await merchant.delete(`/v1/commissions/${one.id}`);
        else await merchant.post(`/v1/commissions/${one.id}/${step.do}`);
        if (one.kind !== 'sale') return this.#decide(one, 0);
        // The corrections of a commission go with it.
        for (const { id } of others) this.decided.delete(id);
        this.rates.set(one.partner_id, null);
        this.edits.delete(one.partner_id);
        if (step.do === 'remove') this.removed.add(one.partner_id);
        return;
      }
      case 'edit': {
        const one = await this.#one(isOpen, step.nth);
        if (!one) return;
        const amount_minor = one.kind === 'clawback' ? -1 - step.amount : step.amount;
        const edited = { ...one, amount_minor };
        const mine = (await this.#live()).filter(({ partner_id }) => partner_id === one.partner_id);
        const sum = total(mine.map((each) => (each.id === one.id ? edited : each)));
        const request = merchant.request('PATCH', `/v1/commissions/${one.id}`, { amount_minor });
        if (one.kind === 'sale' && this.sale.refunded_minor === this.sale.amount_minor)
          return expect(request, 'invalid_state_transition');
        if (one.kind === 'sale' && (sum > BigInt(most) || -sum > BigInt(most)))
          return expect(request, 'invalid_parameter');
        check((await request).status === 200, 'it is edited');
        if (one.kind !== 'sale') return this.#decide(one, amount_minor);
        const by = this.rates.get(one.partner_id) as Rate;
        this.edits.set(one.partner_id, { total: sum, left: leftOf(this.sale, by) });
        return;
      }
      case 'hold': {
        const one = await this.#one(isPayable, step.nth);
        if (one) await merchant.post(`/v1/commissions/${one.id}/hold`);
        return;
      }
      case 'release': {
        const one = await this.#one(({ status }) => status === 'on_hold', step.nth);
        if (!one) return;
        const request = merchant.request('POST', `/v1/commissions/${one.id}/release`);
        if (one.hold_reason === 'dispute') return expect(request, 'invalid_state_transition');
        const { body } = await request;
        const was = one.approved_at === null ? 'pending' : 'approved';
        check(body.status === (one.mature_at <= new Date().toISOString() ? 'due' : was), 'it is where it would be');
        return;
      }
      case 'reverse': {
        const standing = (await this.shop.list('refunds', `sale_id=${this.sale.id}`)).filter(
          ({ reversed_at }) => reversed_at === null,
        );
        const one = standing[step.nth % Math.max(1, standing.length)];
        return one && this.#lessRefunded(`/v1/refunds/${one.id}/reverse`, {}, one.amount_minor);
      }
      case 'dispute': {
        const amount_minor = Math.max(1, part(this.sale.amount_minor, step.share));
        const request = merchant.request('POST', '/v1/disputes', { sale_id: this.sale.id, amount_minor });
        if (this.sale.amount_minor === 0) return expect(request, 'invalid_parameter');
        check((await request).status === 201, 'it is disputed');
        return;
      }
      case 'close': {
        const some = await this.#disputes('open', 'lost');
        const one = some[step.nth % Math.max(1, some.length)];
        if (!one) return;
        const path = `/v1/disputes/${one.id}/close`;
        if (one.status === step.outcome)
          return expect(merchant.request('POST', path, { outcome: 'lost' }), 'invalid_state_transition');
        if (step.outcome === 'won') {
          const refund = one.refund_id && (await merchant.get(`/v1/refunds/${one.refund_id}`));
          return this.#lessRefunded(path, { outcome: 'won' }, refund?.reversed_at === null ? refund.amount_minor : 0);
        }
        const left = this.sale.amount_minor - this.sale.refunded_minor;
        await merchant.post(path, { outcome: 'lost' });
        const after = await merchant.get(`/v1/sales/${this.sale.id}`);
        check(after.refunded_minor === this.sale.refunded_minor + Math.min(left, one.amount_minor), 'it is refunded');
        return this.#settled(after);
      }
      case 'edit_rule':
        this.rule = await merchant.patch(`/v1/rules/${this.rule.id}`, step.rate);
        return;
      case 'switch_base':
        this.net = !this.net;
        await merchant.patch(`/v1/programs/${this.shop.program.id}`, { commission_on_net_revenue: this.net });
        return;
      case 'reassign':
        return this.#reassign(path);
      case 'delete':
        for (const { id } of (await this.#live()).filter(isOpen)) this.decided.delete(id);
        await merchant.delete(path);
        this.deleted = true;
    }
  }

  async #disputes(...statuses: string[]): Promise<Json[]> {
    return (await this.shop.list('disputes', `sale_id=${this.sale.id}`)).filter(({ status }) =>
      statuses.includes(status),
    );
  }

  /** Reverses so much of a refund, unless its commission would be too large. */
  async #lessRefunded(path: string, body: object, amount_minor: number): Promise<void> {
    const { partner_id } = this.sale;
    const refunded_minor = this.sale.refunded_minor - amount_minor;
    const request = this.shop.merchant.request('POST', path, body);
    if (isTooLarge({ ...this.sale, refunded_minor }, this.rates.get(partner_id) ?? null, this.edits.get(partner_id)))
      return expect(request, 'invalid_parameter');
    check((await request).status === 200, 'less is refunded');
    const after = await this.shop.merchant.get(`/v1/sales/${this.sale.id}`);
    check(after.refunded_minor === refunded_minor, 'the sale says so');
    this.#settled(after);
  }

  /** A decision takes along what the adjustments before counted on of an earlier one about the same correction. */
  async #decide({ id, partner_id, amount_minor }: Json, now: number): Promise<void> {
    const known = this.decided.get(id)?.before ?? amount_minor;
    this.decided.delete(id);
    const { less, more } = this.#decisions(partner_id);
    const should = owed(this.sale, this.rates.get(partner_id) ?? null, this.edits.get(partner_id));
    const come = total((await this.#live()).filter((one) => one.partner_id === partner_id));
    const [above, below] = [come - (should + more), come - (should + less)];
    let before = known;
    if (above > 0n) before = Math.min(known, now - Number(above));
    if (below < 0n) before = Math.max(known, now - Number(below));
    this.decided.set(id, { partner_id, before, now });
  }

  /** Returns how much less, and how much more, people decided that a partner may have of the sale. */
  #decisions(partner_id: string): { less: bigint; more: bigint } {
    const changes = [...this.decided.values()]
      .filter((one) => one.partner_id === partner_id)
      .map(({ before, now }) => BigInt(now) - BigInt(before));
    const sumOf = (some: bigint[]) => some.reduce((sum, one) => sum + one, 0n);
    return { less: sumOf(changes.filter((one) => one < 0n)), more: sumOf(changes.filter((one) => one > 0n)) };
  }

  async #mature(): Promise<void> {
    const waiting = (await this.#live()).filter(({ status }) => status === 'pending' || status === 'approved');
    if (waiting.length === 0) return;
    await rail.tick('program/mature_commissions', new Date(Date.now() + 400 * 86_400_000 + ticks++).toISOString());
    await eventually(
      async () => (await this.#live()).every(({ status }) => ['due', 'on_hold', 'paid'].includes(status)),
      'the commissions to mature',
    );
  }

  async #reassign(path: string): Promise<void> {
    const other = this.partners.find(({ id }) => id !== this.sale.partner_id) as Json;
    const live = await this.#live();
    // A decision by hand holds when the sale comes back.
    const kept = !(await this.#isNewTo(other.id));
    const by = kept ? (this.rates.get(other.id) ?? null) : this.#rateNow();
    const request = () => this.shop.merchant.request('PATCH', path, { partner_id: other.id });
    // The amount of a rate before refunds must be a safe integer too: the commission is made with it.
    const made = kept ? this.sale : { ...this.sale, refunded_minor: 0 };
    if (isTooLarge(made, by, kept ? this.edits.get(other.id) : undefined))
      return expect(request(), 'invalid_parameter');
    const { status, body } = await request();
    check(status === 200, `it is reassigned, not answered ${JSON.stringify(body)}`);
    // An open commission is deleted, and its rate with it, unless it was edited.
    for (const { id, partner_id, kind } of live.filter(isOpen)) {
      if (partner_id === other.id) continue;
      this.decided.delete(id);
      if (kind === 'sale' && !this.edits.has(partner_id)) this.rates.set(partner_id, null);
    }
    if (!kept) this.#earn(body, other.id, by as Rate);
    this.#settled(body);
  }

  #settled(after: Json): void {
    this.sale = after;
  }

  async verify(): Promise<void> {
    const live = await this.#live();
    const mine = live.filter(({ partner_id }) => partner_id === this.sale.partner_id);
    const { partner_id } = this.sale;
    const should = this.deleted ? 0n : owed(this.sale, this.rates.get(partner_id) ?? null, this.edits.get(partner_id));
    this.#compare(mine, partner_id, should);
    for (const { id } of this.partners) {
      if (id !== partner_id)
        this.#compare(
          live.filter((one) => one.partner_id === id),
          id,
          0n,
        );
    }
    for (const { kind, amount_minor } of live)
      check(kind === 'clawback' ? amount_minor < 0 : amount_minor >= 0, `${kind} ${amount_minor}`);
    if (!this.deleted) await this.#compareWithDisputes(live);
    await this.#compareWithEvents(live);
  }

  async #compareWithDisputes(live: Json[]): Promise<void> {
    const is_disputed = (await this.#disputes('open')).length > 0;
    for (const one of live) {
      check(!is_disputed || !isPayable(one), `${one.id} is ${one.status} while its sale is disputed`);
      check(is_disputed || one.hold_reason !== 'dispute', `${one.id} is on hold without a dispute`);
    }
  }

  #compare(some: Json[], partner_id: string, should: bigint): void {
    const { less, more } = this.#decisions(partner_id);
    const come = total(some);
    const holds = should + less <= come && come <= should + more;
    check(holds, `they come to ${come}, and should come to ${should}, or ${less} less, or ${more} more`);
  }

  /** Who only hears the events arrives at the same amounts. */
  async #compareWithEvents(live: Json[]): Promise<void> {
    for (const { type, data } of await this.shop.events()) {
      if (type === 'commission.created' || type === 'commission.updated')
        this.told.set(data.commission_id, data.amount_minor);
      if (type === 'commission.updated' && data.status === 'rejected') this.told.delete(data.commission_id);
      if (type === 'commission.voided' || type === 'commission.deleted') this.told.delete(data.commission_id);
    }
    const heard = [...this.told].map(([id, amount_minor]) => `${id} ${amount_minor}`).sort();
    const kept = live.map(({ id, amount_minor }) => `${id} ${amount_minor}`).sort();
    check(heard.join() === kept.join(), `events tell of ${heard.join()}, and there are ${kept.join()}`);
  }
}

let ticks = 0;

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

async function expect(answer: Promise<{ status: number; body: Json }>, code: string): Promise<void> {
  const { status, body } = await answer;
  check(status < 500 && body.error?.code === code, `${code} was expected, and ${status} ${JSON.stringify(body)} came`);
}

t.test('whatever is done to a sale, its commissions are the copied rate of what is left of its base', async (t) => {
  const beginning = fc.record({
    currency: fc.constantFrom('USD', 'JPY', 'KWD'),
    net: fc.boolean(),
    rate,
    amount,
    tax: share,
    steps: fc.array(step, { minLength: 3, maxLength: 14 }),
  });
  let runs = 0;
  let steps = 0;
  const property = fc.asyncProperty(beginning, async (from) => {
    const shop = await openShop(rail, { currency: from.currency, commission_on_net_revenue: from.net });
    const [rule, ...partners] = await Promise.all([shop.rule(from.rate), shop.partner(), shop.partner()]);
    const { status, body: sale } = await shop.merchant.request('POST', '/v1/sales', {
      program_id: shop.program.id,
      partner_id: partners[0].id,
      amount_minor: from.amount,
      tax_minor: part(from.amount, from.tax),
      currency: from.currency,
      external_charge_id: 'charge',
    });
    if (status !== 201) {
      check(sale.error?.code === 'invalid_parameter', JSON.stringify(sale));
      check(from.rate.rate_value > 10_000 && from.amount > most / 2.5, 'the amount is not too large');
      check(from.rate.max_commission_minor === null, 'what the cap cuts off may be too large');
      return;
    }
    const ledger = new Ledger(shop, partners, rule, sale, from.net);
    await ledger.verify();
    for (const step of from.steps) {
      await ledger.take(step);
      await ledger.verify();
      steps++;
      if (ledger.deleted) break;
    }
    runs++;
  });
  await fc.assert(property, {
    numRuns: effort.sales,
    ...(process.env.MONEY_SEED ? { seed: Number(process.env.MONEY_SEED) } : seeded),
    endOnFailure: process.env.LOG_LEVEL === undefined,
  });
  t.comment(`${runs} sales, ${steps} steps`);
  t.ok(steps > 20);
});
