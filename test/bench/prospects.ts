import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { request } from 'undici';
import { createVault } from '../../src/core/encryption/vault.ts';
import { openDatabase } from '../../src/core/postgres/database.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { writeEvents } from '../../src/products.ts';
import { createProspects } from '../../src/recruitment/prospects/create.ts';
import { type Bench, type Progress, percentile, type Sample } from './harness.ts';
import { type Merchant, makeMerchant } from './merchant.ts';
import { cpuOf, postmasterOf, startNode, startPostgres, usedBetween, usedBy } from './processes.ts';

const default_prospects = 1_000_000;
const words = 20_000;
/** The commonest words are in most texts; nobody searches for them. */
const commonest = 20;
const rows_at_once = 1_000;
/** The rows of an imported file. */
const rows_of_file = 100_000;

/** As for a million prospects: the table and the index of its words fit into memory. */
const settings = { shared_buffers: '2GB' };

const filters = [
  ...['stage=found', 'channel=youtube', 'country_code=DE', 'language_code=en', 'saved=false', 'has_email=false'],
  ...['stage=contacted&country_code=US', 'channel=website&language_code=de&stage=found', 'min_followers=50000'],
  'source=search&hidden=false&country_code=GB',
];

/** Lists of the prospects of one brand over HTTP, by full text and filters, with their exact counts; and prospects created many at a time. */
export const prospects: Bench = {
  name: 'prospects',
  doc: `Lists of ${default_prospects.toLocaleString('en')} prospects (--size) of one brand, with their exact counts, creating prospects ${rows_at_once} at a time, and importing a file.`,
  defaults: { rounds: 3, seconds: 5 },
  async setup(stack, progress, size = default_prospects) {
    const url = await startPostgres(stack, settings);
    const key = randomBytes(32);
    const environment = { DATABASE_URL: url, RAIL_ENCRYPTION_KEY: key.toString('base64') };
    const server = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const database = openDatabase(url, { size: 4, name: 'rail bench' });
    stack.defer(() => database.end());
    const merchant = await makeMerchant(database, server);
    const brand = (name: string) =>
      merchant.post('/recruitment/v1/brands', { name, website_url: 'https://shop.example.com' });
    const [{ id: brand_id }, { id: other_id }] = [await brand('Big'), await brand('Growing')];
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    stack.defer(() => client.end());
    const { organization_id } = merchant;
    await fill(client, { organization_id, brand_id, size }, progress);
    const list = (query: string) => merchant.get(`/recruitment/v1/prospects?brand_id=${brand_id}&${query}`);
    const filter = (nth: number) => filters[nth % filters.length];
    const postgres = await postmasterOf(url);
    const asked = (name: string, doc: string, query: (nth: number) => string) => ({
      ...{ name, doc, ...(name === 'all' ? {} : { baseline: 'all' }) },
      run: (seconds: number) => timed(seconds, { postgres, api: server.pid }, (nth) => list(query(nth))),
    });
    const imported = async () => {
      await using running = new AsyncDisposableStack();
      const worker = await startNode(running, '../../src/rail.js', ['worker'], environment, { line: 'worker ready' });
      return await importFile(merchant, server.url, { worker: worker.pid, postgres }, other_id);
    };
    const store = { database, writeEvents };
    let nth_key = 0;
    const create = () =>
      transaction(store, { organization_id, request_id: null }, (tx) =>
        createProspects(
          tx,
          createVault([key]),
          Array.from({ length: rows_at_once }, () => newProspect(other_id, ++nth_key)),
          { source: 'csv_import' },
        ),
      );
    return {
      postgres_url: url,
      figures: {
        p50_ms: { unit: 'ms', better: 'lower', doc: 'time of an answer' },
        p95_ms: { unit: 'ms', better: 'lower', at_most: 50, doc: 'time of an answer' },
        cpu_ms: { unit: 'ms', better: 'lower', doc: 'CPU time of an answer, of Postgres and the api' },
        rows_s: { unit: '/s', better: 'higher', doc: 'prospects created in a second, one transaction at a time' },
        import_rows_s: { unit: '/s', better: 'higher', doc: 'rows imported in a second, from the request to the end' },
        cpu_us: { unit: 'µs', better: 'lower', at_most: 400, doc: 'CPU time of a row, of Postgres and the worker' },
        worker_us: { unit: 'µs', better: 'lower', doc: 'CPU time of a row, of the worker' },
        growth: { unit: 'MiB', better: 'lower', doc: 'what the worker has more in memory at most than before' },
        late_growth: {
          ...{ unit: 'MiB', better: 'lower' },
          doc: 'what the worker has more at most in the second half of the file than in the first one',
        },
      },
      notes: [
        `Texts of 14 words out of ${words}, by Zipf's law. Searches are for one or two of these words but the commonest ${commonest}.`,
        `A file has ${rows_of_file} rows of new prospects, one in two with an address. A worker imports it, and tells its events to no endpoint.`,
        `Postgres has shared_buffers of ${settings.shared_buffers}.`,
        `Filters, in turn: ${filters.join(', ')}.`,
      ],
      sides: [
        asked('text', 'full text', () => `q=${text()}`),
        asked('text_filters', 'full text with filters', (nth) => `q=${text()}&${filter(nth)}`),
        asked('filters', 'filters without a text', (nth) => filter(nth) as string),
        asked('all', 'the first page of all', () => ''),
        { name: 'create', doc: 'createProspects', run: (seconds: number) => counted(seconds, create) },
        { name: 'import', doc: 'POST /recruitment/v1/prospects/import', run: imported },
      ],
    };
  },
};

