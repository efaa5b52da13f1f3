/** The terms of a deal: what a request can set, how they are stored and read, and how they must fit each other. */
import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { id, notBlank, text } from '../../core/values/fields.ts';
import { currency, minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { Problem } from '../../core/values/problem.ts';
import { typedCode } from '../../core/values/typed_code.ts';
import { rate_units, requireTermsOf } from '../../program/activation.ts';

const rate_types = ['percent', 'fixed'] as const;

const meanings = {
  rate_type: '`percent`: a share of each sale. `fixed`: an amount for each sale.',
  rate_value: rate_units,
  currency:
    "The currency of the upfront fee and, with `fixed`, of the rate. With `fixed` it must be the program's currency. With `percent`, commission is in the currency of the sale.",
  recurring_months:
    'For how many months after the first sale of a customer the sales to that customer earn commission. Null: no limit.',
  group_id:
    "The group of the program that the partner joins. Null: an existing partner keeps their group, and a new one joins the program's default group.",
  coupon_code: 'The code of a coupon whose sales are attributed to the partner. Null: none.',
  upfront_fee_minor: 'Paid once at the activation, as a bonus, in minor units of `currency`. Null: none.',
  starts_on: 'The first day (UTC) whose sales earn commission. Null: no start date.',
  ends_on: 'The last day (UTC) whose sales earn commission. Null: no end date.',
  text: 'What else was agreed, in your own words. It has no effect. Null: nothing.',
};

export const Terms = z.object({
  rate_type: z.enum(rate_types).describe(meanings.rate_type),
  rate_value: z.int().describe(meanings.rate_value),
  currency: storedCurrency.describe(meanings.currency),
  recurring_months: z.int().nullable().describe(meanings.recurring_months),
  group_id: id('grp').nullable().describe(meanings.group_id),
  coupon_code: text.nullable().describe(meanings.coupon_code),
  upfront_fee_minor: minorNotNegative.nullable().describe(meanings.upfront_fee_minor),
  starts_on: z.iso.date().nullable().describe(meanings.starts_on),
  ends_on: z.iso.date().nullable().describe(meanings.ends_on),
  text: text.nullable().describe(meanings.text),
});
export type Terms = z.infer<typeof Terms>;

const day = z.iso
  .date('must be a date, such as 2026-01-31')
  .refine((value) => value >= '2000-01-01' && value <= '9000-12-31', 'must be between the years 2000 and 9000');

const rate = {
  rate_type: z.enum(rate_types).describe(meanings.rate_type),
  rate_value: z.int().min(0).describe(meanings.rate_value),
  currency: currency.describe(meanings.currency),
};
const optional = {
  recurring_months: z.int().min(1).max(1200).nullable().describe(meanings.recurring_months),
  group_id: id('grp').nullable().describe(meanings.group_id),
  coupon_code: typedCode.nullable().describe(meanings.coupon_code),
  upfront_fee_minor: z.int().min(1).nullable().describe(meanings.upfront_fee_minor),
  starts_on: day.nullable().describe(meanings.starts_on),
  ends_on: day.nullable().describe(meanings.ends_on),
  text: notBlank(5000).nullable().describe(meanings.text),
};

/** The terms of a new deal. Omitted fields are null. */
export const GivenTerms = z
  .strictObject({
    ...rate,
    recurring_months: optional.recurring_months.default(null),
    group_id: optional.group_id.default(null),
    coupon_code: optional.coupon_code.default(null),
    upfront_fee_minor: optional.upfront_fee_minor.default(null),
    starts_on: optional.starts_on.default(null),
    ends_on: optional.ends_on.default(null),
    text: optional.text.default(null),
  })
  .describe('The terms.');

export const ChangedTerms = z
  .strictObject({ ...rate, ...optional })
  .partial()
  .describe('The terms that change. The others stay as in the last version.');

/** The terms of a version, whose row is called `v`, in wire shape. */
export const termsColumn: Sql = sql`json_build_object(
  'rate_type', v.rate_type, 'rate_value', v.rate_value, 'currency', v.currency, 'recurring_months', v.recurring_months,
  'group_id', v.group_id, 'coupon_code', v.coupon_code, 'upfront_fee_minor', v.upfront_fee_minor,
  'starts_on', v.starts_on, 'ends_on', v.ends_on, 'text', v.text)`;

/**
 * Checks terms against each other and the program, which stays as it is until the transaction ends.
 * @throws Problem resource_not_found, invalid_parameter, currency_mismatch, naming the field
 */
export async function requireConsistent(tx: Tx, program_id: string, terms: Terms): Promise<void> {
  await requireTermsOf(tx, program_id, terms, 'terms');
  const { starts_on, ends_on } = terms;
  if (starts_on !== null && ends_on !== null && ends_on < starts_on) {
    throw new Problem(
      'invalid_parameter',
      `'terms.ends_on' must not be before 'terms.starts_on' (${starts_on}). Send a later 'ends_on' or an earlier 'starts_on'.`,
      { param: 'terms.ends_on' },
    );
  }
}
