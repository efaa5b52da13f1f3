import pg from 'pg';
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { diagnose } from '../../src/commands/doctor/doctor.ts';
import { linesOf } from '../../src/commands/doctor/picture.ts';
import type { AnyCheck, Line } from '../../src/core/doctor/check.ts';
import { announceProcess } from '../../src/core/doctor/process.ts';
import { migrate } from '../../src/core/postgres/migrate.ts';
import { loadChecks } from '../../src/products.ts';
import { command } from '../command_process.ts';
import { startNameServer } from '../core/net/name_server.ts';
import { encryption_key, eventually, sql, startRail, startReceiver } from '../harness.ts';
import { databaseUrl, emptyDatabase, serverUrl } from '../postgres.ts';

const rail = await startRail({ audit: false });
const {
  nameServers: [name_server],
} = await startNameServer(t, () => ['127.0.0.1']);
const healthy = {
  DATABASE_URL: rail.url,
  RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'),
  BASE_URL: rail.address,
  SMTP_URL: 'smtp://127.0.0.1:25',
  RAIL_WEBHOOK_NAME_SERVERS: name_server,
};

/** Findings about the machine and the server that all tests share. */
const of_all_tests = [
  'machine/disk',
  ...['settings', 'connections', 'slots', 'replicas', 'wal'].map((name) => `postgres/${name}`),
];

async function linesWith(environment: NodeJS.ProcessEnv = healthy): Promise<Map<string, Line>> {
  const lines = await Array.fromAsync(diagnose(environment));
  for (const line of lines) {
    if (line.text.length === 0 || (line.state !== 'ok' && !line.text.startsWith('could not') && !line.remedy))
      throw new Error(`${line.name} says too little`);
  }
  return new Map(lines.map((line) => [line.name, line]));
}

const connect = async (t: Test): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString: rail.url, application_name: 'culprit' });
  client.on('error', () => {});
  await client.connect();
  t.teardown(() => client.end());
  return client;
};

const checkNamed = async (name: string): Promise<AnyCheck> =>
  (await loadChecks()).find((one) => one.name === name) as AnyCheck;

t.test('a service that is well has no error and no warning', async (t) => {
  const stopping = new AbortController();
  await announceProcess(
    rail.store.database,
    { role: 'start', version: '1.0.0', connections: 20 },
    stopping.signal,
    pino({ level: 'silent' }),
  );
  const lines = await linesWith();
  t.same(
    [...lines.values()].filter(({ state, name }) => state !== 'ok' && !of_all_tests.includes(name)),
    [],
  );
  t.match(
    lines.get('postgres/settings'),
    { state: 'error', text: /^fsync and full_page_writes off/ },
    'as tests have it',
  );
  t.ok(lines.size > 35, `${lines.size} checks`);
  t.match(lines.get('service/processes')?.text, '1 start, of version 1.0.0.');
  t.match(lines.get('service/workers')?.text, /^1 worker on /);
  stopping.abort();
  const gone = async () => (await rail.query(sql`select from core.process`)).length === 0;
  await eventually(gone, 'the process to be off the list');
  t.match((await linesWith()).get('service/processes'), { state: 'warning', text: /No process/ });
});

t.test('names keys that expire soon', async (t) => {
  const { organization_id } = await rail.organization();
  await rail.query(
    sql`update core.api_key set expires_at = now() + interval '3 days' where organization_id = ${organization_id}`,
  );
  const { assess, read } = await checkNamed('access/keys');
  t.match(assess(await read(rail.store.database)), {
    state: 'warning',
    text: /^1 API key expires within 14 days: key_\w+ \(test, org_\w+\) in 3 days/,
  });
  await rail.query(sql`update core.api_key set revoked_at = now() where organization_id = ${organization_id}`);
  t.match(assess(await read(rail.store.database)), { state: 'ok' });
});

