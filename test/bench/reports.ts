import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { openDatabase } from '../../src/core/postgres/database.ts';
import { kinds } from '../../src/program/reports/kind.ts';
import { Bulk } from './bulk.ts';
import { type Bench, type Progress, percentile, type Sample } from './harness.ts';
import { type Merchant, makeMerchant, merchantOf } from './merchant.ts';
import { type Running, startNode, startPostgres } from './processes.ts';
import { fillReports, type Sizes, sumReports } from './report_rows.ts';
import type { Owner } from './rows.ts';

const default_clicks = 10_000_000;
const sizesOf = (clicks: number): Sizes => ({
  clicks,
  sales: Math.ceil(clicks / 10),
  partners: Math.ceil(clicks / 1_000),
  days: 400,
});
/** The days of a report, each with the days before it. */
const windows = [7, 30, 90, 180];
const zones = ['UTC', 'America/New_York', 'Asia/Kolkata'];
const report_names = Object.keys(kinds) as (keyof typeof kinds)[];
/** Reports of many keys in other orders, and with more rows, than they have unless told otherwise. */
const of_keys = report_names.filter((name) => !['overview', 'payouts'].includes(name));
const variants = {
  lowest: { doc: 'the lowest first', query: 'sort=revenue_minor&limit=100' },
  none: { doc: 'by what no key has any of, so that all have the same', query: 'sort=-clawbacks_minor&limit=100' },
  long: { doc: '1,000 rows', query: 'limit=1000' },
};

/** Every report over HTTP with the window before it, most in several orders, beside plain SQL over the rows for the partners' report of the same window. */
export const reports: Bench = {
  name: 'reports',
  doc: `Every report with comparison, over ${default_clicks.toLocaleString('en')} clicks (--size), a tenth as many sales and a thousandth as many partners in 400 days. --data keeps them in a folder, for the next run.`,
  defaults: { rounds: 3, seconds: 5 },
  async setup(stack, progress, size = default_clicks, data?) {
    const sizes = sizesOf(size);
    const url = await startPostgres(stack, {}, data);
    const kept = data === undefined ? undefined : keptIn(data);
    const encryption_key = kept?.encryption_key ?? randomBytes(32).toString('base64');
    const environment = { DATABASE_URL: url, RAIL_ENCRYPTION_KEY: encryption_key };
    const server = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    stack.defer(() => client.end());
    const merchant = kept ? merchantOf(kept, server) : await newMerchant(stack, url, server);
    const { organization_id } = merchant;
    const owner = {
      organization_id,
      program_id: kept?.program_id ?? (await loadProgram(merchant, url, sizes, progress)),
    };
    if (data !== undefined && !kept) keep(data, { ...owner, headers: merchant.headers, encryption_key });
    if (!kept && size <= most_audited) await audited(client);
    const mib = (await sizeOf(client, 'program.report_total')) + (await sizeOf(client, 'program.report_key'));
    return {
      postgres_url: url,
      figures: {
        p50_ms: { unit: 'ms', better: 'lower', doc: 'time of an answer' },
        p95_ms: { unit: 'ms', better: 'lower', at_most: 100, doc: 'time of an answer' },
      },
      notes: [
        `Windows of ${windows.join(', ')} days and of as many before, in ${zones.join(', ')}; they end where the last local day began.`,
        `The sums take ${((mib / size) * 1_000_000).toFixed(0)} MiB for each million clicks (a tenth as many sales included); the clicks take ${(((await sizeOf(client, 'program.click')) / size) * 1_000_000).toFixed(0)} MiB.`,
      ],
      sides: [
        {
          name: 'rows',
          doc: 'plain SQL: clicks, sales and revenue by partner over the rows, of the window and the one before it',
          run: (seconds) => timed(seconds, (nth) => byRows(client, owner, windows[nth % windows.length] as number)),
        },
        ...report_names.map((name) => ({
          name,
          doc: `GET /v1/reports/${name}`,
          baseline: 'rows',
          run: (seconds: number) => timed(seconds, (nth) => ask(merchant, owner, name, 'limit=100', nth)),
        })),
        ...of_keys.flatMap((name) =>
          Object.entries(variants).map(([variant, { doc, query }]) => ({
            name: `${name}.${variant}`,
            doc: `GET /v1/reports/${name}, ${doc}`,
            baseline: 'rows',
            run: (seconds: number) => timed(seconds, (nth) => ask(merchant, owner, name, query, nth)),
          })),
        ),
      ],
    };
  },
};

