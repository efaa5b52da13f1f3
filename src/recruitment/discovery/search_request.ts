/** The request of a search. */
import { z } from 'zod';
import { country, domain, language, text } from '../../core/values/fields.ts';
import { ceiling, minorNotNegative } from '../../core/values/money.ts';
import { Problem } from '../../core/values/problem.ts';
import { type SearchType, search_types } from '../runs/run.ts';
import { channels, provider_names } from '../search_providers/provider.ts';
import { no_filters } from './skip.ts';

const most_query = 500;
const most_urls = 500;
const most_list = 150_000;

const search_type_doc = {
  keyword: 'pages and channels for `query`',
  competitor: 'pages that write about `competitor_domain` or link to it',
  lookalike: 'pages and channels like the prospect `like_prospect_id`',
  channel: 'prospects in `channels` for `query`, or for the keywords of the brand',
  url_list: 'the pages whose URLs `query` holds, separated by white space',
} satisfies Record<SearchType, string>;

const filters = {
  one_per_domain: z.boolean().describe('Keeps the first result of each domain.'),
  skip_contacted_days: z
    .int()
    .min(1)
    .max(3650)
    .nullable()
    .describe('Skips prospects that were sent an email within this number of days. Null: no such filter.'),
  skip_unsubscribed: z.boolean().describe('Skips prospects that unsubscribed.'),
  skip_in_campaigns: z
    .boolean()
    .describe('Skips prospects that are in a campaign, and those that were sent an email and have not answered.'),
  skip_homepages: z.boolean().describe('Skips pages that are the homepage of their site.'),
};
const Filters = z.object(filters);

export const request_fields = {
  search_type: z
    .enum(search_types)
    .describe(search_types.map((name) => `\`${name}\`: ${search_type_doc[name]}.`).join(' ')),
  query: text.describe(
    'What is searched for, at most 500 characters. For `url_list`: up to 500 http or https URLs, separated by white space.',
  ),
  competitor_domain: text.describe('The domain of a competitor.'),
  like_prospect_id: text.describe('The prospect (`fdi_…`) that others should be like.'),
  channels: z.array(z.enum(channels)).describe('The channels that results may be in. Empty: any channel.'),
  countries: z
    .array(text)
    .describe('ISO 3166-1 alpha-2 codes that providers are asked for. Empty: those of the brand.'),
  languages: z.array(text).describe('ISO 639-1 codes that providers are asked for. Empty: those of the brand.'),
  max_results: z.int().describe('How many results the search keeps at most.'),
  ceiling_minor: minorNotNegative
    .nullable()
    .describe('The most that the search may spend on search providers, in US cents. Null: what the plan has left.'),
  providers: z
    .array(z.enum(provider_names))
    .nullable()
    .describe(
      'The providers that are asked. Each must be set up. `url_list` is for searches of this type, which ask no other. Null: all that are set up.',
    ),
  filters: Filters.describe('Which results are skipped.'),
};

export const Body = z.strictObject({
  brand_id: z
    .string()
    .min(1)
    .meta({ description: 'The brand that prospects are searched for.', examples: ['fbr_…'] }),
  search_type: request_fields.search_type,
  query: text
    .trim()
    .min(1)
    .max(most_list)
    .optional()
    .describe(`${request_fields.query.description} Required for \`keyword\` and \`url_list\`.`),
  competitor_domain: domain.optional().describe('The domain of a competitor. Required for `competitor`.'),
  like_prospect_id: z
    .string()
    .min(1)
    .optional()
    .describe('The prospect that others should be like. Required for `lookalike`.'),
  channels: z
    .array(z.enum(channels))
    .max(channels.length)
    .default([])
    .describe(`${request_fields.channels.description} Required for \`channel\`.`),
  countries: z
    .array(country)
    .max(50)
    .default([])
    .describe(request_fields.countries.description as string),
  languages: z
    .array(language)
    .max(50)
    .default([])
    .describe(request_fields.languages.description as string),
  max_results: z.int().min(1).max(500).default(50).describe('How many results the search keeps at most, 1 to 500.'),
  ceiling_minor: ceiling
    .nullable()
    .default(null)
    .describe(request_fields.ceiling_minor.description as string),
  providers: z
    .array(z.enum(provider_names))
    .min(1)
    .max(provider_names.length)
    .nullable()
    .default(null)
    .describe(request_fields.providers.description as string),
  filters: z
    .strictObject({
      one_per_domain: filters.one_per_domain.default(no_filters.one_per_domain),
      skip_contacted_days: filters.skip_contacted_days.default(no_filters.skip_contacted_days),
      skip_unsubscribed: filters.skip_unsubscribed.default(no_filters.skip_unsubscribed),
      skip_in_campaigns: filters.skip_in_campaigns.default(no_filters.skip_in_campaigns),
      skip_homepages: filters.skip_homepages.default(no_filters.skip_homepages),
    })
    .default(no_filters)
    .describe('Which results are skipped.'),
});
export type SearchRequest = Omit<z.output<typeof Body>, 'brand_id'>;

