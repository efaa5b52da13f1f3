import fc from 'fast-check';
import t from 'tap';
import {
  adjustment,
  type Counted,
  measuredFrom,
  owedOf,
  type Step,
  takingBack,
} from '../../../src/program/commissions/adjustment.ts';
import { type CopiedRate, commissionAmount, commissionBase } from '../../../src/program/commissions/commission_rate.ts';
import { baseLeft, remainingCommission } from '../../../src/program/commissions/remaining_commission.ts';
import { commissionFor } from '../../../src/program/commissions/rule_choice.ts';
import { netAmount } from '../../../src/program/sales/net_amount.ts';

const runs = { numRuns: 10_000 };
const max = Number.MAX_SAFE_INTEGER;

const one = (over: Partial<Counted> = {}): Counted => ({
  id: 'com_a',
  kind: 'sale',
  amount_minor: 2_000,
  open: true,
  ...over,
});
const paid = one({ open: false });
const clawback = one({ id: 'com_b', kind: 'clawback', amount_minor: -500 });

t.test('an adjustment changes what is open, and carries the difference of what is not', async (t) => {
  const cases: [name: string, counted: Counted[], target: number, voided: string | null, steps: Step[]][] = [
    ['nothing was earned', [], 0, null, []],
    ['it is as it should be', [one()], 2_000, null, []],
    ['open shrinks', [one()], 1_500, null, [{ do: 'change', id: 'com_a', amount_minor: 1_500 }]],
    ['open grows', [one()], 2_500, null, [{ do: 'change', id: 'com_a', amount_minor: 2_500 }]],
    ['open comes to nothing', [one()], 0, null, [{ do: 'void', id: 'com_a' }]],
    ['paid is clawed back', [paid], 1_500, null, [{ do: 'carry', of: 'com_a', amount_minor: -500 }]],
    ['paid is topped up', [paid], 2_500, null, [{ do: 'carry', of: 'com_a', amount_minor: 500 }]],
    ['what was clawed back counts', [paid, clawback], 0, null, [{ do: 'carry', of: 'com_a', amount_minor: -1_500 }]],
    [
      'no commission but a clawback is below 0',
      [one(), one({ id: 'com_b', kind: 'bonus', amount_minor: 300, open: false })],
      100,
      null,
      [
        { do: 'void', id: 'com_a' },
        { do: 'carry', of: 'com_a', amount_minor: -200 },
      ],
    ],
    ['what came to nothing comes back', [], 700, 'com_v', [{ do: 'earn_again', of: 'com_v', amount_minor: 700 }]],
    ['beside what corrected it', [clawback], 700, 'com_v', [{ do: 'earn_again', of: 'com_v', amount_minor: 1_200 }]],
    [
      'a bonus beside nothing goes back',
      [one({ kind: 'bonus' })],
      0,
      'com_v',
      [{ do: 'carry', of: 'com_v', amount_minor: -2_000 }],
    ],
    [
      'what corrected one that was cancelled by hand goes with it',
      [clawback],
      0,
      null,
      [{ do: 'carry', of: 'com_b', amount_minor: 500 }],
    ],
  ];
  for (const [name, counted, target, voided, steps] of cases)
    t.same(adjustment(counted, owedOf(target), voided), steps, name);
});

