import fc from 'fast-check';
import t from 'tap';
import { commissionAmount, commissionBase } from '../../../src/program/commissions/commission_rate.ts';
import { matureAt } from '../../../src/program/commissions/commission_state.ts';
import { type AmountParts, netAmount } from '../../../src/program/sales/net_amount.ts';

/** Returns the amount of an uncapped percent rate. */
const percentOf = (base: number, bps: number): number =>
  commissionAmount({ rate_type: 'percent', rate_value: bps, max_commission_minor: null }, base);

const runs = { numRuns: 10_000 };
const max = Number.MAX_SAFE_INTEGER;

/** Floor of (2|n| + d) / 2d with the sign put back: another way to half away from zero than the code's remainder. */
function roundedRatio(numerator: bigint, denominator: bigint): bigint {
  const size = numerator < 0n ? -numerator : numerator;
  const rounded = (2n * size + denominator) / (2n * denominator);
  return numerator < 0n ? -rounded : rounded;
}

const isSafe = (value: bigint) => value >= -BigInt(max) && value <= BigInt(max);

t.test('a percent rate rounds half away from zero', async (t) => {
  const cases: [base: number, bps: number, expected: number][] = [
    [2500, 502, 126],
    [1500, 510, 77],
    [5500, 70, 39],
    [10_000, 2000, 2000],
    [1, 5000, 1],
    [1, 4999, 0],
    [3, 5000, 2],
    [-1, 5000, -1],
    [-1, 4999, 0],
    [-2500, 502, -126],
    [-5500, 70, -39],
    [2500, -502, -126],
    [0, 2000, 0],
    [980, 3333, 327],
    [12_345, 1, 1],
    [1_234_567, 1500, 185_185],
    [max, 10_000, max],
    [max, 9999, 9_006_298_534_815_517],
    [max, 5000, 4_503_599_627_370_496],
    [max, 1, 900_719_925_474],
    [-max, 10_000, -max],
    [-max, 5000, -4_503_599_627_370_496],
    [900_719_925_474, 10_000, 900_719_925_474],
    [900_719_925_475, 10_000, 900_719_925_475],
  ];
  for (const [base, bps, expected] of cases) t.equal(percentOf(base, bps), expected, `${base} at ${bps} bps`);
  t.ok(Object.is(percentOf(-1, 0), 0), 'no negative zero');
  t.ok(Object.is(percentOf(-0, 2000), 0), 'no negative zero from a negative zero');
});

t.test('a percent rate refuses what is not a safe integer, in and out', async (t) => {
  for (const [base, bps] of [
    [1.5, 100],
    [100, 0.5],
    [max + 1, 1],
    [Number.NaN, 1],
    [1, Number.POSITIVE_INFINITY],
    [max, 10_001],
    [-max, 20_000],
  ] as const) {
    t.throws(() => percentOf(base, bps), RangeError, `${base} at ${bps} bps`);
  }
});

t.test('a percent rate agrees with exact rationals for every safe base', async () => {
  const base = fc.oneof(fc.maxSafeInteger(), fc.integer(), fc.integer({ min: 0, max: 1e6 }));
  const bps = fc.oneof(fc.integer({ min: 0, max: 10_000 }), fc.integer({ min: -30_000, max: 30_000 }));
  fc.assert(
    fc.property(base, bps, (base, bps) => {
      const exact = roundedRatio(BigInt(base) * BigInt(bps), 10_000n);
      if (isSafe(exact)) return BigInt(percentOf(base, bps)) === exact && !Object.is(percentOf(base, bps), -0);
      return throwsRangeError(() => percentOf(base, bps));
    }),
    { numRuns: 50_000 },
  );
});

t.test('a percent rate agrees with exact rationals at ties and beside the largest safe product', async () => {
  const tie = fc
    .tuple(fc.integer({ min: 0, max: 1e9 }), fc.integer({ min: -1, max: 1 }))
    .map(([n, d]) => 10_000 * n + 5000 + d);
  const edge = fc
    .tuple(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: -3, max: 3 }))
    .map(([bps, d]) => [Math.floor(max / bps) + d, bps] as const)
    .filter(([base]) => base <= max);
  const pair = fc.oneof(
    edge,
    tie.map((base) => [base, 1] as const),
  );
  fc.assert(
    fc.property(pair, ([base, bps]) => {
      return BigInt(percentOf(base, bps)) === roundedRatio(BigInt(base) * BigInt(bps), 10_000n);
    }),
    runs,
  );
});

