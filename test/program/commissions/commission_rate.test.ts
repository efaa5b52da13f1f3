import fc from 'fast-check';
import t from 'tap';
import {
  type CopiedRate,
  commissionAmount,
  commissionBase,
  type Rate,
} from '../../../src/program/commissions/commission_rate.ts';
import { matureAt } from '../../../src/program/commissions/commission_state.ts';
import {
  baseLeft,
  type RefundedSale,
  remainingCommission,
} from '../../../src/program/commissions/remaining_commission.ts';
import {
  chooseRule,
  commissionFor,
  type Rule,
  ruleApplies,
  type SaleContext,
} from '../../../src/program/commissions/rule_choice.ts';
import { type AmountParts, netAmount } from '../../../src/program/sales/net_amount.ts';

/** What an uncapped percent rate pays. */
const percentOf = (base: number, bps: number): number =>
  commissionAmount({ rate_type: 'percent', rate_value: bps, max_commission_minor: null }, base);

const runs = { numRuns: 10_000 };
const max = Number.MAX_SAFE_INTEGER;

function rule(over: Partial<Rule> = {}): Rule {
  return {
    id: 'flw_a',
    name: 'A rule',
    rate_type: 'percent',
    rate_value: 2000,
    priority: 0,
    status: 'active',
    applies_to: 'all',
    partner_ids: [],
    group_ids: [],
    tag_ids: [],
    link_ids: [],
    product_ids: [],
    duration_months: null,
    max_payments: null,
    min_sale_minor: null,
    max_commission_minor: null,
    tiers: [],
    tier_metric: null,
    starts_at: null,
    ends_at: null,
    created_at: '2026-01-01T00:00:00.000Z',
    ...over,
  };
}

function sale(over: Partial<SaleContext> = {}): SaleContext {
  return {
    occurred_at: '2026-06-15T12:00:00.000Z',
    amount_minor: 10_000,
    base_minor: 10_000,
    currency: 'USD',
    program_currency: 'USD',
    is_first_sale: true,
    partner_id: 'part_a',
    link_id: 'lnk_a',
    group_id: 'grp_a',
    tag_ids: ['tag_a', 'tag_b'],
    product_id: 'pro',
    rate_override: null,
    first_sale_at: null,
    payments_by_rule: {},
    month_sales_count: 0,
    month_revenue_minor: 0,
    ...over,
  };
}

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

