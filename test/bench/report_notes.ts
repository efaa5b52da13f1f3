import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { openDatabase } from '../../src/core/postgres/database.ts';
import type { Bench, Sample, Side } from './harness.ts';
import { type Asked, closedLoop, latencies } from './load.ts';
import { type Merchant, makeMerchant } from './merchant.ts';
import { cpuOf, postmasterOf, type Running, startNode, startPostgres } from './processes.ts';
import { makeProgram } from './slice.ts';

const connections = 4;

/** What it costs a write that reports are counted from notes: the same writes into two databases, one of which has no triggers of reports. */
export const report_notes: Bench = {
  name: 'report_notes',
  doc: 'Sales, clicks and customers with the notes that reports are counted from, beside a database without them.',
  defaults: { rounds: 10, seconds: 2 },
  async setup(stack, progress) {
    progress('report_notes: starting two databases, each with an API');
    const plain = await placeOf(stack);
    await dropTriggers(plain.client);
    const noted = await placeOf(stack);
    return {
      postgres_url: noted.url,
      figures: {
        requests: { unit: '/s', better: 'higher', doc: `requests answered in a second, ${connections} connections` },
        p50: { unit: 'ms', better: 'lower', doc: 'a request under that load' },
        p99: { unit: 'ms', better: 'lower', doc: 'the same' },
        server_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of the API' },
        postgres_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of Postgres' },
        fold_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of Postgres, to fold its notes afterwards' },
      },
      notes: ['No worker runs: notes are folded by the bench, when the load of a side has ended.'],
      sides: (['sales', 'clicks', 'customers'] as const).flatMap((kind): Side[] => [
        {
          name: `plain_${kind}`,
          doc: `POST /v1/${kind} without triggers of reports`,
          run: (seconds) => load(plain, kind, seconds),
        },
        {
          name: kind,
          doc: `POST /v1/${kind} with them`,
          baseline: `plain_${kind}`,
          run: (seconds) => load(noted, kind, seconds),
        },
      ]),
    };
  },
};

interface Place {
  url: string;
  client: pg.Client;
  server: Running;
  postgres: number | undefined;
  next: Record<'sales' | 'clicks' | 'customers', () => Asked>;
}

async function placeOf(stack: AsyncDisposableStack): Promise<Place> {
  const url = await startPostgres(stack);
  const environment = { DATABASE_URL: url, RAIL_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
  const server = await startNode(stack, '../../src/main.ts', ['api'], environment, { path: '/readyz' });
  const database = openDatabase(url, { size: 2, name: 'rail bench' });
  stack.defer(() => database.end());
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  stack.defer(() => client.end());
  const merchant = await makeMerchant(database, server);
  const sales = await makeProgram(database, merchant, undefined);
  const { program_id } = JSON.parse(sales().body as string);
  const next = { sales, ...(await visitsOf(merchant, program_id)) };
  const place = { url, client, server, postgres: await postmasterOf(url), next };
  await fold(client);
  return place;
}

/** Clicks on the links of partners, each of a new visitor, and customers who sign up without a click. */
async function visitsOf({ get, headers }: Merchant, program_id: string) {
  const { data } = (await get(`/v1/partners?program_id=${program_id}&limit=100`)) as {
    data: { id: string; handle: string }[];
  };
  const post = (path: string, body: object): Asked => ({
    ...{ method: 'POST', path, headers },
    body: JSON.stringify({ program_id, ...body }),
  });
  let nth = 0;
  const partner = () => data[++nth % data.length] as (typeof data)[number];
  return {
    clicks: () => {
      const { handle } = partner();
      return post('/v1/clicks', {
        value: handle,
        landing_url: `https://acme.example.com/?ref=${handle}`,
        visitor_token: `visitor-${nth}`,
      });
    },
    customers: () =>
      post('/v1/customers', {
        partner_id: partner().id,
        email: `new${nth}@example.com`,
        external_customer_id: `new_${nth}`,
      }),
  };
}

export async function dropTriggers(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string; table: string }>(
    `select t.tgname as name, t.tgrelid::regclass::text as table
    from pg_trigger t
    join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'program'::regnamespace and t.tgname like 'report\\_%' and t.tgparentid = 0`,
  );
  for (const { name, table } of rows) await client.query(`drop trigger ${name} on ${table}`);
}

async function load({ server, client, postgres, next }: Place, kind: keyof Place['next'], seconds: number) {
  const pids = { server_cpu: server.pid, postgres_cpu: postgres };
  const before = await cpuOf(pids);
  const done = await closedLoop(server.url, { connections, seconds, next: next[kind] });
  const after = await cpuOf(pids);
  await fold(client);
  const folded = await cpuOf({ fold_cpu: postgres });
  const count = done.latencies_ms.length;
  const used = (name: string): number => ((after[name] as number) - (before[name] as number)) / count;
  const sample: Sample = {
    ...{ requests: count / done.seconds, ...latencies(done) },
    ...{ server_cpu: used('server_cpu'), postgres_cpu: used('postgres_cpu') },
    fold_cpu: ((folded.fold_cpu as number) - (after.postgres_cpu as number)) / count,
  };
  return sample;
}

/** As the worker does, of reports and of tallies. */
const fold = (client: pg.Client): Promise<unknown> =>
  client.query('select program.fold_reports(2147483647), program.fold_tallies(2147483647)');
