/** One call to a processor's API, and what is known of it. */
import { retryAfterOf, urlBelow } from '../../core/net/answer.ts';
import { Problem } from '../../core/values/problem.ts';
import { quoted } from '../payouts/rails/answer.ts';
import { type Answer, callProvider } from '../payouts/rails/provider_call.ts';
import { type Account, KeyRefused, ProcessorAway } from './processor.ts';

/** A page of a hundred events. */
const most_answer_bytes = 32 * 1024 * 1024;

export interface Call {
  method?: 'GET' | 'POST' | 'DELETE';
  path: string;
  query?: Record<string, string>;
  /** Sent as it is, of the media type. */
  body?: { text: string; type: string };
}

/** The way in which one processor is called. */
export interface Caller {
  title: string;
  headersOf(account: Account): Record<string, string>;
  /** The processor's own words of a refusal: a code and a sentence. */
  wordsIn(body: unknown): (string | undefined)[];
}

/** Returns a processor's own words of a refusal, without secrets. */
export function messageOf({ title, wordsIn }: Caller, { status, body }: Answer, { credentials }: Account): string {
  const words = wordsIn(body).filter((word) => word !== undefined);
  return quoted(words.join(': '), Object.values(credentials)) || `${title} answered ${status}.`;
}

/**
 * @returns the answer, whose status is below 500 and neither 401 nor 429
 * @throws KeyRefused, ProcessorAway
 */
export async function callProcessor(caller: Caller, account: Account, call: Call): Promise<Answer> {
  const { title, headersOf } = caller;
  const { method = 'GET', path, query, body } = call;
  const result = await callProvider({
    method,
    url: urlBelow(account.url, path, query),
    headers: { ...headersOf(account), ...(body ? { 'content-type': body.type } : {}) },
    ...(body ? { body: body.text } : {}),
    ...{ cut_off: account.cut_off, most_bytes: most_answer_bytes },
  });
  if (result.kind !== 'answered') throw new ProcessorAway(`${title} could not be asked: ${result.reason}.`);
  if (result.status === 401) throw new KeyRefused(messageOf(caller, result, account));
  if (result.status === 429 || result.status >= 500) {
    const wait = retryAfterOf(result.headers['retry-after']);
    throw new ProcessorAway(`${title} answered ${result.status}${wait ? ` and asks for ${wait} seconds` : ''}.`);
  }
  return result;
}

/** Reads one object or list. @throws KeyRefused also where the key may not read it, ProcessorAway  @returns undefined where there is none */
export async function readProcessor(
  caller: Caller,
  account: Account,
  path: string,
  query?: Record<string, string>,
): Promise<unknown> {
  const answer = await callProcessor(caller, account, { path, ...(query ? { query } : {}) });
  if (answer.status === 403) throw new KeyRefused(messageOf(caller, answer, account));
  if (answer.status === 404) return undefined;
  if (answer.status !== 200 || answer.body === undefined)
    throw new ProcessorAway(`${caller.title} answered ${answer.status}: ${messageOf(caller, answer, account)}`);
  return answer.body;
}

/** Turns what goes wrong while credentials are tried into the problem of the request. @param field of the credentials */
export const translated =
  (title: string, field: string) =>
  (error: unknown): never => {
    if (error instanceof KeyRefused)
      throw new Problem('invalid_parameter', `${title} refuses the key: ${error.message}`, { param: field });
    if (error instanceof ProcessorAway)
      throw new Problem('service_unavailable', `${title} does not answer. Try again.`);
    throw error;
  };

/** A code that customers enter belongs to another coupon at the processor. */
export const codeTaken = (title: string, code: string): Problem =>
  new Problem(
    'invalid_parameter',
    `${title} has a coupon with the code ${code} already, with other terms or of somebody else. Send another code, or the id of that one as external_id.`,
    { param: 'code' },
  );

/** @param field of the promotion that is refused; undefined where it is none of them */
export function promotionRefused(
  title: string,
  status: number,
  { words, field, permission }: { words: string; field: string | undefined; permission: string },
): Problem {
  if (status === 403)
    return new Problem('invalid_parameter', `The key of ${title} may not ${permission}: ${words}`, {});
  return new Problem('invalid_parameter', `${title} refuses the coupon: ${words}`, field ? { param: field } : {});
}
