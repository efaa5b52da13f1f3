import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { request } from 'undici';
import { openDatabase } from '../../src/core/postgres/database.ts';
import type { Operation } from '../../src/core/resource/operation.ts';
import { operations } from '../../src/operations.ts';
import { type Bench, type Figure, percentile, type Sample, type Side } from './harness.ts';
import { type Asked, closedLoop, latencies } from './load.ts';
import { type Merchant, makeMerchant } from './merchant.ts';
import { cpuOf, postmasterOf, type Running, startNode, startPostgres } from './processes.ts';
import { fill } from './rows.ts';

const rows = 100_000;
const connections = 4;
/** The distance from the end of a list, so that a filter that lets every tenth row pass still has a whole page there. */
const from_the_end = 500;

/** Every list over 100,000 rows of one program, and every create into it. */
export const api: Bench = {
  name: 'api',
  doc: `Each list, with ${rows.toLocaleString('en')} rows of each resource in one program, and each create.`,
  defaults: { rounds: 3, seconds: 2 },
  async setup(stack, progress) {
    const url = await startPostgres(stack);
    const environment = {
      DATABASE_URL: url,
      RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      RAIL_WEBHOOK_ALLOW_PRIVATE: '1',
      LOG_LEVEL: 'info',
    };
    const server = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const database = openDatabase(url, { size: 2, name: 'rail bench' });
    stack.defer(() => database.end());
    const merchant = await makeMerchant(database, server);
    const { id: program_id } = await merchant.post('/v1/programs', { ...shop, name: 'Big' });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    stack.defer(() => client.end());
    const tails = await fill(client, { organization_id: merchant.organization_id, program_id }, rows, (line) =>
      progress(`api: ${line}`),
    );
    progress('api: folding the tallies, vacuum');
    await fold(client);
    await client.query('vacuum (analyze)');
    const place: Place = { server, merchant, program_id, tails, postgres: await postmasterOf(url) };
    const lists = await Promise.all(operations.filter(isList).map((list) => pagesOf(place, list)));
    const short = lists.filter(({ total_count }) => total_count < rows).map(({ name }) => name);
    return {
      postgres_url: url,
      figures: { ...figures, ...Object.assign({}, ...lists.map(({ pages }) => figuresOf(pages))) },
      notes: [
        ...notes,
        ...(short.length > 0 ? [`Fewer than ${rows} rows, because rows.ts makes none: ${short.join(', ')}.`] : []),
      ],
      sides: [
        ...lists.map((list) => listSide(place, list, () => fold(client))),
        ...Object.entries(bodies).map(([plural, body]) => createSide(place, plural, body)),
      ],
    };
  },
};

const notes = [
  'The client, the API, Postgres and whatever else the machine does share its cores: trust the ratios, which are taken over requests in turn.',
  'No worker runs: what the creates leave to jobs is not in their figures. Before each list the tallies are folded, as a worker does every five seconds under load.',
  'Every tenth row belongs to one partner, with one link and one coupon: the newest of each list, on its first page, and so is the program that holds all rows.',
];

const figures: Record<string, Figure> = {
  requests: { unit: '/s', better: 'higher', doc: `requests answered in a second, ${connections} connections` },
  p50: {
    unit: 'ms',
    better: 'lower',
    doc: 'a request under that load; of a list, its first page without anything besides',
  },
  p99: { unit: 'ms', better: 'lower', doc: 'the same' },
  server_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of the process that answers it' },
  postgres_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of Postgres' },
};

const fold = (client: pg.Client): Promise<unknown> => client.query('select program.fold_tallies(2147483647)');

const shop = { website_url: 'https://shop.example.com', currency: 'USD' };

interface Place {
  server: Running;
  postgres: number | undefined;
  merchant: Merchant;
  program_id: string;
  tails: string[];
}

/** A page of a list, and the page of the same list that its latency is divided by. */
interface Page {
  name: string;
  doc: string;
  query: Record<string, string>;
  beside?: string;
  at_most?: number;
}

interface List {
  name: string;
  path: string;
  total_count: number;
  pages: Page[];
}

// biome-ignore lint/suspicious/noExplicitAny: a query schema's fields are of every kind
type Shape = Record<string, any>;
const shapeOf = ({ query }: Operation): Shape => (query as unknown as { shape?: Shape }).shape ?? {};
const isList = (operation: Operation): boolean =>
  operation.method === 'GET' && /^\/v1\/(?!reports)/.test(operation.path) && 'limit' in shapeOf(operation);

