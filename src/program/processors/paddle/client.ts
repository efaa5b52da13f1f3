/** How Paddle's API is called. */
import { textAt } from '../../payouts/rails/answer.ts';
import type { Caller } from '../call.ts';

export const caller: Caller = {
  title: 'Paddle',
  headersOf: ({ credentials }) => ({ authorization: `Bearer ${credentials.api_key}`, 'paddle-version': '1' }),
  wordsIn: (body) => [textAt(body, 'error', 'code'), textAt(body, 'error', 'detail')],
};