t.test('a percent rate is symmetric about zero and never falls as the base rises', async () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.maxSafeNat(), fc.integer({ min: 0, max: 10_000 }), (a, b, bps) => {
      const [low, high] = a < b ? [a, b] : [b, a];
      return percentOf(low, bps) <= percentOf(high, bps) && percentOf(0 - a, bps) === 0 - percentOf(a, bps);
    }),
    runs,
  );
});

t.test('netAmount is the amount without its parts, and never below 0', async (t) => {
  const none = { tax_minor: 0, shipping_minor: 0, fee_minor: 0, discount_minor: 0 };
  const cases: [parts: AmountParts, expected: number][] = [
    [{ ...none, amount_minor: 10_000 }, 10_000],
    [{ amount_minor: 10_000, tax_minor: 1900, shipping_minor: 500, fee_minor: 320, discount_minor: 0 }, 7280],
    [{ ...none, amount_minor: 10_000, discount_minor: 1000 }, 9000],
    [{ ...none, amount_minor: 100, tax_minor: 80, fee_minor: 30 }, 0],
    [{ ...none, amount_minor: 0, fee_minor: 30 }, 0],
    [{ amount_minor: max, tax_minor: max, shipping_minor: max, fee_minor: max, discount_minor: max }, 0],
    [{ ...none, amount_minor: max, tax_minor: 1 }, max - 1],
  ];
  for (const [parts, expected] of cases) t.equal(netAmount(parts), expected, JSON.stringify(parts));
  t.throws(() => netAmount({ ...none, amount_minor: 100, tax_minor: -1 }), RangeError);
  t.throws(() => netAmount({ ...none, amount_minor: -1 }), RangeError);
  t.throws(() => netAmount({ ...none, amount_minor: 100, tax_minor: 0.5 }), RangeError);
});

t.test('netAmount agrees with integers of any size', async () => {
  const part = fc.oneof(fc.maxSafeNat(), fc.integer({ min: 0, max: 10_000 }));
  fc.assert(
    fc.property(part, part, part, part, part, (amount_minor, tax_minor, shipping_minor, fee_minor, discount_minor) => {
      const left = [tax_minor, shipping_minor, fee_minor, discount_minor].reduce(
        (n, p) => n - BigInt(p),
        BigInt(amount_minor),
      );
      const net = netAmount({ amount_minor, tax_minor, shipping_minor, fee_minor, discount_minor });
      return BigInt(net) === (left < 0n ? 0n : left);
    }),
    runs,
  );
});

t.test('commissionBase is the net amount only where the program says so', async (t) => {
  t.equal(commissionBase({ amount_minor: 100, net_amount_minor: 80 }, true), 80);
  t.equal(commissionBase({ amount_minor: 100, net_amount_minor: 80 }, false), 100);
});

t.test('matureAt is whole days later in UTC', async (t) => {
  t.equal(matureAt('2026-06-15T12:00:00.123Z', 0), '2026-06-15T12:00:00.123Z');
  t.equal(matureAt('2026-06-15T12:00:00.123Z', 30), '2026-07-15T12:00:00.123Z');
  t.equal(matureAt('2026-12-31T23:59:59.999Z', 180), '2027-06-29T23:59:59.999Z');
  t.equal(matureAt('2028-02-28T00:00:00.000Z', 1), '2028-02-29T00:00:00.000Z');
  t.equal(matureAt('2026-03-28T12:00:00+02:00', 1), '2026-03-29T10:00:00.000Z', 'no summer time');
  t.throws(() => matureAt('yesterday', 30), RangeError);
});

function throwsRangeError(run: () => unknown): boolean {
  try {
    run();
    return false;
  } catch (error) {
    return error instanceof RangeError;
  }
}