t.test('ruleApplies wants every condition to hold', async (t) => {
  const cases: [expected: boolean, name: string, rule: Partial<Rule>, sale?: Partial<SaleContext>][] = [
    [true, 'no conditions', {}],
    [false, 'inactive', { status: 'inactive' }],
    [true, 'first sale, first', { applies_to: 'first' }],
    [false, 'renewal, first', { applies_to: 'first' }, { is_first_sale: false }],
    [false, 'first sale, renewals', { applies_to: 'renewals' }],
    [true, 'renewal, renewals', { applies_to: 'renewals' }, { is_first_sale: false }],
    [true, 'names the partner', { partner_ids: ['part_b', 'part_a'] }],
    [false, 'names another partner', { partner_ids: ['part_b'] }],
    [true, 'names the link', { link_ids: ['lnk_a'] }],
    [false, 'names another link', { link_ids: ['lnk_b'] }],
    [false, 'names a link, sale has none', { link_ids: ['lnk_a'] }, { link_id: null }],
    [true, 'names the group', { group_ids: ['grp_a'] }],
    [false, 'names another group', { group_ids: ['grp_b'] }],
    [false, 'names a group, partner has none', { group_ids: ['grp_a'] }, { group_id: null }],
    [true, 'names one of the tags', { tag_ids: ['tag_x', 'tag_b'] }],
    [false, 'names another tag', { tag_ids: ['tag_x'] }],
    [false, 'names a tag, partner has none', { tag_ids: ['tag_a'] }, { tag_ids: [] }],
    [true, 'group or tags: the group alone', { group_ids: ['grp_a'], tag_ids: ['tag_x'] }],
    [true, 'group or tags: a tag alone', { group_ids: ['grp_b'], tag_ids: ['tag_a'] }],
    [false, 'group or tags: neither', { group_ids: ['grp_b'], tag_ids: ['tag_x'] }],
    [true, 'names the product', { product_ids: ['pro'] }],
    [false, 'names another product', { product_ids: ['basic'] }],
    [false, 'names a product, sale has none', { product_ids: ['pro'] }, { product_id: null }],
    [false, 'every list must match', { partner_ids: ['part_a'], link_ids: ['lnk_b'] }],
    [false, 'every list must match, tags too', { partner_ids: ['part_a'], tag_ids: ['tag_x'] }],
    [true, 'sale at the minimum', { min_sale_minor: 10_000 }],
    [false, 'sale below the minimum', { min_sale_minor: 10_001 }],
    [true, 'the minimum is of the sale, not its base', { min_sale_minor: 10_000 }, { base_minor: 8000 }],
    [true, 'at the start of the window', { starts_at: '2026-06-15T12:00:00.000Z' }],
    [false, 'before the window', { starts_at: '2026-06-15T12:00:00.001Z' }],
    [true, 'at the last moment of the window', { ends_at: '2026-06-15T12:00:00.001Z' }],
    [false, 'at the end of the window', { ends_at: '2026-06-15T12:00:00.000Z' }],
    [true, 'payments left', { max_payments: 3 }, { payments_by_rule: { flw_a: 2 } }],
    [false, 'no payments left', { max_payments: 3 }, { payments_by_rule: { flw_a: 3 } }],
    [true, "another rule's payments do not count", { max_payments: 1 }, { payments_by_rule: { flw_b: 9 } }],
    [true, 'first payment of one', { max_payments: 1 }],
  ];
  for (const [expected, name, conditions, facts] of cases) {
    t.equal(ruleApplies(rule(conditions), sale(facts)), expected, name);
  }
});

t.test('duration_months are calendar months from the first sale, the day clamped, the end excluded', async (t) => {
  const cases: [first: string | null, months: number, occurred: string, expected: boolean][] = [
    [null, 1, '2026-06-15T12:00:00.000Z', true],
    ['2026-01-15T12:00:00.000Z', 1, '2026-02-15T11:59:59.999Z', true],
    ['2026-01-15T12:00:00.000Z', 1, '2026-02-15T12:00:00.000Z', false],
    ['2026-01-31T12:00:00.000Z', 1, '2026-02-28T11:59:59.999Z', true],
    ['2026-01-31T12:00:00.000Z', 1, '2026-02-28T12:00:00.000Z', false],
    ['2028-01-31T12:00:00.000Z', 1, '2028-02-29T11:59:59.999Z', true],
    ['2028-01-31T12:00:00.000Z', 1, '2028-02-29T12:00:00.000Z', false],
    ['2026-01-31T12:00:00.000Z', 2, '2026-03-31T11:59:59.999Z', true],
    ['2026-01-31T12:00:00.000Z', 3, '2026-04-30T12:00:00.000Z', false],
    ['2028-02-29T00:00:00.000Z', 12, '2029-02-27T23:59:59.999Z', true],
    ['2028-02-29T00:00:00.000Z', 12, '2029-02-28T00:00:00.000Z', false],
    ['2026-11-30T23:59:59.999Z', 3, '2027-02-28T23:59:59.998Z', true],
    ['2026-11-30T23:59:59.999Z', 3, '2027-02-28T23:59:59.999Z', false],
    ['2026-08-15T12:00:00.000Z', 1, '2026-06-15T12:00:00.000Z', true],
  ];
  for (const [first_sale_at, duration_months, occurred_at, expected] of cases) {
    const applies = ruleApplies(rule({ duration_months }), sale({ first_sale_at, occurred_at, is_first_sale: false }));
    t.equal(applies, expected, `${first_sale_at} + ${duration_months} months, sale at ${occurred_at}`);
  }
});