t.test('the command prints lines for a terminal or one document, and ends with 1 if there is an error', async (t) => {
  const well = await command(['doctor', '--json'], healthy);
  const lines: Line[] = JSON.parse(well.stdout);
  t.same(
    lines.filter(({ state }) => state === 'error').map(({ name }) => name),
    ['postgres/settings'],
  );
  const ill = await command(['doctor'], { ...healthy, RAIL_ENCRYPTION_KEY: Buffer.alloc(32, 9).toString('base64') });
  t.match(ill, {
    code: 1,
    stdout:
      /\nerror +service\/encryption_key +The database holds[\s\S]*→ Set RAIL_ENCRYPTION_KEY[\s\S]*\d+ ok, \d+ warnings?, 2 errors\.\n$/,
  });
  for (const line of ill.stdout.split('\n')) t.ok(line.length <= 100, line);
  t.ok(
    linesOf({ name: 'a', state: 'ok', text: `one \x1b[31m${'two '.repeat(50)}` }, 60).every(
      (line) => line.length <= 60 && !line.includes('\x1b'),
    ),
  );
});

t.test('without a database it says so, and checks the rest', async (t) => {
  const away = await linesWith({ ...healthy, DATABASE_URL: 'postgres://rail:hidden@127.0.0.1:1/rail' });
  t.match(away.get('postgres/reachable'), { state: 'error', text: /cannot be reached/ });
  t.equal(away.get('machine/name_servers')?.state, 'ok');
  t.notMatch(JSON.stringify([...away.values()]), 'hidden');
  const none = await linesWith({ RAIL_DATA_DIR: t.testdir() });
  t.match(none.get('postgres/reachable'), { state: 'error', text: /holds no database/ });
  const invalid = await linesWith({ PORT: 'many' });
  t.match([...invalid.values()], [{ name: 'settings/values', state: 'error', text: /PORT: must be/ }]);
});

t.test('where no connection is left, each command says so, and what to do', async (t) => {
  const role = `limited_${process.pid}`;
  const client = await connect(t);
  await client.query(`create role ${role} login password 'secret' connection limit 0`);
  t.teardown(() => client.query(`drop role ${role}`));
  const DATABASE_URL = Object.assign(new URL(rail.url), { username: role, password: 'secret' }).href;
  const said =
    /Postgres has no connections left \(too many connections.*\): end sessions that nobody needs, raise max_connections/;
  const full = await linesWith({ ...healthy, DATABASE_URL });
  t.match(full.get('postgres/reachable'), { state: 'error', text: said });
  t.match(await command(['jobs', 'stats'], { ...healthy, DATABASE_URL }), { code: 1, stdout: '', stderr: said });
});

t.test('a database that is not migrated is told of, and what needs its tables is left out', async (t) => {
  const server = await serverUrl(t);
  const lines = await linesWith({ ...healthy, DATABASE_URL: databaseUrl(server, await emptyDatabase(server)) });
  t.match(lines.get('postgres/migrations'), { state: 'error', remedy: /migrate/ });
  t.equal(lines.get('postgres/server')?.state, 'ok');
  t.notOk(lines.has('jobs/failed'));
});

