import fc from 'fast-check';
import t from 'tap';
import type { Rate } from '../../../src/program/commissions/commission_rate.ts';
import {
  chooseRule,
  commissionFor,
  type Rule,
  ruleApplies,
  type SaleContext,
} from '../../../src/program/commissions/rule_choice.ts';

const runs = { numRuns: 10_000 };

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
    [
      { ...byFixed, base_amount_minor: 0 },
      'fixed, although nothing of the amount is revenue',
      [fixed],
      { base_minor: 0 },
    ],
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
    ['no_commission_from_rules', 'a sale of 0 and a fixed rate', [fixed], { amount_minor: 0, base_minor: 0 }],
    [
      'no_commission_from_rules',
      'a sale of 0 in another currency',
      [fixed],
      { amount_minor: 0, base_minor: 0, currency: 'EUR' },
    ],
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