t.test('chooseRule asks the override, partner, link, group or tags, the rest; then priority, then age', async (t) => {
  const rest = rule({ id: 'flw_rest', priority: 99 });
  const tags = rule({ id: 'flw_tags', tag_ids: ['tag_a'], priority: 1 });
  const group = rule({ id: 'flw_group', group_ids: ['grp_a'], priority: 2 });
  const link = rule({ id: 'flw_link', link_ids: ['lnk_a'] });
  const partner = rule({ id: 'flw_partner', partner_ids: ['part_a'], priority: -5 });
  const both = rule({ id: 'flw_both', partner_ids: ['part_a'], link_ids: ['lnk_a'], priority: -6 });
  const older = rule({ id: 'flw_z', created_at: '2025-12-31T23:59:59.999Z' });
  const cases: [expected: string | null | undefined, name: string, rules: Rule[], sale?: Partial<SaleContext>][] = [
    ['flw_partner', 'partner before all', [rest, tags, group, link, partner]],
    ['flw_link', 'link before groups', [rest, tags, group, link]],
    ['flw_group', 'group and tags are one class, so priority decides', [rest, tags, group]],
    ['flw_tags', 'tags before the rest', [rest, tags]],
    ['flw_rest', 'the rest', [rest]],
    ['flw_partner', 'partner and link is a partner rule', [both, partner, link]],
    ['flw_both', 'and before the link', [both, link]],
    ['flw_rest', 'priority before age', [older, rest]],
    ['flw_z', 'older before lower id', [rule(), older]],
    ['flw_a', 'lower id of two as old', [rule({ id: 'flw_b' }), rule()]],
    ['flw_rest', 'a class that does not apply is passed', [{ ...partner, partner_ids: ['part_b'] }, rest]],
    [null, 'the override before all', [partner], { rate_override: { rate_type: 'fixed', rate_value: 7 } }],
    [null, 'the override without any rule', [], { rate_override: { rate_type: 'percent', rate_value: 7 } }],
    [undefined, 'no rules', []],
    [undefined, 'none applies', [rule({ status: 'inactive' })]],
  ];
  for (const [expected, name, rules, over] of cases) t.equal(chooseRule(rules, sale(over))?.rule_id, expected, name);
});

t.test('the highest tier reached before this sale gives the rate', async (t) => {
  const tiers = [
    { from: 50, rate_value: 3000 },
    { from: 10, rate_value: 2500 },
  ];
  for (const [reached, expected] of [
    [0, 2000],
    [9, 2000],
    [10, 2500],
    [49, 2500],
    [50, 3000],
    [1000, 3000],
  ]) {
    const bySales = rule({ tiers, tier_metric: 'sales_count' });
    const byRevenue = rule({ tiers, tier_metric: 'revenue_minor' });
    t.equal(
      chooseRule([bySales], sale({ month_sales_count: reached, month_revenue_minor: 1e9 }))?.rate_value,
      expected,
    );
    t.equal(
      chooseRule([byRevenue], sale({ month_revenue_minor: reached, month_sales_count: 1e9 }))?.rate_value,
      expected,
    );
  }
  t.equal(chooseRule([rule({ tier_metric: 'sales_count' })], sale())?.rate_value, 2000, 'no tiers');
});

