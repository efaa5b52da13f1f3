/**
 * YouTube Data API v3: search.list finds channels, channels.list describes them.
 * https://developers.google.com/youtube/v3/docs/search/list
 */

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

const title = 'YouTube';
/** "Acceptable values are 0 to 50", for both calls. */
const page_size = 50;
/** "A call to search.list costs 100 units", and one to channels.list 1. */
const units_of_search = 100;
export const units_of_channels = 1;

const channel_id = /^UC[A-Za-z0-9_-]{22}$/;

const Found = z.object({
  nextPageToken: z.string().optional(),
  items: z.array(z.unknown()),
});
const FoundItem = z.object({ id: z.object({ channelId: z.string() }) });
const Channels = z.object({ items: z.array(z.unknown()).optional() });
const ChannelItem = z.object({
  id: z.string().regex(channel_id),
  snippet: z.object({
    title: z.string().catch(''),
    description: z.string().catch(''),
    country: z.string().optional().catch(undefined),
    defaultLanguage: z.string().optional().catch(undefined),
  }),
  statistics: z
    .object({
      subscriberCount: z.coerce.number().int().optional().catch(undefined),
      hiddenSubscriberCount: z.boolean().catch(false),
    })
    .optional(),
});
const Refusal = z.object({ error: z.object({ errors: z.array(z.object({ reason: z.string() })).catch([]) }) });

export const youtube: SearchProvider = {
  name: 'youtube',
  title,
  doc: 'the YouTube Data API, for channels; free, within the daily quota of its key',
  credentials: z.strictObject({
    api_key: z
      .string()
      .regex(/^[\x21-\x7e]{1,200}$/, 'must be an API key')
      .describe('An API key of a Google Cloud project with the YouTube Data API v3.'),
    daily_quota: z
      .union([z.int(), z.string()])
      .transform(String)
      .pipe(z.string().regex(/^[1-9][0-9]{1,8}$/, 'must be an integer from 10 to 999999999'))
      .optional()
      .describe(
        'An integer: the units that may be used per day, from midnight to midnight Pacific Time. Default: 10000.',
      ),
  }),
  secrets: ['api_key'],
  url: 'https://www.googleapis.com',
  price: 0,
  units: units_of_search + units_of_channels,
  search,
  check,
};

async function* search(query: ProviderQuery, context: ProviderContext, from?: string): AsyncIterable<SearchPage> {
  for (let token = from; ; ) {
    const { ids, next } = await findChannels(query, context, token);
    yield { hits: await describe(ids, context), next: next ?? null };
    if (next === undefined) return;
    token = next;
  }
}

async function findChannels(query: ProviderQuery, context: ProviderContext, token: string | undefined) {
  const answer = await call(context, '/youtube/v3/search', {
    part: 'snippet',
    type: 'channel',
    maxResults: String(page_size),
    q: query.text,
    regionCode: query.country ?? undefined,
    relevanceLanguage: query.language ?? undefined,
    pageToken: token,
  });
  const { items, nextPageToken } = readAs(title, Found, answer);
  const ids = items.flatMap((item) => FoundItem.safeParse(item).data?.id.channelId ?? []);
  return { ids: [...new Set(ids)], next: items.length > 0 ? nextPageToken : undefined };
}

async function describe(ids: string[], context: ProviderContext): Promise<Hit[]> {
  if (ids.length === 0) return [];
  const answer = await call(context, '/youtube/v3/channels', {
    part: 'snippet,statistics',
    maxResults: String(page_size),
    id: ids.join(','),
  });
  const { items = [] } = readAs(title, Channels, answer);
  const hits = items.flatMap((item): [string, Hit][] => {
    const { data } = ChannelItem.safeParse(item);
    return data ? [[data.id, hitOf(data)]] : [];
  });
  const by_id = new Map(hits);
  return ids.flatMap((id) => by_id.get(id) ?? []);
}

/** Reads the description of a channel, by its id or handle. Undefined where there is no such channel. @throws ProviderFailure */
export async function describeChannel(key: string, context: ProviderContext): Promise<string | undefined> {
  const named = channel_id.test(key) ? { id: key } : { forHandle: `@${key}` };
  const answer = await call(context, '/youtube/v3/channels', { part: 'snippet', ...named });
  const [item] = readAs(title, Channels, answer).items ?? [];
  return ChannelItem.safeParse(item).data?.snippet.description;
}

function hitOf({ id, snippet, statistics }: z.infer<typeof ChannelItem>): Hit {
  const followers = statistics?.hiddenSubscriberCount ? undefined : statistics?.subscriberCount;
  const language = snippet.defaultLanguage?.slice(0, 2).toLowerCase();
  return {
    url: `https://www.youtube.com/channel/${id}`,
    title: snippet.title,
    description: snippet.description,
    channel: 'youtube',
    key: id,
    ...(followers === undefined ? {} : { followers }),
    ...(snippet.country && /^[A-Z]{2}$/.test(snippet.country) ? { country_code: snippet.country } : {}),
    ...(language && /^[a-z]{2}$/.test(language) ? { language_code: language } : {}),
  };
}

/** The key goes in a header, which no log of a proxy holds. */
async function call(
  context: ProviderContext,
  path: string,
  query: Record<string, string | undefined>,
): Promise<Answer> {
  const answer = await ask(title, urlBelow(context.url, path, query), context, {
    'x-goog-api-key': context.credentials.api_key ?? '',
  });
  refuse(answer);
  return answer;
}

const quota_reasons = ['quotaExceeded', 'dailyLimitExceeded'];
const rate_reasons = ['rateLimitExceeded', 'userRateLimitExceeded'];
const key_reasons = ['keyInvalid', 'badRequest', 'accessNotConfigured', 'forbidden', 'ipRefererBlocked', 'keyExpired'];

/** https://developers.google.com/youtube/v3/docs/core_errors */
function refuse(answer: Answer): void {
  const { status, body } = answer;
  if (status === 200) return;
  const reasons = Refusal.safeParse(body).data?.error.errors.map(({ reason }) => reason) ?? [];
  const has = (known: string[]) => reasons.some((reason) => known.includes(reason));
  if (has(quota_reasons))
    throw new ProviderFailure('quota_exhausted', "The key's quota at YouTube is used up for today.");
  if (status === 429 || has(rate_reasons)) {
    throw new ProviderFailure('rate_limited', 'YouTube answered that it is asked too often.', retryAfterMs(answer));
  }
  if (status === 401 || status === 403 || has(key_reasons)) {
    throw new ProviderFailure('refused', 'YouTube refuses the API key.');
  }
  if (status === 400 || status === 404) throw new ProviderFailure('invalid', 'YouTube refused the query.');
  throw new ProviderFailure('unavailable', `YouTube answered ${status}.`);
}

/** One unit. */
async function check(context: ProviderContext): Promise<{ warnings: string[] }> {
  await call(context, '/youtube/v3/channels', { part: 'id', id: 'UC_x5XG1OV2P6uZZ5FSM9Ttw' });
  return { warnings: [] };
}
