/** Makes a coupon of Stripe and its promotion code, which customers enter. https://docs.stripe.com/api/promotion_codes */
import type { Problem } from '../../../core/values/problem.ts';
import { listAt, textAt } from '../../payouts/rails/answer.ts';
import type { Answer } from '../../payouts/rails/provider_call.ts';
import { stripeAmount } from '../../payouts/rails/stripe_amount.ts';
import { codeTaken, promotionRefused } from '../call.ts';
import type { Account, Promotion } from '../processor.ts';
import { callStripe, readStripe, stripeMessage } from './client.ts';
import { secondsOf } from './look_up.ts';

/** Whatever was answered to an earlier request is looked up first: a code is active once, and the coupon has the key as its id. */
export async function createStripePromotion(account: Account, promotion: Promotion): Promise<string> {
  const before = await findCode(account, promotion);
  if (before !== undefined) return before;
  const coupon = await callStripe(account, { method: 'POST', path: '/v1/coupons', form: couponForm(promotion) });
  const is_there = textAt(coupon.body, 'error', 'code') === 'resource_already_exists';
  if (coupon.status !== 200 && !is_there) throw refusalOf(coupon, account);
  const code = await callStripe(account, { method: 'POST', path: '/v1/promotion_codes', form: codeForm(promotion) });
  const id = textAt(code.body, 'id');
  if (code.status === 200 && id !== undefined) return id;
  const meanwhile = await findCode(account, promotion);
  if (meanwhile !== undefined) return meanwhile;
  throw refusalOf(code, account);
}

/** @throws Problem where the code is that of another coupon */
async function findCode(account: Account, { code, key }: Promotion): Promise<string | undefined> {
  const list = await readStripe(account, '/v1/promotion_codes', { code, active: 'true', limit: '1' });
  const [found] = listAt(list, 'data');
  if (found === undefined) return undefined;
  const coupon = textAt(found, 'promotion', 'coupon') ?? textAt(found, 'promotion', 'coupon', 'id');
  if (coupon === key) return textAt(found, 'id');
  throw codeTaken('Stripe', code);
}

type Form = [string, string][];
const given = (name: string, value: string | number | undefined): Form =>
  value === undefined ? [] : [[name, String(value)]];

const couponForm = (promotion: Promotion): Form => {
  const { key, code, percent_off_bps, amount_off_minor, currency = '', duration, duration_months } = promotion;
  const off: Form =
    amount_off_minor === undefined
      ? given('percent_off', (percent_off_bps ?? 0) / 100)
      : [
          ...given('amount_off', stripeAmount(amount_off_minor, currency)),
          ...given('currency', currency.toLowerCase()),
        ];
  return [
    ...[...given('id', key), ...given('name', code.slice(0, 40)), ...off, ...given('duration', duration)],
    ...[...given('duration_in_months', duration_months), ...given('metadata[rail_program]', promotion.program_id)],
  ];
};

const codeForm = ({ key, code, max_redemptions, expires_at, program_id }: Promotion): Form => [
  ...[...given('promotion[type]', 'coupon'), ...given('promotion[coupon]', key), ...given('code', code)],
  ...given('max_redemptions', max_redemptions),
  ...given('expires_at', expires_at === undefined ? undefined : secondsOf(expires_at)),
  ...given('metadata[rail_program]', program_id),
];

/** The fields of Stripe, and those of a promotion. */
const fields: Readonly<Record<string, string>> = {
  ...{ code: 'code', percent_off: 'percent_off_bps', amount_off: 'amount_off_minor', currency: 'currency' },
  ...{ duration: 'duration', duration_in_months: 'duration_months', max_redemptions: 'max_redemptions' },
  expires_at: 'expires_at',
};

const refusalOf = (answer: Answer, account: Account): Problem =>
  promotionRefused('Stripe', answer.status, {
    words: stripeMessage(answer, account),
    field: fields[textAt(answer.body, 'error', 'param') ?? ''],
    permission: 'write Coupons and Promotion Codes',
  });