t.test('commissionFor pays by the chosen rule and copies its rate', async (t) => {
  const tiers = [{ from: 1, rate_value: 3000 }];
  const tiered = rule({ tiers, tier_metric: 'sales_count' });
  const capped = rule({ max_commission_minor: 150 });
  const fixed = rule({ rate_type: 'fixed', rate_value: 500 });
  const rate_override = { rate_type: 'fixed', rate_value: 700 } as const;
  const byFixed = { rate_type: 'fixed', rate_value: 500, amount_minor: 500 };
  const byOverride = { ...rate_override, rule_id: null, amount_minor: 700 };
  const paid = {
    outcome: 'commission',
    rule_id: 'flw_a',
    rate_type: 'percent',
    rate_value: 2000,
    max_commission_minor: null,
    base_amount_minor: 10_000,
    amount_minor: 2000,
    currency: 'USD',
  };
  const cases: [expected: Partial<typeof paid> | object, name: string, rules: Rule[], sale?: Partial<SaleContext>][] = [
    [{}, 'percent', [rule()]],
    [{ amount_minor: 1600, base_amount_minor: 8000 }, 'percent of the net', [rule()], { base_minor: 8000 }],
    [{ currency: 'JPY' }, 'percent in JPY', [rule()], { currency: 'JPY' }],
    [{ currency: 'KWD' }, 'percent in KWD', [rule()], { currency: 'KWD' }],
    [byFixed, 'fixed', [fixed]],
    [{ ...byFixed, base_amount_minor: 0 }, 'fixed, for a lead', [fixed], { amount_minor: 0, base_minor: 0 }],
    [{ amount_minor: 150, max_commission_minor: 150 }, 'capped', [capped]],
    [
      { ...byFixed, amount_minor: 150, max_commission_minor: 150 },
      'fixed and capped',
      [{ ...fixed, max_commission_minor: 150 }],
    ],
    [{ rate_value: 3000, amount_minor: 3000 }, 'the rate of the tier', [tiered], { month_sales_count: 1 }],
    [byOverride, 'override, without the cap', [capped], { rate_override }],
    [
      { currency: 'EUR' },
      'a fixed rule is not chosen',
      [rule({ priority: 1 }), { ...fixed, id: 'b' }],
      { currency: 'EUR' },
    ],
  ];
  for (const [expected, name, rules, over] of cases) {
    t.strictSame(commissionFor(rules, sale(over)), { ...paid, ...expected }, name);
  }
});

t.test('commissionFor says why nothing is paid, and asks no second rule', async (t) => {
  const second = rule({ id: 'flw_b', priority: -1 });
  const fixed = rule({ rate_type: 'fixed', rate_value: 500 });
  const cases: [warning: string, name: string, rules: Rule[], sale?: Partial<SaleContext>][] = [
    ['no_commission_from_rules', 'no rules', []],
    ['no_commission_from_rules', 'none applies', [rule({ status: 'inactive' })]],
    ['no_commission_from_rules', 'a sale of 0', [rule()], { amount_minor: 0, base_minor: 0 }],
    ['no_commission_from_rules', 'too little to round up', [rule({ rate_value: 4999 })], { base_minor: 1 }],
    ['no_commission_from_rules', 'a rate of 0', [rule({ rate_value: 0 }), second]],
    ['no_commission_from_rules', 'a cap of 0', [rule({ max_commission_minor: 0 }), second]],
    ['no_commission_from_rules', 'override of 0', [second], { rate_override: { rate_type: 'percent', rate_value: 0 } }],
    ['fixed_rate_currency_mismatch', 'fixed in another currency', [fixed], { currency: 'EUR' }],
    ['fixed_rate_currency_mismatch', 'fixed, and a percentage behind it', [fixed, second], { currency: 'EUR' }],
    ['fixed_rate_currency_mismatch', 'fixed override', [second], { currency: 'EUR', rate_override: fixed }],
  ];
  for (const [warning, name, rules, over] of cases) {
    t.strictSame(commissionFor(rules, sale(over)), { outcome: 'none', warning }, name);
  }
});

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
    [500, fixed, 0, 0, 0],
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
        created === commissionAmount(copied, it.base_minor) &&
        (it.amount_minor === 0 || all === 0) &&
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
  if (it.refunded_minor > 0 && it.refunded_minor === it.amount_minor) return 0;
  const whole = BigInt(it.amount_minor || 1);
  const left = roundedRatio(BigInt(it.base_minor) * (whole - BigInt(it.refunded_minor)), whole);
  const uncapped =
    copied.rate_type === 'fixed' ? copied.rate_value : Number(roundedRatio(left * BigInt(copied.rate_value), 10_000n));
  return Math.min(uncapped, copied.max_commission_minor ?? Number.POSITIVE_INFINITY);
}

