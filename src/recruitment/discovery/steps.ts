/** Plans which provider is asked what: pure functions on plain values. */
import type { Channel, ProviderName, ProviderQuery } from '../search_providers/provider.ts';

/** One query to one provider, and where it stands. It is kept with the run. */
export interface Step {
  provider: ProviderName;
  query: ProviderQuery;
  /** The place where its next page begins. Null: its first one. */
  cursor: string | null;
  pages: number;
  /** The reason why it is asked no more. Null: it goes on. */
  over: 'end' | 'failed' | 'ceiling' | null;
}

/** The things that are looked for, whoever is asked. */
export interface Wanted {
  texts: string[];
  channels: Channel[];
  countries: string[];
  languages: string[];
  /** Pages that link to this domain, where the index is asked. */
  links_to?: string;
  /** Pages that are named, in place of everything else. */
  urls?: string[];
}

const most_steps = 24;
const most_locales = 4;

/** The words that a web search for a channel adds to a text. Undefined: the channel has no words of its own. */
const channel_words: Readonly<Record<Channel, string>> = {
  website: '',
  other: '',
  podcast: 'podcast',
  newsletter: 'newsletter',
  youtube: 'site:youtube.com',
  instagram: 'site:instagram.com',
  tiktok: 'site:tiktok.com',
  x: 'site:x.com',
};

/** The steps of a run, each provider's first text first, so that what is likely to fit best is asked first. */
export function planSteps(wanted: Wanted, providers: ProviderName[]): Step[] {
  if (wanted.urls) return [stepOf('url_list', { text: '', country: null, language: null, urls: wanted.urls })];
  const by_provider = providers
    .filter((name) => name !== 'url_list')
    .map((name) => queriesFor(name, wanted).map((query) => stepOf(name, query)));
  return interleaved(by_provider).slice(0, most_steps);
}

const stepOf = (provider: ProviderName, query: ProviderQuery): Step => ({
  ...{ provider, query, cursor: null, pages: 0, over: null },
});

function queriesFor(provider: ProviderName, wanted: Wanted): ProviderQuery[] {
  const { texts, channels, links_to } = wanted;
  if (provider === 'index') {
    const links = links_to === undefined ? [] : [{ text: '', country: null, language: null, links_to }];
    return [...links, ...texts.map((text) => ({ text, country: null, language: null }))];
  }
  const locales = localesOf(wanted);
  if (provider === 'youtube') {
    if (channels.length > 0 && !channels.includes('youtube')) return [];
    return texts.flatMap((text) => locales.map((locale) => ({ text, ...locale })));
  }
  const words = [
    ...new Set((channels.length > 0 ? channels : ['website' as const]).map((name) => channel_words[name])),
  ];
  return texts.flatMap((text) =>
    words.flatMap((word) => locales.map((locale) => ({ text: `${text} ${word}`.trim(), ...locale }))),
  );
}

/** Languages with countries, or any. */
function localesOf({ countries, languages }: Wanted): Pick<ProviderQuery, 'country' | 'language'>[] {
  const any: (string | null)[] = [null];
  const pairs = (languages.length > 0 ? languages : any).flatMap((language) =>
    (countries.length > 0 ? countries : any).map((country) => ({ country, language })),
  );
  return pairs.slice(0, most_locales);
}

const interleaved = <Item>(lists: Item[][]): Item[] =>
  Array.from({ length: Math.max(0, ...lists.map(({ length }) => length)) }, (_, nth) =>
    lists.flatMap((list) => list.slice(nth, nth + 1)),
  ).flat();

/** The step that is to be asked next: all have their first page before one has its second. Undefined: all are over. */
export function nextStep(steps: Step[]): number | undefined {
  const open = steps.flatMap(({ over, pages }, place) => (over === null ? [{ place, pages }] : []));
  const fewest = Math.min(...open.map(({ pages }) => pages));
  return open.find(({ pages }) => pages === fewest)?.place;
}

/** The steps after a page of one of them: `next` as the provider gave it. */
export const afterPage = (steps: Step[], place: number, next: string | null): Step[] =>
  steps.map((step, nth) =>
    nth === place ? { ...step, cursor: next, pages: step.pages + 1, over: next === null ? 'end' : null } : step,
  );

/** The steps once one of them, or all of its provider, are asked no more. */
export const without = (steps: Step[], place: number, over: 'failed' | 'ceiling', whole_provider: boolean): Step[] =>
  steps.map((step, nth) => {
    const is_meant = nth === place || (whole_provider && step.provider === steps[place]?.provider);
    return is_meant && step.over === null ? { ...step, over } : step;
  });

/** The texts that a competitor is searched by. */
export function textsOfCompetitor(domain: string): string[] {
  const name = domain.split('.')[0] as string;
  return [`"${domain}"`, `${name} review`, `${name} coupon`, `${name} alternative`, `${name} affiliate`];
}
