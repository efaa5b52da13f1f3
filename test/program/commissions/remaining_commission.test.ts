import fc from 'fast-check';
import t from 'tap';
import { type CopiedRate, commissionAmount } from '../../../src/program/commissions/commission_rate.ts';
import {
  baseLeft,
  type RefundedSale,
  remainingCommission,
  remainingEdited,
} from '../../../src/program/commissions/remaining_commission.ts';

const runs = { numRuns: 10_000 };

/** Floor of (2|n| + d) / 2d with the sign put back: another way to half away from zero than the code's remainder. */
function roundedRatio(numerator: bigint, denominator: bigint): bigint {
  const size = numerator < 0n ? -numerator : numerator;
  const rounded = (2n * size + denominator) / (2n * denominator);
  return numerator < 0n ? -rounded : rounded;
}

t.test('remainingCommission is the copied rate on what is left of the base', async (t) => {
  const percent = { rate_type: 'percent', rate_value: 2000, max_commission_minor: null } as const;
  const fixed = { rate_type: 'fixed', rate_value: 500, max_commission_minor: null } as const;
  const cases: [expected: number, copied: CopiedRate, base: number, amount: number, refunded: number][] = [
    [2000, percent, 10_000, 10_000, 0],
    [1500, percent, 10_000, 10_000, 2500],
    [1200, percent, 8000, 10_000, 2500],
    [0, percent, 10_000, 10_000, 10_000],
    [0, percent, 8000, 10_000, 10_000],
    [1, { ...percent, rate_value: 5000 }, 1, 3, 1],
    [0, { ...percent, rate_value: 5000 }, 1, 3, 2],
    [500, fixed, 10_000, 10_000, 0],
    [500, fixed, 10_000, 10_000, 9999],
    [0, fixed, 10_000, 10_000, 10_000],
    [0, fixed, 0, 0, 0],
    [500, fixed, 0, 10_000, 5000],
    [1500, { ...percent, max_commission_minor: 1500 }, 10_000, 10_000, 2500],
    [1000, { ...percent, max_commission_minor: 1500 }, 10_000, 10_000, 5000],
    [300, { ...fixed, max_commission_minor: 300 }, 10_000, 10_000, 5000],
    [0, { ...fixed, max_commission_minor: 300 }, 10_000, 10_000, 10_000],
  ];
  for (const [expected, copied, base_minor, amount_minor, refunded_minor] of cases) {
    const name = `${JSON.stringify(copied)} with ${refunded_minor} of ${amount_minor} refunded, base ${base_minor}`;
    t.equal(remainingCommission(copied, { base_minor, amount_minor, refunded_minor }), expected, name);
  }
  for (const refunded_minor of [-1, 101, 0.5]) {
    t.throws(() => remainingCommission(fixed, { base_minor: 100, amount_minor: 100, refunded_minor }), RangeError);
  }
});

t.test('remainingEdited scales the edited sum by what is left of the base', async (t) => {
  const cases: [expected: number, total: number, at: number, base: number, amount: number, refunded: number][] = [
    [1_500, 1_500, 10_000, 10_000, 10_000, 0],
    [750, 1_500, 10_000, 10_000, 10_000, 5_000],
    [3_000, 1_500, 10_000, 20_000, 20_000, 0],
    [0, 1_500, 10_000, 10_000, 10_000, 10_000],
    [1_500, 1_500, 5_000, 10_000, 10_000, 5_000],
    [1, 1, 2, 1, 1, 0],
    [0, 1, 3, 1, 1, 0],
    [-1, -1, 2, 1, 1, 0],
    [0, 0, 10_000, 20_000, 20_000, 0],
    [1_200, 1_500, 8_000, 8_000, 10_000, 2_000],
    [500, 500, 0, 0, 10_000, 5_000],
    [500, 500, 0, 10_000, 10_000, 0],
    [0, 500, 0, 0, 10_000, 10_000],
    [0, 500, 0, 0, 0, 0],
  ];
  for (const [expected, total_minor, at, base_minor, amount_minor, refunded_minor] of cases) {
    const left = { base_minor, amount_minor, refunded_minor };
    const name = `${total_minor} at ${at}, with ${refunded_minor} of ${amount_minor} refunded, base ${base_minor}`;
    t.equal(remainingEdited({ total_minor, base_minor: at }, left), expected, name);
  }
  const max = Number.MAX_SAFE_INTEGER;
  const left = { base_minor: max, amount_minor: max, refunded_minor: 0 };
  t.throws(() => remainingEdited({ total_minor: 2, base_minor: 1 }, left), RangeError);
});