/** Returns the requests of a list: plain, with everything besides, by each filter, and at the end. */
async function pagesOf(place: Place, operation: Operation): Promise<List> {
  const { program_id, tails } = place;
  const { name, path: template } = operation;
  const {
    limit,
    starting_after,
    ending_before,
    program_id: within,
    format,
    bom,
    timezone,
    expand,
    include,
    ...filters
  } = shapeOf(operation);
  const path = template.replace('{id}', `whe_${tails.at(-1)}`);
  const scope: Record<string, string> = within ? { program_id } : {};
  const { data, total_count } = await read(place, path, scope);
  const [prefix] = /^[a-z]+_/.exec(data[0]?.id ?? '') ?? [''];
  const oldest_first = data[0]?.id === prefix + tails[0];
  const nth = (index: number): string => `${prefix}${tails[oldest_first ? index : tails.length - 1 - index]}`;
  const middle =
    total_count < rows ? { data } : await read(place, path, { ...scope, limit: '100', starting_after: nth(rows / 2) });
  const besides = besidesOf(expand, include);
  const pages: Page[] = [
    { name: 'plain', doc: 'the first page', query: scope },
    { name: 'page_of_100', doc: 'the same, 100 a page', query: { ...scope, limit: '100' }, beside: 'plain' },
  ];
  if (Object.keys(besides).length > 0) {
    pages.push(
      {
        name: 'everything',
        doc: 'the first page with every expand and include[]=stats',
        query: { ...scope, ...besides },
        beside: 'plain',
        at_most: 3,
      },
      {
        // No claim: a sale's four relations are four times the bytes of the sale.
        name: 'everything_100',
        doc: 'the same, 100 a page',
        query: { ...scope, ...besides, limit: '100' },
        beside: 'page_of_100',
      },
    );
  }
  if (total_count < rows) return { name, path, total_count, pages };
  const last = nth(rows - from_the_end);
  pages.push({
    name: 'last',
    doc: 'a page at the end',
    query: { ...scope, starting_after: last },
    beside: 'plain',
    at_most: 2,
  });
  for (const [filter, schema] of Object.entries(filters)) {
    const value = mostCommon(middle.data, filter) ?? nothings.find((nothing) => schema.safeParse(nothing).success);
    if (value === undefined) throw new Error(`No value is known for '${filter}' of ${path}.`);
    const query = { ...scope, [filter]: value };
    const by = `by_${filter}`;
    pages.push({ name: by, doc: `the first page by ${filter}`, query, beside: 'plain' });
    const { total_count: matching } = await read(place, path, query);
    if (matching < from_the_end) continue;
    const ends_in_the_middle = oldest_first ? /^(created_before|to)$/ : /^created_after$/;
    const starting_after = ends_in_the_middle.test(filter) ? nth(rows / 2 - from_the_end) : last;
    pages.push({
      name: `${by}_last`,
      doc: `a page by ${filter} at the end`,
      query: { ...query, starting_after },
      beside: by,
      at_most: 2,
    });
  }
  return { name, path, total_count, pages };
}

function besidesOf(expand: Shape, include: Shape): Record<string, string> {
  const options = (schema: Shape): string[] => schema.unwrap().element.options ?? [];
  const asked = { expand: options(expand).join(','), include: options(include).join(',') };
  return Object.fromEntries(Object.entries(asked).filter(([, names]) => names !== ''));
}

/** Filter values that no record here has: the first valid one is used. */
const nothings = ['of-nothing', 'none', '2026-09', 'XX', 'true'];

/** The value that most of these records have, of the field that a filter goes by. Undefined where none has one. */
function mostCommon(records: Shape[], filter: string): string | undefined {
  const bound = /^(created_after|created_before|from|to)$/.test(filter);
  const time = filter.startsWith('created') || !('mature_at' in (records[0] ?? {})) ? 'created_at' : 'mature_at';
  const field = bound ? time : filter;
  const counted = Map.groupBy(
    records.map((record) => record[field] ?? null).filter((value) => value !== null),
    String,
  );
  const [most] = [...counted].toSorted(([, a], [, b]) => b.length - a.length);
  return most?.[0];
}

async function read(
  { server, merchant }: Place,
  path: string,
  query: Record<string, string>,
): Promise<{ data: Shape[]; total_count: number }> {
  const { statusCode, body } = await request(urlOf(server.url + path, query), { headers: merchant.headers });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`GET ${path} answered ${statusCode}: ${text}`);
  return JSON.parse(text);
}

const urlOf = (path: string, query: Record<string, string>): string => `${path}?${new URLSearchParams(query)}`;

const figuresOf = (pages: Page[]): Record<string, Figure> =>
  Object.fromEntries(
    pages
      .filter(({ beside }) => beside !== undefined)
      .map(({ name, doc, beside, at_most }) => [
        name,
        {
          unit: `× ${beside}`,
          better: 'lower',
          doc: `${doc}: its p50 divided by that of '${beside}', one request at a time, in turn`,
          ...(at_most === undefined ? {} : { at_most }),
        },
      ]),
  );

