import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { settings } from '../../src/config.ts';
import { migrate } from '../../src/core/postgres/migrate.ts';
import { openEmbeddedPostgres } from '../../src/embedded_postgres/embedded_postgres.ts';
import { command } from '../command_process.ts';
import { encryption_key, eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { type Process, startProcess } from '../processes.ts';
import { makeDataDir } from '../rail_process.ts';

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
    await sleep(25); // a connection that is opened is kept for seconds
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

/** The least connections of each process that runs until it is stopped. */
const least = { api: 4, worker: 11, start: 15 };

t.test('a worker on the least connections opens no more under load, takes jobs and stays up', async (t) => {
  const { id } = await createProgram();
  const receiver = await startReceiver();
  const endpoints = 12;
  for (let nth = 0; nth < endpoints; nth++)
    await merchant.post('/v1/webhook_endpoints', { program_id: id, url: `${receiver.url}/${nth}` });
  await partners(id, 60);
  const starting = startProcess('worker', rail.url, {
    ...{ DATABASE_POOL_SIZE: `${least.worker}`, WORKER_CONCURRENCY: '30' },
  });
  const most = await mostConnections(
    Promise.all([starting, eventually(() => receiver.received.length >= 60 * endpoints, 'all events')]),
  );
  t.ok(most <= least.worker, `${most}`);
  t.ok(most > 4, `${most}`);

  const worker = await starting;
  const [job] = await rail.query<{ id: string }>(sql`
    select id from graphile_worker.add_job('program/mature_commissions',
      json_build_object('run_id', 'run_test', 'tick', ${new Date().toISOString()}::text))`);
  const waiting = sql`select from graphile_worker.jobs where id = ${job?.id}`;
  await eventually(async () => (await rail.query(waiting)).length === 0, 'a job to be done');
  t.equal(worker.logged.filter(({ msg }) => msg === 'worker ready').length, 1);
  t.same(
    worker.logged.filter(({ level, msg }) => level >= 40 && !/^RAIL_WEBHOOK|^WORKER_CONCURRENCY/.test(msg)),
    [],
  );
  await worker.end('SIGTERM');
});

t.test('an API under load has no more connections than DATABASE_POOL_SIZE', async (t) => {
  const { id } = await createProgram();
  const small_api = await startProcess('api', rail.url, { DATABASE_POOL_SIZE: '4' });
  // As many as are answered in time on a busy machine.
  const in_turns = async () => {
    for (let turn = 0; turn < 10; turn++) await partners(id, 8, small_api.url);
  };
  const most = await mostConnections(in_turns());
  t.ok(most <= 4, `${most}`);
  t.same(
    small_api.logged.filter(({ msg }) => /connections/.test(msg)),
    [],
    'and Postgres has enough',
  );
  await small_api.end('SIGTERM');
});

/** A Postgres of its own with few connections. */
async function smallPostgres(max_connections: number): Promise<{ postgres: pg.Client; url: string }> {
  const dataDir = await makeDataDir(t, 'migrated');
  const settings = { max_connections: `${max_connections}`, fsync: 'off' };
  const { url, stop } = await openEmbeddedPostgres({ dataDir, mode: 'own', settings });
  await migrate(url);
  const client = new pg.Client({ connectionString: url, application_name: 'rail test' });
  await client.connect();
  t.teardown(() => client.end().then(stop));
  return { postgres: client, url };
}

t.test('a fleet in use opens no more connections than Postgres has, and says what to change', async (t) => {
  const max_connections = 40;
  const { postgres, url } = await smallPostgres(max_connections);
  const start = (role: 'api' | 'worker', settings = {}) =>
    startProcess(role, url, { DATABASE_POOL_SIZE: '30', ...settings });
  const first = await start('api', { METRICS_PORT: '0' });
  const apis = [first];
  let isOver = false;
  t.teardown(() => {
    isOver = true;
  });
  // Each request looks up a key of its own, which takes a connection; half of those that are free at most.
  const use = async ({ url }: Process) => {
    const ask = (_: unknown, nth: number) =>
      fetch(`${url}/v1/programs`, { headers: { Authorization: `Bearer rail_live_none${nth}` } });
    for (; !isOver; await sleep(500)) await Promise.all(Array.from({ length: 30 }, ask));
  };
  const countOf = async ({ pid }: Process): Promise<number> => {
    const name = `rail ${pid}@%`;
    const { rows } = await postgres.query('select from pg_stat_activity where application_name like $1', [name]);
    return rows.length;
  };
  // 37 but for those reserved, less five for commands, by three.
  const share = 10;
  const using = use(first);
  await eventually(async () => (await countOf(first)) > share, 'one alone to open more than its share will be');
  const worker = await start('worker');
  apis.push(await start('api'));
  await eventually(async () => (await countOf(first)) <= share, 'it to have no more than its share');
  for (const api of apis) t.ok((await countOf(api)) <= share);
  const { port } = first.logged.find(({ msg }) => msg === 'metrics ready') as Json;
  const metrics = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const most = `rail_pool_connections{pool="rail",state="most"} ${share - 1}`; // besides that of the metrics
  await eventually(async () => (await metrics()).includes(`${most}\n`), 'the gauge to show its share');
  const shown = await metrics();
  t.match(shown, `rail_postgres_connections{state="most"} ${max_connections - 3}`);
  t.match(shown, /rail_postgres_connections\{state="open"\} [1-9]/);
  isOver = true;
  await using;
  const warned = (apis.at(-1) as Process).logged.find(({ msg }) => /connections/.test(msg));
  t.match(warned?.msg, /Each opens fewer meanwhile\. Lower DATABASE_POOL_SIZE, or raise max_connections/);
  t.match(warned, { processes: 3, connections_each: 30, max_connections });
  await Promise.all([worker, ...apis].map((one) => one.end('SIGTERM')));
});

t.test('a process is refused on fewer connections than it needs, and its settings say how many', async (t) => {
  const meaning = settings.find(({ name }) => name === 'DATABASE_POOL_SIZE')?.meaning ?? '';
  for (const [role, needed] of Object.entries(least)) {
    const { code, stderr } = await command([role], {
      DATABASE_URL: rail.url,
      RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'),
      DATABASE_POOL_SIZE: `${needed - 1}`,
    });
    t.equal(code, 1);
    t.match(
      stderr,
      `DATABASE_POOL_SIZE is ${needed - 1}, and rail ${role} needs ${needed} connections at least. Set it to ${needed} or more`,
    );
    t.match(meaning, new RegExp(`\\b${role}( needs)? ${needed}\\b`));
  }
  const { stderr } = await command(['api'], {
    DATABASE_URL: rail.url,
    RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'),
    ...{ DATABASE_POOL_SIZE: `${least.api}`, METRICS_PORT: '0' },
  });
  t.match(stderr, `rail api with METRICS_PORT needs ${least.api + 1} connections at least`);
});
