import t from 'tap';
import { encryption_key, eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { startProcess } from '../processes.ts';
import { rail as runRail } from '../rail_process.ts';

const rail = await startRail({ worker: false });
const merchant = await rail.organization();

/** The most connections that processes of the service had at a time, while `work` went on. */
async function mostConnections(work: Promise<unknown>): Promise<number> {
  let most = 0;
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  work.then(over, over);
  while (!isOver) {
    const [row] = await rail.query<{ count: number }>(sql`
      select count(*) as count from pg_stat_activity
      where datname = current_database() and starts_with(application_name, 'rail') and application_name <> 'rail test'`);
    most = Math.max(most, row?.count ?? 0);
  }
  await work;
  return most;
}

async function partners(program_id: string, count: number, address = rail.address): Promise<void> {
  const create = async (nth: number) => {
    const answer = await fetch(`${address}/v1/partners`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${merchant.key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ program_id, email: `${address.length}-${crypto.randomUUID()}@partner.example.com` }),
    });
    if (answer.status !== 201) throw new Error(`Partner ${nth}: ${await answer.text()}`);
  };
  await Promise.all(Array.from({ length: count }, (_, nth) => create(nth)));
}

const createProgram = () =>
  merchant.post('/v1/programs', { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' });

t.test('a worker under load has no more connections than DATABASE_POOL_SIZE', async (t) => {
  const { id } = await createProgram();
  const receiver = await startReceiver();
  const endpoints = 12;
  for (let nth = 0; nth < endpoints; nth++)
    await merchant.post('/v1/webhook_endpoints', { program_id: id, url: `${receiver.url}/${nth}` });
  await partners(id, 60);
  const worker = startProcess('worker', rail.url, { DATABASE_POOL_SIZE: '8', WORKER_CONCURRENCY: '30' });
  const most = await mostConnections(
    Promise.all([worker, eventually(() => receiver.received.length >= 60 * endpoints, 'all events')]),
  );
  t.ok(most <= 8, `${most}`);
  t.ok(most > 4, `${most}`);
  await (await worker).end('SIGTERM');
});

t.test('an API under load has no more connections than DATABASE_POOL_SIZE', async (t) => {
  const { id } = await createProgram();
  const api = await startProcess('api', rail.url, { DATABASE_POOL_SIZE: '4' });
  // As many as are answered in time on a busy machine.
  const in_turns = async () => {
    for (let turn = 0; turn < 10; turn++) await partners(id, 8, api.url);
  };
  const most = await mostConnections(in_turns());
  t.ok(most <= 4, `${most}`);
  await api.end('SIGTERM');
});

t.test('warns at start when Postgres has too few connections for all processes', async (t) => {
  const [{ max_connections }] = (await rail.query<{ max_connections: number }>(
    sql`select current_setting('max_connections')::integer as max_connections`,
  )) as [{ max_connections: number }];
  const half = Math.ceil(max_connections / 2);
  const enough = await startProcess('api', rail.url, { DATABASE_POOL_SIZE: '2' });
  const [api, other] = [
    await startProcess('api', rail.url, { DATABASE_POOL_SIZE: `${half}` }),
    await startProcess('api', rail.url, { DATABASE_POOL_SIZE: `${half}` }),
  ];
  const warnings = ({ logged }: { logged: Json[] }) => logged.filter(({ msg }) => /connections/.test(msg));
  t.same(warnings(enough), []);
  const [warning] = warnings(other);
  t.match(warning?.msg, /Lower DATABASE_POOL_SIZE, or raise max_connections/);
  t.match(warning, { connections_each: half, max_connections });
  t.ok(warning?.processes >= 3, 'each process is counted');
  await Promise.all([enough, api, other].map((one) => one.end('SIGTERM')));
});

t.test('refuses to start a worker on fewer connections than it needs', async (t) => {
  const { code, stderr } = await runRail(t, ['worker'], {
    DATABASE_URL: rail.url,
    RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'),
    DATABASE_POOL_SIZE: '7',
  });
  t.equal(code, 1);
  t.match(stderr, 'DATABASE_POOL_SIZE is 7, and a process that runs jobs needs 8 connections at least');
});
