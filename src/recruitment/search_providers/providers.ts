import { brave } from './brave.ts';
import { own_index } from './own_index.ts';
import { type ProviderName, provider_names, type SearchProvider } from './provider.ts';
import { searxng } from './searxng.ts';
import { url_list } from './url_list.ts';
import { youtube } from './youtube.ts';

export const providers: Readonly<Record<ProviderName, SearchProvider>> = {
  searxng,
  brave,
  youtube,
  index: own_index,
  url_list,
};

/** Those that somebody sets up: an organization, or the operator for all of them. */
export const configurable = provider_names.filter((name) => providers[name].credentials !== null);
