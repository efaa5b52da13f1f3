/** The Postgres server as a whole. */
import sql from 'sql-template-tag';
import { reserved_connections } from '../postgres/connections.ts';
import { most_skew_ms } from '../values/clock.ts';
import { ago, counted, size } from './amounts.ts';
import { check, error, ok, rowOf, type Session, warning } from './check.ts';

/** The share of its connections. */
const full_share = 0.9;
/** Transactions until Postgres refuses to write come to two billion: autovacuum begins at 200 million. */
const old_transactions = 1_000_000_000;
const oldest_transactions = 1_600_000_000;

export const serverChecks = [
  check({
    name: 'postgres/server',
    read: rowOf<{ version: string; is_replica: boolean; user: string; up_s: number }>(sql`
      select current_setting('server_version') as version, pg_is_in_recovery() as is_replica, current_user as user,
        extract(epoch from now() - pg_postmaster_start_time())::float8 as up_s`),
    assess: ({ version, is_replica, user, up_s }) =>
      is_replica
        ? error(`It is a replica: it takes no writes.`, 'Set DATABASE_URL to the primary, or promote this server.')
        : ok(`Version ${version}, as ${user}, up for ${ago(up_s)}.`),
  }),
  check({
    name: 'postgres/clock',
    read: readClock,
    assess(skew_ms) {
      if (Math.abs(skew_ms) <= most_skew_ms) return ok("The clock of this machine agrees with Postgres'.");
      const by = `${ago(Math.abs(skew_ms) / 1_000)} ${skew_ms > 0 ? 'ahead of' : 'behind'} Postgres'`;
      return error(`The clock of this machine is ${by}.`, 'Synchronize both clocks (NTP).');
    },
  }),
  check({
    name: 'postgres/connections',
    read: rowOf<{ open: number; most: number; processes: number; wanted: number }>(sql`
      select
        (
          select count(*) from pg_stat_activity a
          where coalesce(a.backend_type, 'client backend') = 'client backend' and a.usesysid is not null
        ) as open,
        current_setting('max_connections')::int - ${reserved_connections} as most,
        (select count(*) from core.process p where p.seen_at > now() - interval '3 minutes') as processes,
        (select coalesce(sum(p.connections), 0) from core.process p where p.seen_at > now() - interval '3 minutes') as wanted`),
    assess({ open, most, processes, wanted }) {
      const text = `${open} of ${most} connections are open; ${counted(processes, 'process', 'processes')} of Rail may open ${wanted}.`;
      if (open >= most * full_share) return error(text, 'Raise max_connections, or lower DATABASE_POOL_SIZE.');
      if (wanted > most)
        return warning(`${text} Each opens fewer meanwhile.`, 'Lower DATABASE_POOL_SIZE, or raise max_connections.');
      return ok(text);
    },
  }),
  check({
    name: 'postgres/settings',
    read: rowOf<
      Record<'fsync' | 'full_page_writes' | 'synchronous_commit' | 'autovacuum' | 'track_counts', string>
    >(sql`
      select current_setting('fsync') as fsync, current_setting('full_page_writes') as full_page_writes,
        current_setting('synchronous_commit') as synchronous_commit, current_setting('autovacuum') as autovacuum,
        current_setting('track_counts') as track_counts`),
    assess({ fsync, full_page_writes, synchronous_commit, autovacuum, track_counts }) {
      const lost = Object.entries({ fsync, full_page_writes }).flatMap(([name, value]) =>
        value === 'off' ? [name] : [],
      );
      if (lost.length > 0)
        return error(`${lost.join(' and ')} off: a crash of its machine can destroy the database.`, 'Set them to on.');
      if (autovacuum === 'off' || track_counts === 'off')
        return error(
          'Autovacuum is off: tables grow, and Postgres stops in the end.',
          'Set autovacuum and track_counts to on.',
        );
      if (synchronous_commit === 'off')
        return warning(
          'synchronous_commit is off: a crash loses the last requests that were answered.',
          'Set it to on.',
        );
      return ok('fsync, synchronous_commit and autovacuum are on.');
    },
  }),
  check({
    name: 'postgres/wraparound',
    read: rowOf<{ age: number }>(
      sql`select age(d.datfrozenxid)::int as age from pg_database d where d.datname = current_database()`,
    ),
    assess({ age }) {
      const text = `The oldest row is ${age.toLocaleString('en')} transactions old.`;
      const remedy = 'End what postgres/snapshot names, then run VACUUM (FREEZE).';
      if (age > oldest_transactions) return error(`${text} Postgres refuses writes at 2,146,483,647.`, remedy);
      return age > old_transactions ? warning(text, remedy) : ok(text);
    },
  }),
  check({
    name: 'postgres/size',
    read: rowOf<{ bytes: number; largest: string | null }>(sql`
      select pg_database_size(current_database()) as bytes,
        (
          select string_agg(format('%s %s', t.name, pg_size_pretty(t.bytes)), ', ' order by t.bytes desc)
          from (
            -- A partitioned table counts with all its partitions.
            select coalesce(i.inhparent, c.oid)::regclass::text as name, sum(pg_total_relation_size(c.oid)) as bytes
            from pg_class c
            join pg_namespace n on n.oid = c.relnamespace
            left join pg_inherits i on i.inhrelid = c.oid
            where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')
            group by 1
            order by 2 desc
            limit 3
          ) as t
        ) as largest`),
    assess: ({ bytes, largest }) => ok(`The database takes ${size(bytes)}. Its largest tables: ${largest ?? 'none'}.`),
  }),
];

/** Returns how far this machine is ahead, in milliseconds. Less than the round trip cannot be measured. */
async function readClock(on: Session): Promise<number> {
  const before = Date.now();
  const { rows } = await on.query<{ now: number }>(
    'select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now',
  );
  const now = rows[0]?.now as number;
  return Math.max(before - now, 0) + Math.min(Date.now() - now, 0);
}
