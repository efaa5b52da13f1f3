import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { settings } from '../../src/config.ts';
import { poolsOf } from '../../src/core/jobs/extension.ts';
import { extensions } from '../../src/products.ts';
import { encryption_key, eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { type Process, startProcess } from '../processes.ts';
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
    await sleep(5); // a connection that is opened is kept for seconds
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
  const worker = startProcess('worker', rail.url, { DATABASE_POOL_SIZE: '11', WORKER_CONCURRENCY: '30' });
  const most = await mostConnections(
    Promise.all([worker, eventually(() => receiver.received.length >= 60 * endpoints, 'all events')]),
  );
  t.ok(most <= 11, `${most}`);
  t.ok(most > 4, `${most}`);
  await (await worker).end('SIGTERM');
});

let small_api: Process;

t.test('an API under load has no more connections than DATABASE_POOL_SIZE', async (t) => {
  const { id } = await createProgram();
  small_api = await startProcess('api', rail.url, { DATABASE_POOL_SIZE: '4' });
  // As many as are answered in time on a busy machine.
  const in_turns = async () => {
    for (let turn = 0; turn < 10; turn++) await partners(id, 8, small_api.url);
  };
  const most = await mostConnections(in_turns());
  t.ok(most <= 4, `${most}`);
});

t.test('warns at start when Postgres has too few connections for all processes', async (t) => {
  const [{ max_connections }] = (await rail.query<{ max_connections: number }>(
    sql`select current_setting('max_connections')::integer as max_connections`,
  )) as [{ max_connections: number }];
  const half = Math.ceil(max_connections / 2);
  const [api, other] = [
    await startProcess('api', rail.url, { DATABASE_POOL_SIZE: `${half}` }),
    await startProcess('api', rail.url, { DATABASE_POOL_SIZE: `${half}` }),
  ];
  const warnings = ({ logged }: { logged: Json[] }) => logged.filter(({ msg }) => /connections/.test(msg));
  t.same(warnings(small_api), []);
  const [warning] = warnings(other);
  t.match(warning?.msg, /Lower DATABASE_POOL_SIZE, or raise max_connections/);
  t.match(warning, { connections_each: half, max_connections });
  t.ok(warning?.processes >= 3, 'each process is counted');
  await Promise.all([small_api, api, other].map((one) => one.end('SIGTERM')));
});

/** The least connections of each process that runs until it is stopped. */
const least = { api: 4, worker: 11, start: 15 };

t.test('a worker on the least connections listens in all pools, takes jobs and stays up', async (t) => {
  const worker = await startProcess('worker', rail.url, { DATABASE_POOL_SIZE: `${least.worker}` });
  const listening = sql`
    select a.pid from pg_stat_activity a
    where a.datname = current_database() and a.application_name = 'rail jobs' and a.query ~ '^LISTEN'`;
  await eventually(async () => (await rail.query(listening)).length === poolsOf(extensions), 'all pools to listen');
  const { id: program_id } = await createProgram();
  const receiver = await startReceiver();
  await merchant.post('/v1/webhook_endpoints', { program_id, url: receiver.url });
  await partners(program_id, 1);
  await receiver.until(1);
  const [job] = await rail.query<{ id: string }>(sql`
    select id from graphile_worker.add_job('program/mature_commissions',
      json_build_object('run_id', 'run_test', 'tick', ${new Date().toISOString()}::text))`);
  const waiting = sql`select from graphile_worker.jobs where id = ${job?.id}`;
  await eventually(async () => (await rail.query(waiting)).length === 0, 'a job to be done');
  t.equal(worker.logged.filter(({ msg }) => msg === 'worker ready').length, 1);
  t.same(
    worker.logged.filter(({ level, msg }) => level >= 40 && !/^RAIL_WEBHOOK/.test(msg)),
    [],
  );
  await worker.end('SIGTERM');
});

t.test('a process is refused on fewer connections than it needs, and its settings say how many', async (t) => {
  const meaning = settings.find(({ name }) => name === 'DATABASE_POOL_SIZE')?.meaning ?? '';
  const readme = await readFile(join(import.meta.dirname, '../../README.md'), 'utf8');
  for (const [role, needed] of Object.entries(least)) {
    const { code, stderr } = await runRail(t, [role], {
      DATABASE_URL: rail.url,
      RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'),
      DATABASE_POOL_SIZE: `${needed - 1}`,
    });
    t.equal(code, 1);
    t.match(
      stderr,
      `DATABASE_POOL_SIZE is ${needed - 1}, and rail ${role} needs ${needed} connections at least. Set it to ${needed} or more`,
    );
    t.match(meaning, new RegExp(`rail ${role}( needs)? ${needed}\\b`));
    t.match(readme, new RegExp(`DATABASE_POOL_SIZE\\x60 .*\\x60rail ${role}\\x60[^0-9]* ${needed}\\b`));
  }
});
