/** Makes a coupon of Chargebee, whose id is the code. https://apidocs.chargebee.com/docs/api/coupons */
import type { Problem } from '../../../core/values/problem.ts';
import { at, textAt } from '../../payouts/rails/answer.ts';
import type { Answer } from '../../payouts/rails/provider_call.ts';
import { callProcessor, codeTaken, messageOf, promotionRefused, readProcessor } from '../call.ts';
import type { Account, Promotion } from '../processor.ts';
import { secondsOf } from '../stripe/look_up.ts';
import { atSite, caller } from './client.ts';

export async function createChargebeePromotion(account: Account, promotion: Promotion): Promise<string> {
  const { code } = promotion;
  if (await isMade(account, promotion)) return code;
  const body = { text: new URLSearchParams(formOf(promotion)).toString(), type: 'application/x-www-form-urlencoded' };
  const call = { method: 'POST', path: '/api/v2/coupons/create_for_items', body } as const;
  const answer = await callProcessor(caller, atSite(account), call);
  if (answer.status === 200) return code;
  if (await isMade(account, promotion)) return code;
  throw refusalOf(answer, account);
}

/** @throws Problem where the code is that of another coupon */
async function isMade(account: Account, { code, key }: Promotion): Promise<boolean> {
  const path = `/api/v2/coupons/${encodeURIComponent(code)}`;
  const coupon = at(await readProcessor(caller, atSite(account), path), 'coupon');
  if (coupon === undefined) return false;
  if (textAt(coupon, 'meta_data', 'rail') === key && textAt(coupon, 'status') === 'active') return true;
  throw codeTaken('Chargebee', code);
}

const durations = { once: 'one_time', repeating: 'limited_period', forever: 'forever' } as const;

function formOf(promotion: Promotion): Record<string, string> {
  const { key, code, percent_off_bps = 0, amount_off_minor, currency = '', duration_months } = promotion;
  return {
    ...{ id: code, name: code.slice(0, 50), apply_on: 'invoice_amount', meta_data: JSON.stringify({ rail: key }) },
    ...(amount_off_minor === undefined
      ? { discount_type: 'percentage', discount_percentage: String(percent_off_bps / 100) }
      : { discount_type: 'fixed_amount', discount_amount: String(amount_off_minor), currency_code: currency }),
    duration_type: durations[promotion.duration],
    ...(duration_months === undefined ? {} : { period: String(duration_months), period_unit: 'month' }),
    ...(promotion.max_redemptions === undefined ? {} : { max_redemptions: String(promotion.max_redemptions) }),
    ...(promotion.expires_at === undefined ? {} : { valid_till: secondsOf(promotion.expires_at) }),
  };
}

/** The fields of Chargebee, and those of a promotion. */
const fields: Readonly<Record<string, string>> = {
  ...{ id: 'code', name: 'code', discount_percentage: 'percent_off_bps', discount_amount: 'amount_off_minor' },
  ...{ currency_code: 'currency', period: 'duration_months', max_redemptions: 'max_redemptions' },
  valid_till: 'expires_at',
};

const refusalOf = (answer: Answer, account: Account): Problem =>
  promotionRefused('Chargebee', answer.status, {
    words: messageOf(caller, answer, account),
    field: fields[textAt(answer.body, 'param') ?? ''],
    permission: 'create coupons (a full-access key)',
  });
