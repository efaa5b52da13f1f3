/** Calls to Stripe's API, in the version that events are read in. */
import { retryAfterOf, urlBelow } from '../../../core/net/answer.ts';
import { quoted, textAt } from '../../payouts/rails/answer.ts';
import { type Answer, callProvider } from '../../payouts/rails/provider_call.ts';
import { api_version } from '../../payouts/rails/stripe.ts';
import { type Account, KeyRefused, ProcessorAway } from '../processor.ts';

/** A page of a hundred events. */
const most_answer_bytes = 32 * 1024 * 1024;

export interface StripeCall {
  method?: 'GET' | 'POST' | 'DELETE';
  path: string;
  query?: Record<string, string>;
  form?: [string, string][];
}

/**
 * @returns the answer, whose status is below 500 and neither 401 nor 429
 * @throws KeyRefused, ProcessorAway
 */
export async function callStripe(account: Account, call: StripeCall): Promise<Answer> {
  const { method = 'GET', path, query, form } = call;
  const { secret_key = '' } = account.credentials;
  const result = await callProvider({
    method,
    url: urlBelow(account.url, path, query),
    headers: {
      authorization: `Bearer ${secret_key}`,
      'stripe-version': api_version,
      ...(form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
    },
    ...(form ? { body: new URLSearchParams(form).toString() } : {}),
    ...{ cut_off: account.cut_off, most_bytes: most_answer_bytes },
  });
  if (result.kind !== 'answered') throw new ProcessorAway(`Stripe could not be asked: ${result.reason}.`);
  if (result.status === 401) throw new KeyRefused(messageOf(result, account));
  if (result.status === 429 || result.status >= 500) {
    const wait = retryAfterOf(result.headers['retry-after']);
    throw new ProcessorAway(`Stripe answered ${result.status}${wait ? ` and asks for ${wait} seconds` : ''}.`);
  }
  return result;
}

/** Reads one object or list. @throws KeyRefused also where the key may not read it, ProcessorAway  @returns undefined where there is none */
export async function readStripe(account: Account, path: string, query?: Record<string, string>): Promise<unknown> {
  const answer = await callStripe(account, { path, ...(query ? { query } : {}) });
  if (answer.status === 403) throw new KeyRefused(messageOf(answer, account));
  if (answer.status === 404) return undefined;
  if (answer.status !== 200 || answer.body === undefined)
    throw new ProcessorAway(`Stripe answered ${answer.status}: ${messageOf(answer, account)}`);
  return answer.body;
}

export function messageOf({ status, body }: Answer, { credentials }: Account): string {
  const words = [textAt(body, 'error', 'code'), textAt(body, 'error', 'message')].filter((word) => word !== undefined);
  return quoted(words.join(': '), Object.values(credentials)) || `Stripe answered ${status}.`;
}