async function newMerchant(stack: AsyncDisposableStack, url: string, server: Running): Promise<Merchant> {
  const database = openDatabase(url, { size: 1, name: 'rail bench' });
  stack.defer(() => database.end());
  return makeMerchant(database, server);
}

/** A program with all the rows and their sums. @returns its id */
async function loadProgram(merchant: Merchant, url: string, sizes: Sizes, progress: Progress): Promise<string> {
  const shop = { name: 'Big', website_url: 'https://shop.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', shop);
  const owner = { organization_id: merchant.organization_id, program_id };
  const bulk = await Bulk.open(url);
  const began = performance.now();
  await bulk.withoutWaiting(async () => {
    await fillReports(bulk, owner, sizes, progress);
    await sumReports(bulk, owner, progress);
  });
  await bulk.close();
  progress(`reports: loaded in ${((performance.now() - began) / 1_000).toFixed(0)} s`);
  return program_id;
}

/** The data that was loaded into a folder that `--data` names, for another run of the bench. */
interface Kept extends Owner {
  headers: Record<string, string>;
  encryption_key: string;
}

const keptFile = (data: string): string => join(data, 'reports.json');
const keep = (data: string, kept: Kept): void => writeFileSync(keptFile(data), JSON.stringify(kept));
const keptIn = (data: string): Kept | undefined =>
  existsSync(keptFile(data)) ? JSON.parse(readFileSync(keptFile(data), 'utf8')) : undefined;

/** Up to so many clicks, the sums are recounted. */
const most_audited = 100_000;

/** @throws Error where the sums are not what the job would have made */
async function audited(client: pg.Client): Promise<void> {
  const { rows } = await client.query('select * from program.audit_reports() limit 3');
  if (rows.length > 0) throw new Error(`The sums are not those of the facts: ${JSON.stringify(rows)}`);
}

async function timed(seconds: number, work: (nth: number) => Promise<unknown>): Promise<Sample> {
  const times: number[] = [];
  const until = performance.now() + seconds * 1_000;
  for (let nth = 0; nth < windows.length * zones.length || performance.now() < until; nth++) {
    const began = performance.now();
    await work(nth);
    times.push(performance.now() - began);
  }
  return { p50_ms: percentile(times, 50), p95_ms: percentile(times, 95) };
}

const day_ms = 86_400_000;

async function ask(
  merchant: Merchant,
  { program_id }: Owner,
  report: string,
  query: string,
  nth: number,
): Promise<void> {
  const zone = zones[Math.floor(nth / windows.length) % zones.length] as string;
  const to = lastMidnight(zone);
  const from = to - (windows[nth % windows.length] as number) * day_ms;
  const interval = (windows[nth % windows.length] as number) > 30 ? 'week' : 'day';
  await merchant.get(
    `/v1/reports/${report}?program_id=${program_id}&from=${new Date(from).toISOString()}&to=${new Date(to).toISOString()}&timezone=${zone}&interval=${interval}&${query}`,
  );
}

/** Returns the start of the current day in a zone. */
function lastMidnight(zone: string): number {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone: zone });
  const today = format.format(Date.now());
  const quarter_ms = 900_000;
  let at = Math.floor(Date.now() / quarter_ms) * quarter_ms;
  while (format.format(at - quarter_ms) === today) at -= quarter_ms;
  return at;
}

async function byRows(client: pg.Client, { organization_id, program_id }: Owner, days: number): Promise<void> {
  await client.query(
    `select k.partner_id, k.before, sum(k.clicks), sum(k.sales), sum(k.revenue_minor)
    from (
      select c.partner_id, c.created_at < now() - make_interval(days => $3) as before, 1 as clicks, 0 as sales, 0 as revenue_minor
      from program.click c
      where c.organization_id = $1 and c.program_id = $2 and c.created_at >= now() - make_interval(days => 2 * $3)
      union all
      select s.partner_id, s.occurred_at < now() - make_interval(days => $3), 0, 1, s.amount_minor
      from program.sale s
      where s.organization_id = $1 and s.program_id = $2 and s.occurred_at >= now() - make_interval(days => 2 * $3) and s.deleted_at is null
    ) as k
    group by 1, 2
    order by 5 desc
    limit 100`,
    [organization_id, program_id, days],
  );
}

/** MiB with indexes, and of all partitions. */
async function sizeOf(client: pg.Client, table: string): Promise<number> {
  const { rows } = await client.query<{ bytes: string }>(
    'select sum(pg_total_relation_size(t.relid)) as bytes from (select $1::regclass as relid union select relid from pg_partition_tree($1::regclass)) t',
    [table],
  );
  return Number(rows[0]?.bytes) / 2 ** 20;
}
