/** All providers: three that are called, the organization's own index, and a list of URLs. */
import { brave } from './brave.ts';
import {
  type ProviderContext,
  ProviderFailure,
  type ProviderName,
  type ProviderQuery,
  provider_names,
  type SearchPage,
  type SearchProvider,
} from './provider.ts';
import { searxng } from './searxng.ts';
import { youtube } from './youtube.ts';

const index_page = 50;

/** Everything that was ever fetched for the organization, as full text in Postgres. */
const own_index: SearchProvider = {
  name: 'index',
  title: 'The index',
  doc: 'full text over all pages that were ever fetched for the organization; free',
  credentials: null,
  secrets: [],
  url: null,
  price: 0,
  search: searchIndex,
  check: async () => ({ warnings: [] }),
};

async function* searchIndex(query: ProviderQuery, context: ProviderContext, from = '0'): AsyncIterable<SearchPage> {
  const { findPages } = context;
  if (!findPages) throw new ProviderFailure('unavailable', 'The index cannot be read here.');
  for (let after = Number(from); ; after += index_page) {
    const hits = await findPages(query, index_page, after);
    const is_last = hits.length < index_page;
    yield { hits, next: is_last ? null : String(after + index_page) };
    if (is_last) return;
  }
}

const list_page = 100;

/** Pages that the caller names, as if somebody had found them. */
const url_list: SearchProvider = {
  name: 'url_list',
  title: 'The list of URLs',
  doc: 'the pages that a search of the type `url_list` names; free',
  credentials: null,
  secrets: [],
  url: null,
  price: 0,
  search: listUrls,
  check: async () => ({ warnings: [] }),
};

async function* listUrls({ urls = [] }: ProviderQuery, _: ProviderContext, from = '0'): AsyncIterable<SearchPage> {
  for (let after = Number(from); after === 0 || after < urls.length; after += list_page) {
    const hits = urls.slice(after, after + list_page).map((url) => ({ url, title: '', description: '' }));
    const next = after + list_page < urls.length ? String(after + list_page) : null;
    yield { hits, next };
  }
}

export const providers: Readonly<Record<ProviderName, SearchProvider>> = {
  searxng,
  brave,
  youtube,
  index: own_index,
  url_list,
};

/** The providers that somebody sets up: an organization, or the operator for all of them. */
export const configurable = provider_names.filter((name) => providers[name].credentials !== null);