t.test('what a person decided about a correction is not made again', async (t) => {
  const half = { do: 'carry', of: 'com_a' } as const;
  const cases: [name: string, counted: Counted[], target: number, by_hand: number[], steps: Step[]][] = [
    ['a clawback that was forgiven', [paid], 1_500, [500], []],
    ['the next one asks for the rest alone', [paid], 1_000, [500], [{ ...half, amount_minor: -500 }]],
    ['and for no more when all is refunded', [paid], 0, [500], [{ ...half, amount_minor: -1_500 }]],
    ['what was forgiven is no bonus when the sale grows again', [paid], 2_000, [500], []],
    ['nor beyond what it came to', [paid], 3_000, [500], [{ ...half, amount_minor: 1_000 }]],
    ['a bonus that was cancelled', [paid], 2_500, [-500], []],
    ['the next one is the rest alone', [paid], 3_000, [-500], [{ ...half, amount_minor: 500 }]],
    ['what was withheld is not taken back too', [paid], 2_000, [-500], []],
    ['several decisions', [paid], 1_500, [300, 200, -100], []],
    [
      'open shrinks to what was left to it',
      [one()],
      500,
      [1_000],
      [{ do: 'change', id: 'com_a', amount_minor: 1_500 }],
    ],
  ];
  for (const [name, counted, target, by_hand, steps] of cases)
    t.same(adjustment(counted, owedOf(target, by_hand), null), steps, name);
  t.same(takingBack([paid], owedOf(0, [500])), [{ ...half, amount_minor: -1_500 }], 'nor when the sale is taken back');
});

t.test('a correction is measured from what it came to by itself, and from what was counted on since', async (t) => {
  const cases: [name: string, computed: number, before: number, after: number, total: number, from: number][] = [
    ['a clawback that is forgiven', -500, -500, 0, 1_500, -500],
    ['one that withholds more', -500, -500, -700, 1_500, -500],
    ['which is forgiven at once', -500, -700, 0, 1_300, -500],
    ['which is forgiven once a refund has counted on it', -500, -700, 0, 1_500, -700],
    ['or in part', -500, -700, -600, 1_500, -700],
    ['one that leaves more, and takes it back', -500, -300, -500, 1_500, -300],
  ];
  for (const [name, computed, before, after, total, from] of cases)
    t.equal(measuredFrom(computed, { before, after }, BigInt(total), owedOf(1_500)), from, name);
});

t.test('taking back deletes what is open and claws back what is not', async (t) => {
  t.same(takingBack([]), []);
  t.same(takingBack([one()]), [{ do: 'delete', id: 'com_a' }]);
  t.same(takingBack([paid]), [{ do: 'carry', of: 'com_a', amount_minor: -2_000 }]);
  t.same(takingBack([paid, clawback]), [
    { do: 'delete', id: 'com_b' },
    { do: 'carry', of: 'com_a', amount_minor: -2_000 },
  ]);
  t.same(takingBack([paid, { ...clawback, open: false, amount_minor: -2_000 }]), [], 'it was taken back before');
});

t.test('a difference beyond 2^53 - 1 is carried by several', async (t) => {
  const large = [
    one({ amount_minor: max, open: false }),
    one({ id: 'com_b', kind: 'bonus', amount_minor: 7, open: false }),
  ];
  const carry = { do: 'carry', of: 'com_a' } as const;
  t.same(takingBack(large), [
    { ...carry, amount_minor: -max },
    { ...carry, amount_minor: -7 },
  ]);
  const owing = [one({ id: 'com_b', kind: 'clawback', amount_minor: -max, open: false })];
  t.same(adjustment([one(), ...owing], owedOf(5), null), [
    { do: 'change', id: 'com_a', amount_minor: max },
    { ...carry, amount_minor: 5 },
  ]);
  t.same(adjustment(owing, owedOf(5), 'com_a'), [
    { do: 'earn_again', of: 'com_a', amount_minor: max },
    { ...carry, amount_minor: 5 },
  ]);
});

/** `value × numerator / denominator`, half away from zero, on integers of any size. */
const scaled = (value: bigint, numerator: bigint, denominator: bigint): bigint =>
  (2n * value * numerator + denominator) / (2n * denominator);

interface Sold {
  amount_minor: number;
  tax_minor: number;
  refunded_minor: number;
}

