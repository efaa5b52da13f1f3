/** Pages that the caller names, as if somebody had found them. */
import type { ProviderContext, ProviderQuery, SearchPage, SearchProvider } from './provider.ts';

const page_size = 100;

export const url_list: SearchProvider = {
  name: 'url_list',
  title: 'The list of URLs',
  doc: 'the pages that a search of the type `url_list` names; free',
  credentials: null,
  secrets: [],
  url: null,
  price: 0,
  search,
  check: async () => ({ warnings: [] }),
};

async function* search({ urls = [] }: ProviderQuery, _: ProviderContext, from = '0'): AsyncIterable<SearchPage> {
  for (let after = Number(from); after === 0 || after < urls.length; after += page_size) {
    const hits = urls.slice(after, after + page_size).map((url) => ({ url, title: '', description: '' }));
    const next = after + page_size < urls.length ? String(after + page_size) : null;
    yield { hits, next };
  }
}
