/** How Chargebee's API is called. */
import { textAt } from '../../payouts/rails/answer.ts';
import type { Caller } from '../call.ts';
import type { Account } from '../processor.ts';

export const caller: Caller = {
  title: 'Chargebee',
  headersOf: ({ credentials }) => ({
    authorization: `Basic ${Buffer.from(`${credentials.api_key}:`).toString('base64')}`,
  }),
  wordsIn: (body) => [textAt(body, 'api_error_code'), textAt(body, 'message')],
};

/** Each site has a host of its own. */
export const atSite = (account: Account): Account => ({
  ...account,
  url: account.url.replace('{site}', account.credentials.site ?? ''),
});