/** Computes the amount that the decisions set for a sale, in other words than the service's. */
function owed({ amount_minor, tax_minor, refunded_minor }: Sold, rate: CopiedRate, net: boolean): bigint {
  const [amount, refunded] = [BigInt(amount_minor), BigInt(refunded_minor)];
  if (refunded === amount) return 0n;
  const base = net ? amount - (tax_minor < amount_minor ? BigInt(tax_minor) : amount) : amount;
  const left = refunded === 0n ? base : scaled(base, amount - refunded, amount);
  const full = rate.rate_type === 'fixed' ? BigInt(rate.rate_value) : scaled(left, BigInt(rate.rate_value), 10_000n);
  const cap = rate.max_commission_minor;
  return cap !== null && full > BigInt(cap) ? BigInt(cap) : full;
}

/** A sale and its commissions, kept in memory as the service keeps them in Postgres. */
class Book {
  sale: Sold;
  readonly net: boolean;
  readonly copied: CopiedRate;
  counted: Counted[] = [];
  voided: string | null = null;
  #made = 0;

  constructor(sale: Sold, copied: CopiedRate, net: boolean) {
    this.sale = sale;
    this.copied = copied;
    this.net = net;
    const amount_minor = commissionAmount(copied, this.#base());
    if (amount_minor > 0 && sale.amount_minor > 0) this.#add('sale', amount_minor, true);
    else this.voided = 'com_0';
  }

  #base(): number {
    const net_amount_minor = netAmount({ ...this.sale, shipping_minor: 0, fee_minor: 0, discount_minor: 0 });
    return commissionBase({ amount_minor: this.sale.amount_minor, net_amount_minor }, this.net);
  }

  #add(kind: Counted['kind'], amount_minor: number, open: boolean): void {
    this.#made++;
    this.counted.push({ id: `com_${this.#made}`, kind, amount_minor, open });
    this.counted.sort((a, b) => Number(a.kind !== 'sale') - Number(b.kind !== 'sale'));
  }

  /** As a refund or a correction does it. */
  adjust(sale: Sold): void {
    this.sale = sale;
    const { amount_minor, refunded_minor } = sale;
    const left = { base_minor: this.#base(), amount_minor, refunded_minor };
    const earned = this.counted.some(({ kind }) => kind === 'sale');
    const voided = earned ? null : this.voided;
    for (const step of adjustment(this.counted, owedOf(remainingCommission(this.copied, left)), voided))
      this.take(step);
  }

  take(step: Step): void {
    const named = (id: string) => this.counted.find((counted) => counted.id === id) as Counted;
    if (step.do === 'change') named(step.id).amount_minor = step.amount_minor;
    if (step.do === 'void') this.voided = step.id;
    if (step.do === 'void' || step.do === 'delete') this.counted = this.counted.filter(({ id }) => id !== step.id);
    if (step.do === 'carry') this.#add(step.amount_minor < 0 ? 'clawback' : 'bonus', step.amount_minor, true);
    if (step.do === 'earn_again') this.#add('sale', step.amount_minor, true);
  }

  total = (): bigint => this.counted.reduce((sum, { amount_minor }) => sum + BigInt(amount_minor), 0n);
}

const share = fc.integer({ min: 0, max: 10_000 });
const part = (of: number, bps: number): number => Number(scaled(BigInt(of), BigInt(bps), 10_000n));
const amount = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 200_000 }) },
  { weight: 2, arbitrary: fc.maxSafeNat() },
  { weight: 1, arbitrary: fc.constantFrom(0, 1, 2, 3, max) },
);
const rate: fc.Arbitrary<CopiedRate> = fc.oneof(
  fc.record({
    rate_type: fc.constant('percent' as const),
    rate_value: fc.oneof(fc.constantFrom(1, 333, 2_000, 5_050, 10_000), share),
    max_commission_minor: fc.option(fc.integer({ min: 1, max: 50_000 }), { freq: 3 }),
  }),
  fc.record({
    rate_type: fc.constant('fixed' as const),
    rate_value: fc.integer({ min: 1, max: 100_000 }),
    max_commission_minor: fc.option(fc.integer({ min: 1, max: 50_000 }), { freq: 3 }),
  }),
);
const nth = fc.nat(9);
const change = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('refund' as const), share }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refund_rest' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('correct' as const), amount, share }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('settle_payout' as const, 'lock' as const), nth }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('unlock' as const), nth }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('mature' as const) }) },
);
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