/** A word's rank by Zipf's law. */
const rank = (from: number): number => Math.floor(from * (words / from) ** Math.random());
const text = (): string => (Math.random() < 0.5 ? `w${rank(commonest)}` : `w${rank(commonest)}+w${rank(commonest)}`);
const newProspect = (brand_id: string, nth: number) => ({
  ...{ brand_id, channel: 'website' as const, key: `new${nth}.com`, name: `New ${nth}`, country_code: 'DE' },
  description: Array.from({ length: 12 }, () => `w${rank(1)}`).join(' '),
});

type Pids = Record<string, number | undefined>;

/** Seconds of CPU that processes have used since then. */
async function usedSince(
  before: Record<string, number>,
  pids: Pids,
): Promise<{ sum: number } & Record<string, number>> {
  const used = usedBetween(before, await cpuOf(pids));
  return { ...used, sum: Object.values(used).reduce((sum, seconds) => sum + seconds, 0) };
}

async function timed(seconds: number, pids: Pids, work: (nth: number) => Promise<unknown>): Promise<Sample> {
  const times: number[] = [];
  const before = await cpuOf(pids);
  const until = performance.now() + seconds * 1_000;
  for (let nth = 0; nth < 20 || performance.now() < until; nth++) {
    const began = performance.now();
    await work(nth);
    times.push(performance.now() - began);
  }
  const { sum } = await usedSince(before, pids);
  return { p50_ms: percentile(times, 50), p95_ms: percentile(times, 95), cpu_ms: (sum * 1_000) / times.length };
}

async function counted(seconds: number, work: () => Promise<unknown>): Promise<Sample> {
  const began = performance.now();
  let rows = 0;
  while (performance.now() - began < seconds * 1_000) {
    await work();
    rows += rows_at_once;
  }
  return { rows_s: rows / ((performance.now() - began) / 1_000) };
}

const mebibyte = 1024 * 1024;
let files = 0;

/** @throws Error when not every row became a prospect */
async function importFile(
  merchant: Merchant,
  api: string,
  pids: { worker: number; postgres: number | undefined },
  brand_id: string,
): Promise<Sample> {
  const file = ++files;
  const lines = Array.from({ length: rows_of_file }, (_, nth) => {
    const key = `file${file}-${nth}.com`;
    return `https://${key}/,Name ${nth},DE,${nth % 2 ? '' : `owner@${key}`},"${newProspect(brand_id, nth).description}"`;
  });
  const memory = async () => (await usedBy(pids.worker))?.memory_bytes ?? 0;
  const [before, cpu] = [await memory(), await cpuOf(pids)];
  const began = performance.now();
  const sent = await request(`${api}/recruitment/v1/prospects/import?brand_id=${brand_id}`, {
    ...{ method: 'POST', headers: { ...merchant.headers, 'content-type': 'text/csv' } },
    body: ['url,name,country,email,description', ...lines].join('\n'),
  });
  const { id } = (await sent.body.json()) as { id: string };
  let [early, late] = [before, before];
  for (;;) {
    const now = (await merchant.get(`/recruitment/v1/imports/${id}`)) as {
      finished_at: string | null;
      created: number;
    };
    if (now.created < rows_of_file / 2) early = Math.max(early, await memory());
    else late = Math.max(late, await memory());
    if (now.finished_at === null) await sleep(250);
    else if (now.created === rows_of_file) break;
    else throw new Error(`The import ended as ${JSON.stringify(now)}.`);
  }
  const import_rows_s = rows_of_file / ((performance.now() - began) / 1_000);
  const { sum, worker = 0 } = await usedSince(cpu, pids);
  return {
    import_rows_s,
    ...{ cpu_us: (sum * 1_000_000) / rows_of_file, worker_us: (worker * 1_000_000) / rows_of_file },
    growth: (Math.max(early, late) - before) / mebibyte,
    late_growth: Math.max(0, late - early) / mebibyte,
  };
}

interface Fill {
  organization_id: string;
  brand_id: string;
  size: number;
}

/** In one statement, and the index of the words after that. */
async function fill(client: pg.Client, { organization_id, brand_id, size }: Fill, progress: Progress): Promise<void> {
  progress(`prospects: ${size} rows`);
  const pick = (values: string[]): string =>
    `(array['${values.join("','")}'])[1 + floor(${values.length} * power(random(), 2))::int]`;
  const some_words = (count: number): string =>
    `(select string_agg('w' || floor(power(${words}, random() + 0 * (g.k + s.n)))::int, ' ') from generate_series(1, ${count}) as g (k))`;
  await client.query('set synchronous_commit = off');
  await client.query('drop index recruitment.prospect_by_search');
  await client.query(
    `insert into recruitment.prospect (
      organization_id, id, brand_id, channel, key, name, description, country_code, language_code, followers, source, stage, saved
    )
    select $1, 'fdi_bench' || lpad(s.n::text, 21, '0'), $2, ${pick(['website', 'youtube', 'podcast', 'instagram'])}, 'bench' || s.n || '.com',
      ${some_words(2)}, ${some_words(12)}, ${pick(['US', 'DE', 'GB', 'FR', 'IN', 'BR', 'CA', 'AU'])}, ${pick(['en', 'de', 'fr', 'es'])},
      floor(power(1000000, random()))::bigint, ${pick(['scan', 'search', 'csv_import'])},
      ${pick(['found', 'contacted', 'replied', 'interested', 'active', 'lost'])}, random() < 0.1
    from generate_series(1, $3::int) as s (n)`,
    [organization_id, brand_id, size],
  );
  progress('prospects: the index of the words');
  await client.query(
    'create index prospect_by_search on recruitment.prospect using gin (search) with (gin_pending_list_limit = 1024)',
  );
  await client.query('select recruitment.fold_prospect_tallies(1000000)');
  await client.query('vacuum (analyze) recruitment.prospect');
}
