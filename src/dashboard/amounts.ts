/** Amounts in forms: people type `12.50` of a currency, or `20` per cent, and operations get minor units and basis points. */
import type { Operation } from '../core/resource/operation.ts';
import { fractionDigits } from '../core/values/money.ts';
import { Problem } from '../core/values/problem.ts';
import { uncapitalized } from '../pages/format.ts';
import { leavesOf } from '../pages/rows.ts';
import type { Use } from '../pages/run.ts';
import type { Field, Typed } from '../pages/schema_fields.ts';
import { withPoint } from '../program/payouts/bank/amount.ts';
import { paramsOf } from './catalog.ts';
import type { Record_ } from './values.ts';
import type { Chosen, DashboardVisit } from './visit.ts';

const kinds = new Set<Field['kind']>(['money', 'percent', 'rate', 'threshold']);
export const hasAmounts = (fields: Field[]): boolean =>
  fields.some((field) => kinds.has(field.kind) || hasAmounts(field.fields ?? []));

/** The unit of a field as the form stands; undefined where nothing says it yet, and what is typed stays as it is. */
interface Unit {
  digits: number;
  /** Null: per cent. */
  currency: string | null;
}

/** The name of a field beside another one: `terms.currency` of `terms.upfront_fee_minor`. */
const beside = (name: string, sibling: string): string => name.replace(/[^.]+$/, sibling);

/** Limits of the cost of searches are in US cents, whatever the program pays in. */
const is_in_dollars = /ceiling_minor$/;

function unitOf({ name, kind }: Field, typed: Typed, currency: string): Unit | undefined {
  const of = (code: string): Unit => ({ digits: fractionDigits(code), currency: code });
  // In a map of amounts, the currency is the name of the pair.
  const named = typed[beside(name, 'currency')] || typed[beside(name, 'key')];
  const own = is_in_dollars.test(name) ? 'USD' : named || currency;
  if (kind === 'money') return of(own);
  if (kind === 'percent') return { digits: 2, currency: null };
  if (kind === 'threshold') return typed.tier_metric === 'revenue_minor' ? of(own) : undefined;
  if (kind !== 'rate') return undefined;
  const type = typed[beside(name, 'rate_type')] ?? typed.rate_type;
  return type === 'percent' ? { digits: 2, currency: null } : type === 'fixed' ? of(own) : undefined;
}

/** Writes integers as a form shows them: amounts as decimals. @param currency of the form, where no field beside names one */
export const decimalsIn = (fields: Field[], integers: Typed, currency: string): Typed =>
  mapped(fields, integers, (field, value) => {
    const unit = unitOf(field, integers, currency);
    if (!unit) return value;
    const text = withPoint(BigInt(value), unit.digits);
    return unit.currency === null ? String(Number(text)) : text;
  });

/** Reads amounts that were typed as integers. @throws Problem invalid_parameter that names the field */
export const integersIn = (fields: Field[], typed: Typed, currency: string): Typed =>
  mapped(fields, typed, (field, value) => {
    const unit = unitOf(field, typed, currency);
    if (!unit) return value;
    const integer = integerOf(value, unit.digits);
    if (integer === undefined) throw new Problem('invalid_parameter', whyNot(field, unit), { param: field.name });
    return String(integer);
  });

/**
 * The integer of what is typed. White space around it does not count, and digits may be left out at the end: `12.5` is `12.50`.
 * @returns undefined where it is no such number, has more digits after the point than there are, or is beyond the safe integers
 */
function integerOf(typed: string, digits: number): number | undefined {
  const [, sign, whole = '', fraction = ''] = /^([-−]?)([0-9]{1,16})(?:\.([0-9]{0,16}))?$/.exec(typed.trim()) ?? [];
  if (whole === '' || /[1-9]/.test(fraction.slice(digits))) return undefined;
  const value = Number(whole + fraction.slice(0, digits).padEnd(digits, '0'));
  if (!Number.isSafeInteger(value)) return undefined;
  return sign === '' || value === 0 ? value : -value;
}

const mapped = (fields: Field[], typed: Typed, map: (field: Field, value: string) => string): Typed => ({
  ...typed,
  ...Object.fromEntries(
    leavesOf(fields, typed).flatMap((field) => {
      const value = typed[field.name];
      return kinds.has(field.kind) && value !== undefined && value.trim() !== ''
        ? [[field.name, map(field, value)]]
        : [];
    }),
  ),
});

const example = (digits: number): string => withPoint(125n * 10n ** BigInt(Math.max(digits - 1, 0)), digits);

function whyNot({ label }: Field, { digits, currency }: Unit): string {
  const decimals = digits === 0 ? 'no decimals' : `at most ${digits} digits after the point`;
  if (currency === null)
    return `“${label}” must be a percentage such as 20 or 12.5, with ${decimals} and without a sign.`;
  return `“${label}” must be an amount in ${currency} such as ${example(digits)}, with a point, ${decimals} and no other separators.`;
}

const units =
  /,? in (?:minor units(?: of (?:each: `[^`]*`|(?:the )?(?:[\w']+ )?[`\w]+))?|basis points(?:: \d+ is \d+ %)?)/;

/** The fields with how their amounts are typed. */
export const withUnits = (fields: Field[], currency: string): Field[] =>
  fields.map((field) => {
    if (field.fields)
      return { ...field, description: field.description.replace(units, ''), fields: withUnits(field.fields, currency) };
    if (!kinds.has(field.kind)) return field;
    const has = (sibling: string) => fields.some(({ name }) => name === beside(field.name, sibling));
    const own = is_in_dollars.test(field.name) ? 'USD' : currency;
    const such = example(fractionDigits(own));
    const amount = has('currency')
      ? `In the currency of this form, such as ${such}.`
      : `In ${has('key') ? 'that currency' : own}, such as ${such}.`;
    const of_kind = uncapitalized(amount);
    const hint = {
      money: amount,
      percent: 'In per cent, such as 20 or 12.5.',
      rate: `Of percent: 20 is 20%. Of fixed: ${of_kind}`,
      threshold: `Of sales count: a number of sales. Of revenue: ${of_kind}`,
    }[field.kind as 'money' | 'percent' | 'rate' | 'threshold'];
    const description =
      field.kind === 'rate' ? '' : field.description.replace(units, '').replace('in US cents', 'in US dollars');
    return { ...field, description: `${description} ${hint}`.trim() };
  });

/** The currency of a form: of the record that it is about, else of the sale or the program that it names, else of the program that was chosen. */
export async function currencyOf(
  { catalog }: DashboardVisit,
  use: Use,
  operation: Operation,
  { params, typed }: { params: Record<string, string>; typed: Typed },
  { programs, program_id }: Chosen,
): Promise<string> {
  const get = catalog.operations.get(`${operation.tag}.get`);
  const is_found = (input: { params: object }, name: string): Promise<Record_ | undefined> =>
    use(name, input).catch((error) => {
      if (error instanceof Problem) return undefined;
      throw error;
    });
  const has_record = get && paramsOf(get).every((name) => params[name] !== undefined);
  const record = has_record ? await is_found({ params }, get.name) : undefined;
  const sale = record || !typed.sale_id ? undefined : await is_found({ params: { id: typed.sale_id } }, 'sales.get');
  const named = [record?.currency, sale?.currency].find((one) => typeof one === 'string');
  if (typeof named === 'string') return named;
  const wanted = [record?.program_id, typed.program_id, program_id];
  const known = wanted.flatMap((id) => programs.find((one) => one.id === id) ?? []);
  return known[0]?.currency ?? 'USD';
}