function listSide(place: Place, { name, path, pages }: List, fold: () => Promise<unknown>): Side {
  const asked = pages.map(({ query }) => ({
    method: 'GET' as const,
    path: urlOf(path, query),
    headers: place.merchant.headers,
  }));
  return {
    name,
    doc: `GET ${path}`,
    async run(seconds) {
      await fold();
      const first = await loaded(place, () => asked[0] as Asked, seconds / 2);
      return { ...first, ...(await ratios(place, asked, pages, seconds / 2)) };
    },
  };
}

/** Each page in turn, so that what slows one slows the one that it is divided by. */
async function ratios({ server }: Place, asked: Asked[], pages: Page[], seconds: number): Promise<Sample> {
  let nth = 0;
  const next = () => asked[nth++ % asked.length] as Asked;
  const { latencies_ms } = await closedLoop(server.url, { connections: 1, seconds, next, at_least: 20 * asked.length });
  const medians = new Map(
    pages.map(({ name }, page) => [
      name,
      percentile(
        latencies_ms.filter((_, index) => index % pages.length === page),
        50,
      ),
    ]),
  );
  return Object.fromEntries(
    pages
      .filter(({ beside }) => beside !== undefined)
      .map(({ name, beside }) => [name, (medians.get(name) as number) / (medians.get(beside as string) as number)]),
  );
}

async function loaded({ server, postgres }: Place, next: () => Asked, seconds: number): Promise<Sample> {
  const pids = { server_cpu: server.pid, postgres_cpu: postgres };
  const before = await cpuOf(pids);
  const load = await closedLoop(server.url, { connections, seconds, next });
  const after = Object.entries(await cpuOf(pids));
  const count = load.latencies_ms.length;
  const cpu = after.map(([name, us]) => [name, (us - (before[name] as number)) / count]);
  return { requests: count / load.seconds, ...latencies(load), ...Object.fromEntries(cpu) };
}

function createSide(place: Place, plural: string, body: (place: Place, nth: number) => object): Side {
  const { merchant, program_id } = place;
  const path = `/v1/${plural}`;
  let nth = 0;
  const next = (): Asked => ({
    method: 'POST',
    path,
    headers: merchant.headers,
    body: JSON.stringify({ ...(plural === 'programs' ? {} : { program_id }), ...body(place, ++nth) }),
  });
  return { name: `${plural}.create`, doc: `POST ${path}`, run: (seconds) => loaded(place, next, seconds / 2) };
}

/** An active partner, another one each time; its number is that of the rows that belong to it alone. */
const numberOf = (nth: number): number => ((nth * 90) % (rows - (rows % 90))) + 1;
const partnerOf = ({ tails }: Place, nth: number): string => `part_${tails[numberOf(nth) - 1]}`;
/** One of the other programs: what is limited to so many, or is read as a whole by each sale, goes there. */
const otherProgram = ({ tails }: Place, nth: number): string => `prg_${tails[nth % rows]}`;

/** The body of the nth request of each create. */
const bodies: Record<string, (place: Place, nth: number) => object> = {
  programs: (_, nth) => ({ ...shop, name: `New ${nth}` }),
  groups: (_, nth) => ({ name: `New ${nth}` }),
  tags: (_, nth) => ({ name: `New ${nth}` }),
  partners: (_, nth) => ({ email: `new${nth}@example.com` }),
  applications: (_, nth) => ({ email: `applicant${nth}@example.com`, answers: { audience: 'readers' } }),
  links: (place, nth) => ({
    partner_id: partnerOf(place, nth),
    destination_url: 'https://shop.example.com/pricing',
    value: `new-${nth}`,
  }),
  coupons: (place, nth) => ({ partner_id: partnerOf(place, nth), code: `NEW${nth}`, external_id: `new_${nth}` }),
  clicks: (_, nth) => ({
    value: `value-${numberOf(nth)}`,
    landing_url: `https://shop.example.com/?ref=value-${numberOf(nth)}`,
    visitor_token: `new-visitor-${nth}`,
  }),
  customers: (place, nth) => ({
    partner_id: partnerOf(place, nth),
    email: `new${nth}@example.com`,
    external_customer_id: `new_${nth}`,
  }),
  rules: (place, nth) => ({
    program_id: otherProgram(place, nth),
    name: `New ${nth}`,
    rate_type: 'percent',
    rate_value: 2_000,
  }),
  sales: ({ tails }, nth) => ({
    customer_id: `cus_${tails[numberOf(nth) - 1]}`,
    amount_minor: 9_900,
    currency: 'USD',
    external_charge_id: `new_${nth}`,
  }),
  commissions: (place, nth) => ({ partner_id: partnerOf(place, nth), amount_minor: 5_000 }),
  webhook_endpoints: (place, nth) => ({
    program_id: otherProgram(place, Math.floor(nth / 40)),
    url: `https://hooks.example.com/${nth}`,
  }),
};