/** The fields that each type needs. */
const needed: Record<SearchType, (keyof SearchRequest)[]> = {
  keyword: ['query'],
  competitor: ['competitor_domain'],
  lookalike: ['like_prospect_id'],
  channel: ['channels'],
  url_list: ['query'],
};

/** The fields that a type has no use for. */
const unused: Record<SearchType, (keyof SearchRequest)[]> = {
  keyword: ['competitor_domain', 'like_prospect_id'],
  competitor: ['like_prospect_id'],
  lookalike: ['query', 'competitor_domain'],
  channel: ['competitor_domain', 'like_prospect_id'],
  url_list: ['competitor_domain', 'like_prospect_id'],
};

/** @throws Problem missing_parameter, invalid_parameter */
export function requireComplete(request: SearchRequest): void {
  const { search_type, query, channels: asked } = request;
  const missing = needed[search_type].find((field) => request[field] === undefined);
  if (missing) throw missingFor(missing, search_type);
  if (search_type === 'channel' && asked.length === 0) throw missingFor('channels', search_type);
  const superfluous = unused[search_type].find((field) => request[field] !== undefined);
  if (superfluous) throw superfluousFor(superfluous, search_type);
  requireFittingProviders(request);
  if (search_type === 'url_list') requireUrls(query as string);
  else if (query !== undefined && query.length > most_query) {
    throw new Problem('invalid_parameter', `'query' must have at most ${most_query} characters.`, { param: 'query' });
  }
}

const missingFor = (param: string, search_type: SearchType): Problem =>
  new Problem('missing_parameter', `'${param}' is required for the search type '${search_type}'.`, { param });

const superfluousFor = (param: string, search_type: SearchType): Problem =>
  new Problem('invalid_parameter', `'${param}' is not allowed with the search type '${search_type}'. Remove it.`, {
    param,
  });

/** @throws Problem invalid_parameter for providers that a search of this type does not ask */
function requireFittingProviders({ search_type, providers }: SearchRequest): void {
  const is_list = search_type === 'url_list';
  const wrong = providers?.find((name) => (name === 'url_list') !== is_list);
  if (wrong === undefined) return;
  const remedy = is_list ? "Send ['url_list'] or no providers." : 'Remove it.';
  throw new Problem(
    'invalid_parameter',
    `The provider '${wrong}' is not allowed with the search type '${search_type}'. ${remedy}`,
    {
      param: 'providers',
    },
  );
}

/** The URLs of a list, each once. */
export const urlsOf = (query: string): string[] => [...new Set(query.split(/\s+/).filter((part) => part !== ''))];

function requireUrls(query: string): void {
  const urls = urlsOf(query);
  if (urls.length > most_urls) {
    throw new Problem('invalid_parameter', `'query' must contain at most ${most_urls} URLs.`, { param: 'query' });
  }
  const wrong = urls.find((one) => !/^https?:$/.test(URL.parse(one)?.protocol ?? ''));
  if (wrong === undefined) return;
  throw new Problem('invalid_parameter', "'query' must contain http or https URLs, separated by white space.", {
    param: 'query',
  });
}