/** @returns whether the commissions were adjusted by it */
function happen(book: Book, paid: Set<string>, change: Change): boolean {
  const { sale, counted } = book;
  const left = sale.amount_minor - sale.refunded_minor;
  if (change.do === 'refund' || change.do === 'refund_rest') {
    const amount = change.do === 'refund' ? part(left, change.share) : left;
    if (amount > 0) book.adjust({ ...sale, refunded_minor: sale.refunded_minor + amount });
    return amount > 0;
  }
  if (change.do === 'correct') {
    if (change.amount < sale.refunded_minor) return false;
    book.adjust({ ...sale, amount_minor: change.amount, tax_minor: part(change.amount, change.share) });
    return true;
  }
  // To mature makes a commission payable and changes neither its amount nor whether it is open.
  if (change.do === 'mature') return false;
  const unpaid = counted.filter(({ id }) => !paid.has(id));
  const chosen = unpaid[change.nth % Math.max(1, unpaid.length)];
  if (chosen) chosen.open = change.do === 'unlock';
  if (chosen && change.do === 'settle_payout') paid.add(chosen.id);
  return false;
}

t.test('the refund invariant holds after any sequence of refunds, corrections, maturations and payouts', async (t) => {
  let adjusted = 0;
  let carried = 0;
  const life = fc.record({
    amount,
    tax: share,
    rate,
    net: fc.boolean(),
    changes: fc.array(change, { minLength: 4, maxLength: 20, size: 'max' }),
  });
  fc.assert(
    fc.property(life, ({ amount, tax, rate, net, changes }) => {
      const book = new Book({ amount_minor: amount, tax_minor: part(amount, tax), refunded_minor: 0 }, rate, net);
      const paid = new Set<string>();
      for (const change of changes) {
        const kept = new Map(
          book.counted.filter(({ open }) => !open).map(({ id, amount_minor }) => [id, amount_minor]),
        );
        if (!happen(book, paid, change)) continue;
        adjusted++;
        if (book.total() !== owed(book.sale, rate, net)) return false;
        const { amount_minor, refunded_minor } = book.sale;
        if (refunded_minor > 0 && refunded_minor === amount_minor && book.total() !== 0n) return false;
        if (book.counted.some(({ kind, amount_minor }) => (kind === 'clawback') !== amount_minor < 0)) return false;
        if (book.counted.filter(({ kind }) => kind === 'sale').length > 1) return false;
        for (const [id, amount_minor] of kept) {
          if (book.counted.find((one) => one.id === id)?.amount_minor !== amount_minor) return false;
        }
        carried += book.counted.filter(({ kind }) => kind === 'clawback').length;
      }
      return true;
    }),
    runs,
  );
  t.comment(`${adjusted} refunds and corrections, ${carried} clawbacks beside them`);
  t.ok(adjusted > 10_000 && carried > 5_000);
});

t.test('a sale that is taken back has earned nothing, whatever was paid of it', async () => {
  const life = fc.record({
    amount,
    tax: share,
    rate,
    net: fc.boolean(),
    changes: fc.array(change, { minLength: 4, maxLength: 20, size: 'max' }),
  });
  fc.assert(
    fc.property(life, ({ amount, tax, rate, net, changes }) => {
      const book = new Book({ amount_minor: amount, tax_minor: part(amount, tax), refunded_minor: 0 }, rate, net);
      const paid = new Set<string>();
      for (const change of changes) happen(book, paid, change);
      for (const step of takingBack(book.counted)) book.take(step);
      return book.total() === 0n;
    }),
    runs,
  );
});