const moments = [
  '2026-01-31T00:00:00.000Z',
  '2026-06-15T12:00:00.000Z',
  '2026-06-15T12:00:00.001Z',
  '2026-12-31T23:59:59.999Z',
];
const moment = fc.constantFrom(...moments);
const some = (...ids: string[]) => fc.oneof({ weight: 3, arbitrary: fc.constant<string[]>([]) }, fc.subarray(ids));
const rarely = <T>(it: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: it });

const anyRate: fc.Arbitrary<Rate> = fc.record({
  rate_type: fc.constantFrom('percent', 'fixed'),
  rate_value: fc.integer({ min: 0, max: 10_000 }),
});

const anyRule: fc.Arbitrary<Rule> = fc.record({
  id: fc.constant(''),
  name: fc.constant('A rule'),
  rate_type: fc.constantFrom('percent', 'fixed'),
  rate_value: fc.integer({ min: 0, max: 10_000 }),
  priority: fc.integer({ min: -1, max: 1 }),
  status: fc.constantFrom('active', 'active', 'active', 'inactive'),
  applies_to: fc.constantFrom('all', 'all', 'first', 'renewals'),
  partner_ids: some('part_a', 'part_b'),
  group_ids: some('grp_a', 'grp_b'),
  tag_ids: some('tag_a', 'tag_b', 'tag_c'),
  link_ids: some('lnk_a', 'lnk_b'),
  product_ids: some('pro', 'basic'),
  duration_months: rarely(fc.integer({ min: 1, max: 24 })),
  max_payments: rarely(fc.integer({ min: 1, max: 4 })),
  min_sale_minor: rarely(fc.integer({ min: 0, max: 20_000 })),
  max_commission_minor: rarely(fc.integer({ min: 0, max: 1000 })),
  tiers: fc.uniqueArray(
    fc.record({ from: fc.integer({ min: 0, max: 20 }), rate_value: fc.integer({ min: 0, max: 9000 }) }),
    {
      selector: (tier) => tier.from,
      maxLength: 3,
    },
  ),
  tier_metric: fc.constantFrom('sales_count', 'revenue_minor', null),
  starts_at: rarely(moment),
  ends_at: rarely(moment),
  created_at: moment,
});

const anyRules = fc
  .array(anyRule, { maxLength: 6 })
  .map((rules) => rules.map((it, index) => ({ ...it, id: `flw_${(index * 5) % 7}` })));

const anySale: fc.Arbitrary<SaleContext> = fc.record({
  occurred_at: moment,
  amount_minor: fc.integer({ min: 0, max: 30_000 }),
  base_minor: fc.integer({ min: 0, max: 30_000 }),
  currency: fc.constantFrom('USD', 'USD', 'EUR'),
  program_currency: fc.constant('USD'),
  is_first_sale: fc.boolean(),
  partner_id: fc.constantFrom('part_a', 'part_b'),
  link_id: fc.constantFrom('lnk_a', 'lnk_b', null),
  group_id: fc.constantFrom('grp_a', 'grp_b', null),
  tag_ids: fc.subarray(['tag_a', 'tag_b', 'tag_c']),
  product_id: fc.constantFrom('pro', 'basic', null),
  rate_override: rarely(anyRate),
  first_sale_at: fc.option(moment),
  payments_by_rule: fc.dictionary(fc.constantFrom('flw_0', 'flw_3', 'flw_5'), fc.integer({ min: 0, max: 4 })),
  month_sales_count: fc.integer({ min: 0, max: 25 }),
  month_revenue_minor: fc.integer({ min: 0, max: 25 }),
});

