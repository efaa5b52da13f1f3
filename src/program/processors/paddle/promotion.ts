/** Makes a discount of Paddle. https://developer.paddle.com/api-reference/discounts/create-discount */
import type { Problem } from '../../../core/values/problem.ts';
import { listAt, textAt } from '../../payouts/rails/answer.ts';
import type { Answer } from '../../payouts/rails/provider_call.ts';
import { callProcessor, codeTaken, messageOf, promotionRefused, readProcessor } from '../call.ts';
import type { Account, Promotion } from '../processor.ts';
import { caller } from './client.ts';

/** Paddle knows no idempotency keys, and each code once: what an earlier request made is found by that. */
export async function createPaddlePromotion(account: Account, promotion: Promotion): Promise<string> {
  const before = await findCode(account, promotion);
  if (before !== undefined) return before;
  const body = { text: JSON.stringify(discountOf(promotion)), type: 'application/json' };
  const answer = await callProcessor(caller, account, { method: 'POST', path: '/discounts', body });
  const id = textAt(answer.body, 'data', 'id');
  if (answer.status < 300 && id !== undefined) return id;
  const meanwhile = await findCode(account, promotion);
  if (meanwhile !== undefined) return meanwhile;
  throw refusalOf(answer, account);
}

/** @throws Problem where the code is that of another discount */
async function findCode(account: Account, { code, key }: Promotion): Promise<string | undefined> {
  const list = await readProcessor(caller, account, '/discounts', { code, status: 'active', per_page: '1' });
  const [found] = listAt(list, 'data');
  if (found === undefined) return undefined;
  if (textAt(found, 'custom_data', 'rail') === key) return textAt(found, 'id');
  throw codeTaken('Paddle', code);
}

function discountOf(promotion: Promotion): object {
  const { key, code, percent_off_bps = 0, amount_off_minor, currency, duration, duration_months } = promotion;
  return {
    ...{ code, description: `Rail: ${code}`, enabled_for_checkout: true, custom_data: { rail: key } },
    ...(amount_off_minor === undefined
      ? { type: 'percentage', amount: String(percent_off_bps / 100) }
      : { type: 'flat', amount: String(amount_off_minor), currency_code: currency }),
    ...{ recur: duration !== 'once', maximum_recurring_intervals: duration_months ?? null },
    ...{ usage_limit: promotion.max_redemptions ?? null, expires_at: promotion.expires_at ?? null },
  };
}

/** The fields of Paddle, and those of a promotion. */
const fields: Readonly<Record<string, string>> = {
  ...{ code: 'code', currency_code: 'currency', maximum_recurring_intervals: 'duration_months' },
  ...{ usage_limit: 'max_redemptions', expires_at: 'expires_at' },
};

function refusalOf(answer: Answer, account: Account): Problem {
  const [wrong] = listAt(answer.body, 'error', 'errors');
  const words = [messageOf(caller, answer, account), textAt(wrong, 'message')].filter((one) => one !== undefined);
  return promotionRefused('Paddle', answer.status, {
    words: words.join(' '),
    field: fields[textAt(wrong, 'field') ?? ''],
    permission: 'write discounts',
  });
}
