import { randomBytes } from 'node:crypto';
import sql, { raw } from 'sql-template-tag';
import { type Database, openDatabase, run } from '../../src/core/postgres/database.ts';
import type { Bench, Sample } from './harness.ts';
import { closedLoop } from './load.ts';
import { type Merchant, makeMerchant } from './merchant.ts';
import { startNode, startPostgres } from './processes.ts';
import { makeProgram, untilDelivered, untilNone } from './slice.ts';

const connections = 8;

/** Measures the disk space of clicks, sign-ups and sales over REST, once workers have done what follows from them. */
export const disk: Bench = {
  name: 'disk',
  doc: 'MiB on the disk for a million rows of each table that clicks, sign-ups and sales write, heap and indexes apart, and the WAL of a request.',
  defaults: { rounds: 2, seconds: 20 },
  async setup(stack, progress) {
    const url = await startPostgres(stack, { autovacuum: 'off', full_page_writes: 'off' });
    const environment = { DATABASE_URL: url, RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
    const api = await startNode(stack, '../../src/rail.js', ['api'], environment, { path: '/readyz' });
    await startNode(stack, '../../src/rail.js', ['worker'], environment, { line: 'worker ready' });
    const database = openDatabase(url, { size: 2, name: 'rail bench' });
    stack.defer(() => database.end());
    progress('disk: making a program with 10,000 customers');
    const merchant = await makeMerchant(database, api);
    const nextSale = await makeProgram(database, merchant, undefined);
    const click = await clicksOf(merchant);
    const loads: Record<string, (seconds: number) => Promise<number>> = {
      clicks: async (seconds) => sent(await closedLoop(api.url, { connections, seconds, next: click.next })),
      signups: (seconds) => signUps(merchant, click.body, seconds),
      sales: async (seconds) => sent(await closedLoop(api.url, { connections, seconds, next: nextSale })),
    };
    return {
      postgres_url: url,
      figures: {
        heap: { unit: 'MiB', better: 'lower', doc: 'of a million rows of the table' },
        indexes: { unit: 'MiB', better: 'lower', doc: 'the same' },
        wal: { unit: 'B', better: 'lower', doc: 'a request, with what workers do after it' },
      },
      notes: [
        'Postgres neither vacuums nor writes full pages to its WAL here: both depend on how long a run is.',
        'There is no webhook endpoint. A sign-up is a click and a customer who is referred by it; a sale earns a commission.',
      ],
      sides: Object.entries(tables).flatMap(([load, names]) =>
        names.map((table) => ({
          name: `${load}.${table}`,
          doc: `program.${table}, by ${load}`,
          run: (seconds: number) => growth(database, table, () => (loads[load] as (typeof loads)[string])(seconds)),
        })),
      ),
    };
  },
};

const tables = {
  clicks: ['click'],
  signups: ['referral', 'customer'],
  sales: ['sale', 'commission', 'commission_entry'],
};

const sent = ({ latencies_ms }: { latencies_ms: number[] }): number => latencies_ms.length;

/** Clicks of one partner by visitors who come once. */
async function clicksOf({ headers, post }: Merchant) {
  const { id: program_id } = await post('/v1/programs', {
    ...{ name: 'Clicked', website_url: 'https://acme.example.com', currency: 'USD' },
  });
  await post('/v1/partners', { program_id, email: 'ada@partner.example.com', handle: 'ada' });
  let nth = 0;
  const body = () => ({
    ...{ program_id, value: 'ada', visitor_token: `visitor-${String(nth++).padStart(8, '0')}` },
    ...{ landing_url: 'https://acme.example.com/pricing?ref=ada', ip: '203.0.113.7' },
    user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  });
  const next = () => ({ method: 'POST' as const, path: '/v1/clicks', headers, body: JSON.stringify(body()) });
  return { body, next };
}

async function signUps({ post }: Merchant, click: () => { program_id: string }, seconds: number): Promise<number> {
  const end = performance.now() + seconds * 1_000;
  let made = 0;
  const loop = async () => {
    while (performance.now() < end) {
      const body = click();
      const { id: click_id } = await post('/v1/clicks', body);
      await post('/v1/customers', { program_id: body.program_id, click_id, email: `${click_id}@customer.example.com` });
      made++;
    }
  };
  await Promise.all(Array.from({ length: connections }, loop));
  return made;
}

/**
 * Measures the growth of a table by a load.
 * @param load returns the number of its requests
 */
async function growth(database: Database, table: string, load: () => Promise<number>): Promise<Sample> {
  const before = await stateOf(database, table);
  const requests = await load();
  await untilDelivered(database);
  await untilNone(
    database,
    'The jobs of a load were not done',
    sql`exists (select from graphile_worker._private_jobs j where j.run_at <= now())`,
  );
  const after = await stateOf(database, table);
  const rows = after.rows - before.rows;
  const mib = (bytes: number): number => (bytes / rows / 2 ** 20) * 1_000_000;
  return {
    heap: mib(after.heap - before.heap),
    indexes: mib(after.indexes - before.indexes),
    wal: (after.wal - before.wal) / requests,
  };
}

async function stateOf(database: Database, table: string) {
  const [state] = await run<Record<'rows' | 'heap' | 'indexes' | 'wal', number>>(
    database,
    sql`
      select
        (select count(*) from ${raw(`program.${table}`)})::float8 as rows,
        sum(pg_table_size(r.relid))::float8 as heap, sum(pg_indexes_size(r.relid))::float8 as indexes,
        (pg_current_wal_insert_lsn() - '0/0')::float8 as wal
      from (select ${`program.${table}`}::regclass as relid union select relid from pg_partition_tree(${`program.${table}`}::regclass)) as r`,
  );
  return state as NonNullable<typeof state>;
}