/** The choice as the decisions tell it: one class after the other, each sorted. */
function chosenByHand(rules: Rule[], it: SaleContext): Rule | undefined {
  const left = rules.filter((rule) => ruleApplies(rule, it));
  const naming = (list: (rule: Rule) => readonly string[], ids: (string | null)[]) =>
    left.filter((rule) => list(rule).some((id) => ids.includes(id)));
  const classes = [
    naming((rule) => rule.partner_ids, [it.partner_id]),
    naming((rule) => rule.link_ids, [it.link_id]),
    naming((rule) => [...rule.group_ids, ...rule.tag_ids], [it.group_id, ...it.tag_ids]),
    left,
  ];
  const found = classes.find((rules) => rules.length > 0) ?? [];
  return found
    .toSorted((a, b) => a.id.localeCompare(b.id))
    .toSorted((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at))
    .toSorted((a, b) => b.priority - a.priority)[0];
}

t.test('chooseRule chooses as the decisions tell it', async (t) => {
  let chosen = 0;
  fc.assert(
    fc.property(anyRules, anySale, (rules, it) => {
      const choice = chooseRule(rules, it);
      const override = it.rate_override;
      if (override !== null) return choice?.rule_id === null && choice.rate_value === override.rate_value;
      if (choice !== null) chosen++;
      return choice?.rule_id === chosenByHand(rules, it)?.id;
    }),
    runs,
  );
  t.ok(chosen > 2000, `a rule was chosen in ${chosen} of the runs`);
});

t.test('the order of the rules never changes what is paid', async () => {
  const shuffled = anyRules.chain((rules) => {
    return fc.tuple(fc.constant(rules), fc.shuffledSubarray(rules, { minLength: rules.length }));
  });
  fc.assert(
    fc.property(shuffled, anySale, ([rules, permuted], it) => {
      return JSON.stringify(commissionFor(rules, it)) === JSON.stringify(commissionFor(permuted, it));
    }),
    runs,
  );
});

/** Each breaks one condition of any rule, for any of the sales above. */
const broken: ((rule: Rule, it: SaleContext) => Rule)[] = [
  (rule) => ({ ...rule, status: 'inactive' }),
  (rule, it) => ({ ...rule, applies_to: it.is_first_sale ? 'renewals' : 'first' }),
  (rule) => ({ ...rule, partner_ids: ['part_z'] }),
  (rule) => ({ ...rule, link_ids: ['lnk_z'] }),
  (rule) => ({ ...rule, group_ids: ['grp_z'], tag_ids: ['tag_z'] }),
  (rule) => ({ ...rule, product_ids: ['none'] }),
  (rule, it) => ({ ...rule, min_sale_minor: it.amount_minor + 1 }),
  (rule, it) => ({ ...rule, max_payments: it.payments_by_rule[rule.id] ?? 0 }),
  (rule) => ({ ...rule, starts_at: '2027-01-01T00:00:00.000Z' }),
  (rule, it) => ({ ...rule, ends_at: it.occurred_at }),
];

t.test('a rule that does not apply never changes what is paid', async () => {
  const intruder = fc.tuple(anyRule, fc.constantFrom(...broken), fc.nat(6), fc.integer({ min: -9, max: 9 }));
  fc.assert(
    fc.property(anyRules, anySale, intruder, (rules, it, [rule, spoil, at, priority]) => {
      const more = rules.toSpliced(at, 0, spoil({ ...rule, id: 'flw_3x', priority }, it));
      return JSON.stringify(commissionFor(rules, it)) === JSON.stringify(commissionFor(more, it));
    }),
    runs,
  );
});

t.test('exactly one rule pays, alone as among the others', async () => {
  fc.assert(
    fc.property(anyRules, anySale, (rules, it) => {
      const paid = commissionFor(rules, it);
      if (paid.outcome === 'none') return true;
      if (paid.rule_id === null) return it.rate_override !== null;
      const payers = rules.filter((rule) => rule.id === paid.rule_id);
      const alone = JSON.stringify(commissionFor(payers, it)) === JSON.stringify(paid);
      return payers.length === 1 && alone && ruleApplies(payers[0] as Rule, it) && paid.amount_minor > 0;
    }),
    runs,
  );
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
