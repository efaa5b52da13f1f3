/** Servers on loopback that answer as the documentation of each search provider says. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import type { Json } from '../../harness.ts';

/** A page on the web, as a provider knows it. */
export interface Listed {
  url: string;
  title?: string;
  description?: string;
}

export interface Call {
  path: string;
  query: Record<string, string>;
  headers: IncomingMessage['headers'];
}

type Reply = { status: number; headers?: Record<string, string>; body: unknown };

export interface SearchServer {
  url: string;
  calls: Call[];
  /** Returns the answer in place of results; undefined: results. `hang`: none. Called with the number of the call, from 1. */
  fault: (call: Call, number: number) => Reply | 'hang' | 'reset' | undefined | Promise<undefined>;
  /** Settles with the call of this number, once it has come. */
  called(number: number): Promise<Call>;
}

async function serve(answer: (call: Call) => Reply): Promise<SearchServer> {
  const waiting: { number: number; resolve: (call: Call) => void }[] = [];
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://loopback');
    const call = { path: pathname, query: Object.fromEntries(searchParams), headers: request.headers };
    const number = self.calls.push(call);
    for (const one of waiting) if (one.number <= number) one.resolve(call);
    const fault = await self.fault(call, number);
    if (fault === 'hang') return;
    if (fault === 'reset') return void request.socket.destroy();
    reply(response, fault ?? answer(call));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const self: SearchServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: [],
    fault: () => undefined,
    called: (number) => {
      const { promise, resolve } = Promise.withResolvers<Call>();
      const call = self.calls[number - 1];
      if (call) resolve(call);
      else waiting.push({ number, resolve });
      return promise;
    },
  };
  return self;
}

function reply(response: ServerResponse, { status, headers = {}, body }: Reply): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
}

const sliced = <Item>(items: Item[], page: number, size: number): Item[] => items.slice(page * size, (page + 1) * size);

/** SearXNG: `pageno` from 1, ten results a page, `results` with `url`, `title`, `content`. */
export const startSearxng = (listed: Listed[]): Promise<SearchServer> =>
  serve(({ path, query }) => {
    if (path !== '/search' || query.format !== 'json') return { status: 403, body: 'Forbidden' };
    const results = sliced(listed, Number(query.pageno ?? 1) - 1, 10).map(({ url, title = url, description = '' }) => ({
      ...{ url, title, content: description, engine: 'duckduckgo', engines: ['duckduckgo'], positions: [1], score: 1 },
      ...{ category: 'general', template: 'default.html', parsed_url: ['https', new URL(url).host, '/', '', '', ''] },
    }));
    return {
      status: 200,
      body: {
        ...{ query: query.q, number_of_results: 0, results, answers: [], corrections: [], infoboxes: [] },
        ...{ suggestions: [], unresponsive_engines: [] },
      },
    };
  });

export const brave_key = 'BSAtest-key';
/** The answer of Brave when it is asked too often; `remaining` and `reset` for the second and the month. */
export const braveTooMany = (remaining: string, reset: string): Reply => ({
  status: 429,
  headers: {
    'x-ratelimit-limit': '1, 15000',
    'x-ratelimit-policy': '1;w=1, 15000;w=2592000',
    'x-ratelimit-remaining': remaining,
    'x-ratelimit-reset': reset,
  },
  body: {
    type: 'ErrorResponse',
    error: {
      ...{ id: '0b4f', status: 429, code: 'RATE_LIMITED', detail: 'Request rate limit exceeded for plan.' },
      meta: {
        plan: 'Free',
        rate_limit: 1,
        rate_current: 1,
        quota_limit: 2000,
        quota_current: 1,
        component: 'rate_limiter',
      },
    },
  },
});