const refundedSale = fc.oneof(fc.maxSafeNat(), fc.integer({ min: 0, max: 100_000 })).chain((amount_minor) => {
  const share = fc.oneof(fc.integer({ min: 0, max: amount_minor }), fc.constantFrom(0, amount_minor));
  return fc.record({ amount_minor: fc.constant(amount_minor), base_minor: share, refunded_minor: share });
});

const copiedRate = fc.record({
  rate_type: fc.constantFrom('percent' as const, 'fixed' as const),
  rate_value: fc.integer({ min: 0, max: 10_000 }),
  max_commission_minor: fc.option(fc.integer({ min: 0, max: 100_000 })),
});

t.test('baseLeft agrees with exact rationals and is 0 when all is refunded', async () => {
  fc.assert(
    fc.property(refundedSale, (it) => {
      const { base_minor, amount_minor, refunded_minor } = it;
      if (refunded_minor === 0) return baseLeft(it) === base_minor;
      const exact = roundedRatio(BigInt(base_minor) * BigInt(amount_minor - refunded_minor), BigInt(amount_minor));
      return BigInt(baseLeft(it)) === exact && (refunded_minor < amount_minor || baseLeft(it) === 0);
    }),
    { numRuns: 50_000 },
  );
});

t.test('the refund invariant holds after every refund', async () => {
  fc.assert(
    fc.property(copiedRate, refundedSale, fc.double({ min: 0, max: 1, noNaN: true }), (copied, it, more) => {
      const now = remainingCommission(copied, it);
      const created = remainingCommission(copied, { ...it, refunded_minor: 0 });
      const all = remainingCommission(copied, { ...it, refunded_minor: it.amount_minor });
      const refunded_minor = it.refunded_minor + Math.floor((it.amount_minor - it.refunded_minor) * more);
      const later = remainingCommission(copied, { ...it, refunded_minor: Math.min(refunded_minor, it.amount_minor) });
      return (
        created === (it.amount_minor === 0 ? 0 : commissionAmount(copied, it.base_minor)) &&
        all === 0 &&
        now <= created &&
        later <= now &&
        later >= 0 &&
        now === remainingByHand(copied, it)
      );
    }),
    runs,
  );
});

function remainingByHand(copied: CopiedRate, it: RefundedSale): number {
  if (it.refunded_minor === it.amount_minor) return 0;
  const whole = BigInt(it.amount_minor);
  const left = roundedRatio(BigInt(it.base_minor) * (whole - BigInt(it.refunded_minor)), whole);
  const uncapped =
    copied.rate_type === 'fixed' ? copied.rate_value : Number(roundedRatio(left * BigInt(copied.rate_value), 10_000n));
  return Math.min(uncapped, copied.max_commission_minor ?? Number.POSITIVE_INFINITY);
}

t.test('an edited sum is scaled exactly, never grows by a refund, and is nothing when all is refunded', async () => {
  const edit = fc.record({
    total_minor: fc.integer({ min: -1e6, max: 1e6 }),
    base_minor: fc.integer({ min: 1, max: 1e6 }),
  });
  const small = fc.integer({ min: 1, max: 1_000_000 }).chain((amount_minor) => {
    const share = fc.integer({ min: 0, max: amount_minor });
    return fc.record({ amount_minor: fc.constant(amount_minor), base_minor: share, refunded_minor: share });
  });
  fc.assert(
    fc.property(edit, small, (edited, it) => {
      const now = remainingEdited(edited, it);
      if (it.refunded_minor === it.amount_minor) return now === 0;
      const exact = roundedRatio(BigInt(edited.total_minor) * BigInt(baseLeft(it)), BigInt(edited.base_minor));
      const before = remainingEdited(edited, { ...it, refunded_minor: 0 });
      return BigInt(now) === exact && Math.abs(now) <= Math.abs(before);
    }),
    runs,
  );
});
