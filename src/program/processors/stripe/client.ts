/** Calls to Stripe's API, in the version that events are read in. */
import { textAt } from '../../payouts/rails/answer.ts';
import type { Answer } from '../../payouts/rails/provider_call.ts';
import { api_version } from '../../payouts/rails/stripe.ts';
import { type Caller, callProcessor, messageOf, readProcessor } from '../call.ts';
import type { Account } from '../processor.ts';

const caller: Caller = {
  title: 'Stripe',
  headersOf: ({ credentials }) => ({
    authorization: `Bearer ${credentials.secret_key}`,
    'stripe-version': api_version,
  }),
  wordsIn: (body) => [textAt(body, 'error', 'code'), textAt(body, 'error', 'message')],
};

export interface StripeCall {
  method?: 'GET' | 'POST' | 'DELETE';
  path: string;
  query?: Record<string, string>;
  form?: [string, string][];
}

/** @returns the answer, whose status is below 500 and neither 401 nor 429 @throws KeyRefused, ProcessorAway */
export const callStripe = (account: Account, { form, ...call }: StripeCall): Promise<Answer> =>
  callProcessor(caller, account, {
    ...call,
    ...(form
      ? { body: { text: new URLSearchParams(form).toString(), type: 'application/x-www-form-urlencoded' } }
      : {}),
  });

export const readStripe = (account: Account, path: string, query?: Record<string, string>): Promise<unknown> =>
  readProcessor(caller, account, path, query);

/** Stripe's own words of a refusal, without secrets. */
export const stripeMessage = (answer: Answer, account: Account): string => messageOf(caller, answer, account);
