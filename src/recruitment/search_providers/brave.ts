/** Brave's web search API: https://api-dashboard.search.brave.com/app/documentation/web-search/get-started */

import { z } from 'zod';
import { urlBelow } from '../../core/net/answer.ts';
import {
  type Hit,
  type ProviderContext,
  ProviderFailure,
  type ProviderQuery,
  type SearchPage,
  type SearchProvider,
} from './provider.ts';
import { type Answer, ask, readAs, retryAfterMs } from './provider_call.ts';

const title = 'Brave Search';
/** "Max 20"; `offset` counts pages, "max 9". */
const page_size = 20;
const last_offset = 9;
/** "Maximum of 400 characters and 50 words in the query." */
const most_characters = 400;
const most_words = 50;
/** A used-up window that is longer than this is a quota, not a rate. */
const longest_rate_window_s = 60;

const Result = z.object({
  url: z.string(),
  title: z.string().catch(''),
  description: z.string().catch(''),
  language: z.string().optional().catch(undefined),
});
const Results = z.object({
  query: z.object({ more_results_available: z.boolean().catch(false) }).catch({ more_results_available: false }),
  web: z.object({ results: z.array(z.unknown()) }).optional(),
  type: z.literal('search'),
});
const Refusal = z.object({ error: z.object({ code: z.string().catch(''), detail: z.string().catch('') }) });

export const brave: SearchProvider = {
  name: 'brave',
  title,
  doc: "Brave's web search API; 5 US dollars for 1,000 pages",
  credentials: z.strictObject({
    api_key: z
      .string()
      .regex(/^[\x21-\x7e]{1,200}$/, 'must be an API key')
      .describe("The key of your plan in Brave's dashboard."),
  }),
  secrets: ['api_key'],
  url: 'https://api.search.brave.com',
  price: 5_000,
  search,
  skip: (from = '0') => (Number(from) < last_offset ? String(Number(from) + 1) : null),
  check,
};

async function* search(query: ProviderQuery, context: ProviderContext, from = '0'): AsyncIterable<SearchPage> {
  for (let offset = Number(from); offset <= last_offset; offset++) {
    const { hits, more } = await readPage(query, context, offset, page_size);
    const is_last = !more || offset === last_offset;
    yield { hits, next: is_last ? null : String(offset + 1) };
    if (is_last) return;
  }
}

async function readPage(
  query: ProviderQuery,
  context: ProviderContext,
  offset: number,
  count: number,
): Promise<{ hits: Hit[]; more: boolean }> {
  const address = urlBelow(context.url, '/res/v1/web/search', {
    q: shortened(query.text),
    count: String(count),
    offset: String(offset),
    country: query.country ?? undefined,
    search_lang: query.language ?? undefined,
    result_filter: 'web',
    text_decorations: 'false',
    spellcheck: 'false',
  });
  const answer = await ask(title, address, context, { 'x-subscription-token': context.credentials.api_key ?? '' });
  refuse(answer);
  const { web, query: asked } = readAs(title, Results, answer);
  const hits = (web?.results ?? []).flatMap((result): Hit[] => {
    const { data } = Result.safeParse(result);
    return data ? [hitOf(data)] : [];
  });
  return { hits, more: asked.more_results_available };
}

const hitOf = ({ language, ...hit }: z.infer<typeof Result>): Hit =>
  language && /^[a-z]{2}$/.test(language) ? { ...hit, language_code: language } : hit;

const shortened = (text: string): string => text.split(/\s+/).slice(0, most_words).join(' ').slice(0, most_characters);

function refuse(answer: Answer): void {
  const { status } = answer;
  if (status === 200) return;
  if (status === 429) throw tooMany(answer);
  const { data } = Refusal.safeParse(answer.body);
  const code = data?.error.code ?? '';
  if (status === 401 || status === 403 || /TOKEN|SUBSCRIPTION/.test(code)) {
    throw new ProviderFailure('refused', 'Brave Search refuses the API key.');
  }
  if (status === 402) throw new ProviderFailure('quota_exhausted', 'The quota of the plan at Brave Search is used up.');
  if (status === 422 || status === 400 || status === 404) {
    throw new ProviderFailure('invalid', 'Brave Search refused the query.');
  }
  throw new ProviderFailure('unavailable', `Brave Search answered ${status}.`);
}

/**
 * `X-RateLimit-Remaining` and `X-RateLimit-Reset` have a value for each window of `X-RateLimit-Policy`: `1;w=1, 15000;w=2592000`. Calls that
 * are refused do not count.
 */
function tooMany(answer: Answer): ProviderFailure {
  const remaining = numbersIn(answer, 'x-ratelimit-remaining');
  const resets = numbersIn(answer, 'x-ratelimit-reset');
  const used_up = resets.filter((_, place) => (remaining[place] ?? 1) <= 0);
  const wait_s = Math.max(0, ...used_up);
  if (wait_s > longest_rate_window_s) {
    return new ProviderFailure('quota_exhausted', 'The quota of the plan at Brave Search is used up.', wait_s * 1_000);
  }
  const wait_ms = retryAfterMs(answer) ?? Math.max(wait_s, 1) * 1_000;
  return new ProviderFailure('rate_limited', 'Brave Search answered 429.', wait_ms);
}

const numbersIn = ({ headers }: Answer, name: string): number[] =>
  String(headers[name] ?? '')
    .split(',')
    .map((value) => Number.parseInt(value, 10))
    .filter((value) => Number.isSafeInteger(value));

async function check(context: ProviderContext): Promise<{ warnings: string[] }> {
  await readPage({ text: 'rail', country: null, language: null }, context, 0, 1);
  return { warnings: [] };
}