t.test('settings that are misspelt or contradict each other are told of', async (t) => {
  const wrong: [NodeJS.ProcessEnv, Partial<Line>][] = [
    [{ RAIL_WEBHOOK_ALLOW_PRIVAT: '1' }, { name: 'settings/names', text: 'Did you mean RAIL_WEBHOOK_ALLOW_PRIVATE?' }],
    [{ DATABASE_COLOUR: 'red' }, { name: 'settings/names', text: 'DATABASE_COLOUR is not a setting' }],
    [{ METRICS_PORT: '3000' }, { name: 'settings/ports', state: 'error' }],
    [{ DATABASE_POOL_SIZE: '3' }, { name: 'settings/pool', state: 'error', text: 'a worker 11' }],
    [{ DATABASE_POOL_SIZE: '8' }, { name: 'settings/pool', state: 'warning' }],
    [{ RAIL_ENCRYPTION_KEY: '' }, { name: 'settings/encryption_key', state: 'error' }],
    [{ BASE_URL: 'http://rail.example.com' }, { name: 'settings/base_url', text: 'is http' }],
    [{ BASE_URL: 'https://rail.example.com/app' }, { name: 'settings/base_url', text: 'the path /app' }],
    [
      { BASE_URL: '', HOST: '0.0.0.0' },
      { name: 'settings/base_url', state: 'error' },
    ],
    [{ BASE_URL: 'https://rail.example.com' }, { name: 'settings/proxies', text: 'TRUSTED_PROXIES' }],
    [
      { SMTP_URL: '', MAIL_FROM: 'rail@example.com' },
      { name: 'settings/mail', text: 'MAIL_FROM is set' },
    ],
    [{ DATABASE_READ_URL: 'postgres://rail@127.0.0.1:1/rail' }, { name: 'settings/database', text: 'the same' }],
    [{ LOG_LEVEL: 'silent' }, { name: 'settings/log' }],
  ].map(
    ([environment, line]) =>
      [{ ...healthy, DATABASE_URL: 'postgres://rail@127.0.0.1:1/rail', ...environment }, line] as [
        NodeJS.ProcessEnv,
        Partial<Line>,
      ],
  );
  for (const [environment, line] of wrong) {
    const { name, text = '', state = 'warning' } = line;
    const lines = await Array.fromAsync(diagnose(environment));
    const found = lines.find((one) => one.name === name && one.text.includes(text));
    t.equal(found?.state, state, `${name} ${text}`);
  }
});

