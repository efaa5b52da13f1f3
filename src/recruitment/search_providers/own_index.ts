/** Everything that was ever fetched for the organization, as full text in Postgres. */
import {
  type ProviderContext,
  ProviderFailure,
  type ProviderQuery,
  type SearchPage,
  type SearchProvider,
} from './provider.ts';

const page_size = 50;

export const own_index: SearchProvider = {
  name: 'index',
  title: 'The index',
  doc: 'full text over all pages that were ever fetched for the organization; free',
  credentials: null,
  secrets: [],
  url: null,
  price: 0,
  search,
  check: async () => ({ warnings: [] }),
};

async function* search(query: ProviderQuery, context: ProviderContext, from = '0'): AsyncIterable<SearchPage> {
  const { findPages } = context;
  if (!findPages) throw new ProviderFailure('unavailable', 'The index cannot be read here.');
  for (let after = Number(from); ; after += page_size) {
    const hits = await findPages(query, page_size, after);
    const is_last = hits.length < page_size;
    yield { hits, next: is_last ? null : String(after + page_size) };
    if (is_last) return;
  }
}
