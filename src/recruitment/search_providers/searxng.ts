/** A SearXNG instance of one's own: https://docs.searxng.org/dev/search_api.html. JSON must be enabled in its `search.formats`. */

import { z } from 'zod';
import { urlBelow } from '../../core/net/answer.ts';
import { url } from '../../core/values/fields.ts';
import {
  type Hit,
  type ProviderContext,
  ProviderFailure,
  type ProviderQuery,
  type SearchPage,
  type SearchProvider,
} from './provider.ts';
import { type Answer, ask, readAs, retryAfterMs } from './provider_call.ts';

const title = 'SearXNG';
/** Engines seldom have more. */
const last_page = 10;

const Result = z.object({ url: z.string(), title: z.string().catch(''), content: z.string().catch('') });
const Results = z.object({
  results: z.array(z.unknown()),
  unresponsive_engines: z.array(z.unknown()).catch([]),
});

export const searxng: SearchProvider = {
  name: 'searxng',
  title,
  doc: 'a SearXNG instance of your own, with JSON enabled among its formats; free',
  credentials: z.strictObject({ url: url.describe('The address of the instance, such as https://searx.example.com.') }),
  secrets: [],
  url: null,
  price: 0,
  search,
  check,
};

async function* search(query: ProviderQuery, context: ProviderContext, from = '1'): AsyncIterable<SearchPage> {
  for (let number = Number(from); number <= last_page; number++) {
    const hits = await readPage(query, context, number);
    const is_last = hits.length === 0 || number === last_page;
    yield { hits, next: is_last ? null : String(number + 1) };
    if (is_last) return;
  }
}

async function readPage(query: ProviderQuery, context: ProviderContext, number: number): Promise<Hit[]> {
  const address = urlBelow(context.url, '/search', {
    q: query.text,
    format: 'json',
    categories: 'general',
    language: languageOf(query),
    pageno: String(number),
  });
  const answer = await ask(title, address, context);
  refuse(answer);
  const { results, unresponsive_engines } = readAs(title, Results, answer);
  if (results.length === 0 && unresponsive_engines.length > 0 && number === 1) {
    throw new ProviderFailure('unavailable', 'SearXNG answered that none of its engines did.');
  }
  return results.flatMap((result) => {
    const { data } = Result.safeParse(result);
    return data ? [{ url: data.url, title: data.title, description: data.content }] : [];
  });
}

/** `de`, `de-AT`, or what the instance has as its default. */
const languageOf = ({ language, country }: ProviderQuery): string | undefined =>
  language === null ? undefined : language + (country === null ? '' : `-${country}`);

function refuse(answer: Answer): void {
  const { status } = answer;
  if (status === 429) {
    throw new ProviderFailure('rate_limited', 'SearXNG answered 429: its limiter is on.', retryAfterMs(answer));
  }
  if (status === 403) throw new ProviderFailure('refused', 'SearXNG answered 403: enable json in its search.formats.');
  if (status === 400) throw new ProviderFailure('invalid', 'SearXNG refused the query.');
  if (status !== 200) throw new ProviderFailure('unavailable', `SearXNG answered ${status}.`);
}

async function check(context: ProviderContext): Promise<{ warnings: string[] }> {
  const hits = await readPage({ text: 'rail', country: null, language: null }, context, 1);
  return { warnings: hits.length > 0 ? [] : ['The instance answers, and found nothing: check its engines.'] };
}