t.test('name servers that do not answer, and a BASE_URL where nothing listens, are told of', async (t) => {
  const lines = await linesWith({
    ...healthy,
    RAIL_WEBHOOK_NAME_SERVERS: `127.0.0.1:1,${name_server}`,
    BASE_URL: 'http://127.0.0.1:1',
  });
  t.match(lines.get('machine/name_servers'), { state: 'warning', text: /127\.0\.0\.1:1 \(/ });
  t.match(lines.get('machine/base_url'), { state: 'warning', text: /cannot be used from here/ });
});

t.test('a replica that is away, another database or the primary is told of', async (t) => {
  const stateOf = async (url: string) =>
    (await linesWith({ ...healthy, DATABASE_READ_URL: url })).get('postgres/read_replica');
  t.match(await stateOf('postgres://rail@127.0.0.1:1/rail'), { state: 'error', text: /cannot be read/ });
  t.match(await stateOf(databaseUrl(rail.url, 'postgres')), { state: 'error', text: /another database/ });
  t.match(await stateOf(`${rail.url}?application_name=x`), { state: 'warning', text: /is the primary/ });
});

t.test('a transaction that is left open, and who waits for its locks, are found', async (t) => {
  const culprit = await connect(t);
  const victim = await connect(t);
  await culprit.query('begin isolation level repeatable read; lock table core.outgoing_mail in access exclusive mode');
  const waiting = victim.query('select from core.outgoing_mail').catch(() => {});
  await eventually(async () => (await rail.waiting()) > 0, 'somebody who waits');
  const lines = await linesWith();
  t.match(lines.get('service/mail'), {
    ...{ state: 'warning', text: /could not be checked: .*lock timeout/, remedy: /postgres\/locks/ },
  });
  const later = async (name: string) => {
    const { read, assess } = await checkNamed(name);
    const rows = (await read(rail.store.database as unknown as pg.Client)) as { seconds: number }[];
    return assess(rows.map((row) => ({ ...row, seconds: row.seconds + 600 })));
  };
  t.match(await later('postgres/transactions'), {
    state: 'warning',
    text: /pid \d+ \(culprit, \w+, idle in transaction\) for 10 minutes/,
  });
  t.match(await later('postgres/locks'), {
    state: 'error',
    text: /\(culprit,.*holds up 1 for 10 minutes at core\.outgoing_mail/,
  });
  await rail.query(
    sql`select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
  );
  await waiting;
  t.match(await later('postgres/locks'), {
    ...{ state: 'error', text: /\(culprit,.*keeps core\.outgoing_mail locked for 10 minutes/ },
  });
  await culprit.query('rollback');
});

t.test('policies, privileges and partitions that are gone are found, and a clock that is wrong', async (t) => {
  await rail.query(sql`drop policy own_organization on program.sale`);
  await rail.query(sql`revoke select on webhooks.endpoint from rail_api`);
  const weeks = await rail.query<{ name: string }>(sql`
    select c.oid::regclass::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'webhooks.attempt'::regclass and c.relname ~ 'attempt_\\d{8}$' and right(c.relname, 8)::date >= current_date + 7`);
  t.ok(weeks.length > 2);
  const client = await connect(t);
  for (const { name } of weeks) await client.query(`drop table ${name}`);
  await rail.query(sql`
    insert into core.process (name, role, version, connections, clock_skew_ms)
    values ('rail 1@a', 'worker', '1.0.0', 900, 86400000), ('rail 2@b', 'api', '1.0.1', 20, 0)`);
  const lines = await linesWith();
  t.match(lines.get('postgres/privileges'), { state: 'error', text: /^2 privileges or policies/ });
  t.match(lines.get('postgres/partitions'), { state: 'error', text: /webhooks\.attempt \d/ });
  t.match(lines.get('service/clocks'), { state: 'error', text: /rail 1@a is 24 hours ahead/ });
  t.match(lines.get('service/processes'), {
    state: 'warning',
    text: /1 api, 1 worker, of version 1\.0\.1 and 1\.0\.0/,
  });
  t.match(lines.get('postgres/connections'), { state: 'warning', text: /2 processes of Rail may open 920/ });
  await rail.query(sql`truncate core.process`);
  await migrate(rail.url);
  t.equal((await linesWith()).get('postgres/privileges')?.state, 'ok');
});

t.test(
  'jobs that failed, an unknown task, late schedules, runs that are not deleted and endpoints that fail are found',
  async (t) => {
    const caller = await rail.organization();
    const receiver = await startReceiver(() => 500);
    const { id: program_id } = await caller.post('/v1/programs', {
      name: 'Acme',
      currency: 'USD',
      website_url: 'https://acme.example.com',
    });
    const endpoint = await caller.post('/v1/webhook_endpoints', { program_id, url: receiver.url });
    for (const name of ['ada', 'bob', 'eve'])
      await caller.post('/v1/partners', { program_id, email: `${name}@example.com` });
    await rail.query(sql`select core.enqueue('[
    {"identifier": "core/send_mail", "payload": {}, "max_attempts": 1}, {"identifier": "core/no_such_task", "payload": {}}]')`);
    await rail.query(
      sql`insert into core.schedule (name, since) values ('program/mature_commissions', now() - interval '2 hours')`,
    );
    await rail.query(sql`insert into core.scheduled_run (id, name, tick, created_at)
    select 'run_' || ago, 'program/mature_commissions', now() - ago, now() - ago
    from (values (interval '2 hours'), (interval '101 days')) as old (ago)`);
    const found = async () => {
      const lines = await linesWith();
      return ['jobs/failed', 'jobs/tasks', 'webhooks/endpoints', 'jobs/schedules'].every(
        (name) => lines.get(name)?.state !== 'ok',
      );
    };
    await eventually(found, 'all of these lines');
    const lines = await linesWith();
    t.match(lines.get('jobs/failed'), { state: 'error', text: '1 job has failed for good: core/send_mail (1).' });
    t.match(lines.get('jobs/tasks'), { state: 'error', text: /core\/no_such_task \(1\)/ });
    await command(['jobs', 'cancel', '--task', 'core/no_such_task', '--confirm', '1'], healthy);
    t.match((await linesWith()).get('jobs/tasks'), { state: 'ok' }, 'its remedy helps');
    t.match(lines.get('webhooks/endpoints'), {
      state: 'warning',
      text: `1 endpoint takes none of its newest deliveries: ${endpoint.id}`,
    });
    t.match(lines.get('service/retention'), { state: 'warning', text: /scheduled_runs \(10 days\)/ });
    t.match(lines.get('jobs/schedules'), {
      state: 'error',
      text: /program\/mature_commissions (2 hours|1\d\d minutes)/,
    });
  },
);
