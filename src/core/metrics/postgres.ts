/** The metrics of Postgres itself: its room, and its obstacles. */
import sql from 'sql-template-tag';
import { reserved_connections } from '../postgres/connections.ts';
import { type Database, run } from '../postgres/database.ts';
import { replicaLag } from '../postgres/replica_lag.ts';
import type { Backlog, Measured } from './backlog.ts';
import { inTime } from './reader.ts';
import { SharedGauge } from './registry.ts';

const connections = new SharedGauge(
  'rail_postgres_connections',
  {
    help: 'Connections of the Postgres server: open, and the maximum of those that are not reserved. Of the open ones: active, idle_in_transaction, and waiting for a lock.',
    row: 'Postgres',
    title: 'Connections of the server',
    alerts: [
      {
        name: 'RailPostgresConnections',
        expr: 'max(rail_postgres_connections{state="open"}) > 0.9 * max(rail_postgres_connections{state="most"})',
        for: '5m',
        severity: 'warning',
        summary: 'More than 90 % of the connections of Postgres are open.',
        remedy:
          'Raise max_connections, lower DATABASE_POOL_SIZE, or close what else connects: pg_stat_activity shows whose the connections are.',
      },
    ],
  },
  ['state'],
);
const transaction_age = new SharedGauge('rail_postgres_transaction_seconds', {
  help: 'How long the oldest transaction of the server has been open.',
  row: 'Postgres',
  title: 'Oldest transaction',
  alerts: [
    {
      name: 'RailTransactionOpen',
      expr: 'max(rail_postgres_transaction_seconds) > 900',
      for: '1m',
      severity: 'warning',
      summary: 'A transaction has been open for more than 15 minutes.',
      remedy:
        'Find it: select pid, usename, application_name, query from pg_stat_activity order by xact_start. If nobody needs it, end it by pg_terminate_backend(pid).',
    },
  ],
});
const snapshot_age = new SharedGauge('rail_postgres_snapshot_transactions', {
  help: 'How many transactions have begun since the oldest snapshot, of a session or a replication slot. What was deleted since then cannot be vacuumed.',
  row: 'Postgres',
  title: 'Age of the oldest snapshot',
  alerts: [
    {
      name: 'RailSnapshotOld',
      expr: 'max(rail_postgres_snapshot_transactions) > 2000000',
      for: '15m',
      severity: 'warning',
      summary: 'A session or a replication slot keeps Postgres from vacuuming: queries become slower.',
      remedy:
        'Look for the oldest backend_xmin in pg_stat_activity, and for xmin in pg_replication_slots; end the session, or drop a slot that nobody reads.',
    },
  ],
});
const slot_bytes = new SharedGauge('rail_postgres_slot_bytes', {
  help: 'WAL that the replication slot which is furthest behind keeps on the disk.',
  row: 'Postgres',
  title: 'WAL kept for replication slots',
  alerts: [
    {
      name: 'RailSlotBehind',
      expr: 'max(rail_postgres_slot_bytes) > 10e9',
      for: '10m',
      severity: 'warning',
      summary: 'A replication slot keeps more than 10 GB of WAL on the disk of Postgres.',
      remedy:
        'Start its subscriber, or drop the slot by pg_drop_replication_slot. max_slot_wal_keep_size bounds what slots may keep.',
    },
  ],
});
const replica_up = new SharedGauge('rail_replica_up', {
  help: 'Whether the replica of DATABASE_READ_URL answers: 1, or 0. Shown where there is one.',
  row: 'Postgres',
  title: 'The replica answers',
  alerts: [
    {
      name: 'RailReplicaDown',
      expr: 'min(rail_replica_up) == 0',
      for: '5m',
      severity: 'warning',
      summary: 'The replica does not answer: reports, data logins and GraphQL fail.',
      remedy: 'Start the replica, or unset DATABASE_READ_URL and restart the processes.',
    },
  ],
});
const replica_lag = new SharedGauge('rail_replica_lag_seconds', {
  help: 'How far the replica of DATABASE_READ_URL is behind; 0 if it has all that was written.',
  row: 'Postgres',
  title: 'Lag of the replica',
  alerts: [
    {
      name: 'RailReplicaLags',
      expr: 'max(rail_replica_lag_seconds) > 60',
      for: '5m',
      severity: 'warning',
      summary: 'What reports and data teams see is more than a minute old.',
      remedy:
        'Look for long queries on the replica, which hold up its replay, and whether its disk and network keep up.',
    },
  ],
});
const partitions = new SharedGauge('rail_partitions_ahead_days', {
  help: 'For how many days tables have partitions made in advance: the table that has the fewest.',
  row: 'Postgres',
  title: 'Days with partitions',
  alerts: [
    {
      name: 'RailPartitionsMissing',
      expr: 'min(rail_partitions_ahead_days) < 14',
      for: '1h',
      severity: 'warning',
      summary: 'Tables have partitions for less than two weeks.',
      remedy:
        "Run 'npx --no rail run webhooks/keep_partitions' and 'program/keep_partitions'; the logs of the workers say why they fail.",
    },
  ],
});
const violations = new SharedGauge('rail_audit_violations', {
  help: "What the last 'npx --no rail audit' found. Left out until one has ended.",
  row: 'Is it well',
  title: 'Violations found by the audit',
  alerts: [
    {
      name: 'RailAuditFound',
      expr: 'max(rail_audit_violations) > 0',
      for: '0m',
      severity: 'critical',
      summary: "'npx --no rail audit' found data that contradicts other data.",
      remedy: "Run 'npx --no rail audit': it names each invariant and what violates it.",
    },
  ],
});
const audit_age = new SharedGauge('rail_audit_age_seconds', {
  help: "How long ago the last 'npx --no rail audit' ended that read everything. Left out until one has.",
  row: 'Is it well',
  title: 'Time since the audit',
  alerts: [
    {
      name: 'RailAuditOld',
      expr: 'max(rail_audit_age_seconds) > 14 * 86400',
      for: '1h',
      severity: 'warning',
      summary: "'npx --no rail audit' has not run for two weeks.",
      remedy: "Run 'npx --no rail audit' each week, at a quiet hour.",
    },
  ],
});