t.test('the copied rate survives every edit of the rule', async () => {
  const edits = fc.array(fc.record({ edited: rate, share }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e9 }), rate, edits, (amount_minor, first, edits) => {
      const rule = { ...anyRule, ...first };
      const made = commissionFor([rule], saleOf(amount_minor, 'USD'));
      if (made.outcome === 'none') return true;
      let refunded_minor = 0;
      return edits.every(({ edited, share }) => {
        Object.assign(rule, edited);
        refunded_minor += part(amount_minor - refunded_minor, share);
        const left = { base_minor: made.base_amount_minor, amount_minor, refunded_minor };
        return BigInt(remainingCommission(made, left)) === owed({ ...left, tax_minor: 0 }, first, false);
      });
    }),
    runs,
  );
});

t.test('JPY, KWD and USD pay the same minor units for the same minor units', async () => {
  fc.assert(
    fc.property(amount, rate, share, (amount_minor, copied, share) => {
      const rule = { ...anyRule, ...copied };
      const refunded_minor = part(amount_minor, share);
      const paid = ['JPY', 'KWD', 'USD'].map((currency) => commissionFor([rule], saleOf(amount_minor, currency)));
      const left = remainingCommission(copied, { base_minor: amount_minor, amount_minor, refunded_minor });
      const whole = owed({ amount_minor, tax_minor: 0, refunded_minor: 0 }, copied, false);
      const rest = owed({ amount_minor, tax_minor: 0, refunded_minor }, copied, false);
      return (
        BigInt(left) === rest &&
        paid.every((made) => (made.outcome === 'none' ? whole === 0n : BigInt(made.amount_minor) === whole))
      );
    }),
    runs,
  );
});

t.test(
  'every amount up to 2^53 - 1 is paid exactly, refused where it would not be, and never refused for what a cap cuts off',
  async (t) => {
    const capped = { rate_type: 'percent', rate_value: 25_000, max_commission_minor: 50_000 } as const;
    t.equal(commissionAmount(capped, max), 50_000);
    t.equal(commissionAmount({ ...capped, max_commission_minor: max }, max), max);
    t.throws(() => commissionAmount({ ...capped, max_commission_minor: null }, max), RangeError);
    const edge = fc.oneof(fc.maxSafeNat(), fc.integer({ min: max - 1_000, max }));
    const bps = fc.oneof(share, fc.integer({ min: 0, max: 100_000 }), fc.constant(max));
    fc.assert(
      fc.property(edge, bps, fc.option(edge), share, (amount_minor, rate_value, max_commission_minor, share) => {
        const copied = { rate_type: 'percent', rate_value, max_commission_minor } as const;
        const sold = { amount_minor, tax_minor: 0, refunded_minor: part(amount_minor, share) };
        const exact = owed(sold, copied, false);
        const left = { base_minor: amount_minor, ...sold };
        if (exact <= BigInt(max)) {
          return (
            BigInt(remainingCommission(copied, left)) === exact && baseLeft(left) === amount_minor - sold.refunded_minor
          );
        }
        try {
          remainingCommission(copied, left);
          return false;
        } catch (error) {
          return error instanceof RangeError;
        }
      }),
      runs,
    );
  },
);

const anyRule = {
  id: 'flw_a',
  name: 'A rule',
  priority: 0,
  status: 'active' as const,
  applies_to: 'all' as const,
  partner_ids: [],
  group_ids: [],
  tag_ids: [],
  link_ids: [],
  product_ids: [],
  duration_months: null,
  max_payments: null,
  min_sale_minor: null,
  tiers: [],
  tier_metric: null,
  starts_at: null,
  ends_at: null,
  created_at: '2026-01-01T00:00:00.000Z',
};

const saleOf = (amount_minor: number, currency: string) => ({
  occurred_at: '2026-06-15T12:00:00.000Z',
  amount_minor,
  base_minor: amount_minor,
  currency,
  program_currency: currency,
  is_first_sale: true,
  partner_id: 'part_a',
  link_id: null,
  group_id: null,
  tag_ids: [],
  product_id: null,
  rate_override: null,
  first_sale_at: null,
  payments_by_rule: {},
  month_sales_count: 0,
  month_revenue_minor: 0,
});
