/**
 * `npm run soak -- doctor`: servers of Debian's Postgres 15 are brought into the states that `rail doctor` is to tell of and that take a server of
 * their own: WAL that piles up, slots that fall behind and are lost, a replica that does not keep up, and transaction ids that run out.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { diagnose } from '../../src/commands/doctor/doctor.ts';
import type { Line } from '../../src/core/doctor/check.ts';
import { migrate } from '../../src/core/postgres/migrate.ts';
import { encryption_key, eventually } from '../harness.ts';
import { type Cluster, debian, newCluster, program, query, replicaOf, set, writeFor } from './cluster.ts';

const settings = {
  ...{ max_wal_senders: '10', wal_level: 'replica', hot_standby: 'on' },
  ...{ max_wal_size: '128MB', min_wal_size: '32MB' },
};
const late_ms = 65_000;

export function soakDoctor(): void {
  t.setTimeout(900_000);
  t.test('WAL that piles up for a slot and a replica', async (t) => {
    const primary = await newCluster(debian, settings);
    await migrate(primary.url);
    const replica = await replicaOf(primary);
    const readings = { DATABASE_READ_URL: replica.url };
    // Two checkpoints remove the WAL that the migrations have written.
    for (const _ of [1, 2]) await query(primary.superuser_url, 'checkpoint');
    const well = await linesOf(primary, readings);
    t.match(well.get('postgres/wal')?.text, /Members of pg_monitor see/);
    for (const name of ['replicas', 'slots', 'wal', 'read_replica'])
      t.match(well.get(`postgres/${name}`), { state: 'ok' }, `${name} is well`);

    await query(primary.superuser_url, "select pg_create_physical_replication_slot('forgotten', true)");
    await query(replica.superuser_url, 'select pg_wal_replay_pause()');
    await writeWal(primary);
    await sleep(late_ms);
    // Sessions of other users are shown to members of pg_monitor alone.
    t.match((await linesOf(primary)).get('postgres/replicas')?.text, /shown to members of pg_monitor/);
    await query(primary.superuser_url, 'grant pg_monitor to rail');
    const ill = await linesOf(primary, readings);
    t.match(ill.get('postgres/replicas'), { state: 'warning', text: /is streaming, 1\.\d GB and \d+ \w+ behind/ });
    t.match(ill.get('postgres/slots'), { state: 'warning', text: /^forgotten \(inactive\) keeps 1\.\d GB/ });
    t.match(ill.get('postgres/wal'), { state: 'warning', text: /^The WAL takes 1\.\d GB; max_wal_size is 128 MB/ });
    t.match(ill.get('postgres/read_replica'), { state: 'warning', text: /is \d+ \w+ behind/ });

    await query(replica.superuser_url, 'select pg_wal_replay_resume()');
    await set(primary, "max_slot_wal_keep_size = '16MB'");
    await query(primary.superuser_url, 'checkpoint');
    t.match((await linesOf(primary)).get('postgres/slots'), { state: 'error', text: /\(inactive, lost\)/ });
    await query(primary.superuser_url, "select pg_drop_replication_slot('forgotten')");
    await query(primary.superuser_url, 'checkpoint');
    const isWell = async () =>
      ['replicas', 'slots', 'wal', 'read_replica'].every((name) => again.get(`postgres/${name}`)?.state === 'ok');
    let again = await linesOf(primary, readings);
    await eventually(
      async () => {
        again = await linesOf(primary, readings);
        return isWell();
      },
      'all to be well again',
      120_000,
    );
    t.match((await linesOf(replica)).get('postgres/server'), { state: 'error', text: /^It is a replica/ });
  });

  t.test('transaction ids that run out', async (t) => {
    const cluster = await newCluster(debian, {
      ...settings,
      ...{ autovacuum_max_workers: '1', autovacuum_vacuum_cost_limit: '1', autovacuum_vacuum_cost_delay: '100ms' },
    });
    await migrate(cluster.url);
    await age(t, cluster, 1_100_000_000, {
      state: 'warning',
      text: /^The oldest row is 1,\d+,\d+,\d+ transactions old/,
    });
    await age(t, cluster, 1_700_000_000, { state: 'error', text: /Postgres refuses writes at 2,146,483,647/ });
  });
}

/** More than a gigabyte, of which nothing is kept in tables. */
async function writeWal({ superuser_url }: Cluster): Promise<void> {
  for (let nth = 0; nth < 12; nth++)
    await query(superuser_url, "select pg_logical_emit_message(false, 'soak', repeat('x', 100 * 1024 * 1024))");
  await query(superuser_url, 'create table public.last as select 1 as n');
  await query(superuser_url, 'drop table public.last');
}

const per_segment = 1_048_576;
const segment_bytes = 262_144;

/** Has the server go on at a transaction id, as if it had come so far. */
async function age(t: Test, cluster: Cluster, xid: number, line: Partial<Record<keyof Line, unknown>>): Promise<void> {
  await cluster.stop();
  await program(join(debian, 'pg_resetwal'), ['--force', `--next-transaction-id=${xid}`, cluster.data]);
  const segment = Math.floor(xid / per_segment)
    .toString(16)
    .toUpperCase()
    .padStart(4, '0');
  await writeFor(join(cluster.data, 'pg_xact', segment), '');
  await writeFile(join(cluster.data, 'pg_xact', segment), Buffer.alloc(segment_bytes));
  await cluster.start();
  t.match((await linesOf(cluster)).get('postgres/wraparound'), line);
}

async function linesOf({ url }: Cluster, more: NodeJS.ProcessEnv = {}): Promise<Map<string, Line>> {
  const environment = { DATABASE_URL: url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'), ...more };
  const lines = await Array.fromAsync(diagnose(environment));
  return new Map(lines.map((line) => [line.name, line]));
}