/** Connections, transactions, replication slots, partitions and the last audit. */
export const postgresBacklog: Backlog = {
  gauges: [...[connections, transaction_age, snapshot_age, slot_bytes], ...[partitions, violations, audit_age]],
  async read(database) {
    const [server] = await run<Server>(database, ofServer);
    const [data] = await run<Data>(database, ofData);
    const { transaction_s, snapshot, slot, ...states } = server as Server;
    return [
      ...Object.entries(states).map(([state, value]) => ({ gauge: connections, labels: { state }, value })),
      ...measured([transaction_age, transaction_s], [snapshot_age, snapshot], [slot_bytes, slot]),
      ...measured([partitions, data?.days], [violations, data?.violations], [audit_age, data?.audit_s]),
    ];
  },
};

/** The replica of this process: another process may have another one, or none. */
export const replicaBacklog: Backlog = {
  gauges: [replica_up, replica_lag],
  of_each_process: true,
  async read(database, replica) {
    if (!replica) return [];
    const [primary] = await run<{ lsn: string }>(database, sql`select pg_current_wal_insert_lsn()::text as lsn`);
    return readReplica(replica, (primary as { lsn: string }).lsn);
  },
};

/** Leaves out values that are null. */
const measured = (...values: [gauge: SharedGauge<string>, value: number | null | undefined][]): Measured[] =>
  values.flatMap(([gauge, value]) => (value === null || value === undefined ? [] : [{ gauge, labels: {}, value }]));

interface Server {
  open: number;
  most: number;
  active: number;
  idle_in_transaction: number;
  waiting: number;
  transaction_s: number;
  snapshot: number;
  slot: number;
}

/** A user without privileges sees neither the type nor the activity of other users' sessions. */
const ofServer = sql`
  with session as (
    select a.*, coalesce(a.backend_type, 'client backend') = 'client backend' and a.usesysid is not null as is_client
    from pg_stat_activity a
    where a.pid <> pg_backend_pid()
  )
  select
    count(*) filter (where s.is_client) + 1 as open,
    current_setting('max_connections')::int - ${reserved_connections} as most,
    count(*) filter (where s.is_client and s.state = 'active') as active,
    count(*) filter (where s.is_client and s.state like 'idle in transaction%') as idle_in_transaction,
    count(*) filter (where s.wait_event_type = 'Lock') as waiting,
    coalesce(extract(epoch from clock_timestamp() - min(s.xact_start) filter (where s.is_client)), 0)::float8 as transaction_s,
    greatest(
      coalesce(max(age(s.backend_xmin)), 0),
      (select coalesce(max(greatest(age(r.xmin), age(r.catalog_xmin))), 0) from pg_replication_slots r)
    ) as snapshot,
    (
      select coalesce(max(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), r.restart_lsn)), 0)::float8
      from pg_replication_slots r
    ) as slot
  from session s`;

interface Data {
  days: number | null;
  violations: number | null;
  audit_s: number | null;
}

const ofData = sql`
  select
    (select min(f.last_week) + 7 - (now() at time zone 'UTC')::date from core.partitioned_tables() f) as days,
    a.violations, extract(epoch from clock_timestamp() - a.finished_at)::float8 as audit_s
  from (values (true)) as one
  left join core.audit_result a on true`;

const most_replica_ms = 1_500;

/** @param lsn what the primary had written before */
async function readReplica(replica: Database, lsn: string): Promise<Measured[]> {
  const read = run<{ lag: number | null }>(replica, sql`select ${replicaLag(lsn)} as lag`).catch(() => undefined);
  const found = await inTime(read, most_replica_ms, undefined);
  return measured([replica_up, found ? 1 : 0], [replica_lag, found?.[0]?.lag]);
}