/** Brave: `offset` from 0 to 9 counts pages of `count`, at most 20. */
export const startBrave = (listed: Listed[]): Promise<SearchServer> =>
  serve(({ path, query, headers }) => {
    if (path !== '/res/v1/web/search') return { status: 404, body: {} };
    if (headers['x-subscription-token'] !== brave_key) return braveInvalid('SUBSCRIPTION_TOKEN_INVALID');
    const [count, offset] = [Number(query.count ?? 20), Number(query.offset ?? 0)];
    if (count > 20 || offset > 9 || (query.q ?? '').length > 400) return braveInvalid('VALIDATION');
    const results = sliced(listed, offset, count).map(({ url, title = url, description = '' }) => ({
      ...{
        title,
        url,
        is_source_local: false,
        is_source_both: false,
        description,
        language: 'en',
        family_friendly: true,
      },
      ...{ type: 'search_result', subtype: 'generic' },
    }));
    return {
      status: 200,
      headers: {
        'x-ratelimit-limit': '1, 15000',
        'x-ratelimit-remaining': '0, 14999',
        'x-ratelimit-reset': '1, 1419704',
      },
      body: {
        query: {
          original: query.q,
          more_results_available: listed.length > (offset + 1) * count,
          is_navigational: false,
        },
        type: 'search',
        web: { type: 'search', results, family_friendly: true },
      },
    };
  });

const braveInvalid = (code: string): Reply => ({
  status: 422,
  body: {
    type: 'ErrorResponse',
    error: { id: 'a3d9', status: 422, code, detail: 'The request is not valid.', meta: {} },
  },
});

export const youtube_key = 'AIzaTest';
export interface ListedChannel {
  id: string;
  title: string;
  subscribers?: string;
  country?: string;
  description?: string;
  /** With its `@`. */
  handle?: string;
}
export const youtubeError = (status: number, reason: string, domain = 'youtube.quota'): Reply => ({
  status,
  body: {
    error: { code: status, message: 'It cannot be completed.', errors: [{ message: 'It cannot.', domain, reason }] },
  },
});

/** YouTube: search.list with `pageToken`, channels.list with up to 50 ids in any order, or a handle. */
export const startYoutube = (channels: ListedChannel[]): Promise<SearchServer> =>
  serve(({ path, query, headers }) => {
    if (headers['x-goog-api-key'] !== youtube_key) return youtubeError(400, 'keyInvalid', 'usageLimits');
    const size = Number(query.maxResults ?? 5);
    if (path === '/youtube/v3/search' && query.type === 'channel') {
      const page = query.pageToken === undefined ? 0 : Number(query.pageToken.slice(3));
      const items = sliced(channels, page, size).map(({ id, title }) => ({
        ...{ kind: 'youtube#searchResult', etag: 'e', id: { kind: 'youtube#channel', channelId: id } },
        snippet: { channelId: id, title, description: '', channelTitle: title },
      }));
      const more = channels.length > (page + 1) * size ? { nextPageToken: `CDI${page + 1}` } : {};
      return {
        status: 200,
        body: {
          kind: 'youtube#searchListResponse',
          ...more,
          pageInfo: { totalResults: channels.length, resultsPerPage: size },
          items,
        },
      };
    }
    if (path !== '/youtube/v3/channels') return { status: 404, body: {} };
    const asked = (query.id ?? '').split(',');
    const items = channels
      .filter(({ id, handle }) => asked.includes(id) || (handle !== undefined && handle === query.forHandle))
      .reverse()
      .map(channelOf);
    return { status: 200, body: { kind: 'youtube#channelListResponse', ...(items.length > 0 ? { items } : {}) } };
  });

const channelOf = ({ id, title, subscribers, country, description = `About ${title}` }: ListedChannel): Json => ({
  ...{ kind: 'youtube#channel', etag: 'e', id },
  snippet: { title, description, ...(country ? { country } : {}) },
  statistics:
    subscribers === undefined
      ? { hiddenSubscriberCount: true }
      : { subscriberCount: subscribers, hiddenSubscriberCount: false },
});
