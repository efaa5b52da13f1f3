/** Checks the sessions of the server that hold up others, whosever they are. */
import sql, { raw, type Sql } from 'sql-template-tag';
import { ago, named } from './amounts.ts';
import { check, error, ok, rowOf, rowsOf, warning } from './check.ts';

const long_s = 300;
const longest_s = 3_600;
/** The time for which a session may be idle in a transaction. */
const idle_s = 60;
/** The time for which somebody may wait for a lock, or a session keep a table locked that others may not read. */
const waits_s = 5;
/** Versions of rows that this many transactions have left are seen to be kept. */
const many_transactions = 1_000_000;

/** Selects a text for people: `pid 71 (psql, ada, idle)`. @param session the alias of its row in pg_stat_activity */
const who = (session: 'a' | 'b'): Sql =>
  raw(
    `format('pid %s (%s)', ${session}.pid, concat_ws(', ', nullif(${session}.application_name, ''), ${session}.usename, ${session}.state))`,
  );

interface Transaction {
  /** `pid 71 (psql, idle in transaction)` */
  who: string;
  seconds: number;
  is_idle: boolean;
}

const end = 'End it by pg_terminate_backend(pid), if nobody needs it.';

export const sessionChecks = [
  check({
    name: 'postgres/transactions',
    read: rowsOf<Transaction>(sql`
      select ${who('a')} as who,
        extract(epoch from clock_timestamp() - a.xact_start)::float8 as seconds,
        coalesce(a.state like 'idle%', false) as is_idle
      from pg_stat_activity a
      where a.datname = current_database() and a.pid <> pg_backend_pid() and a.xact_start is not null
        and coalesce(a.backend_type, 'client backend') = 'client backend'
      union all
      select format('prepared transaction %s', p.gid), extract(epoch from clock_timestamp() - p.prepared)::float8, true
      from pg_prepared_xacts p
      where p.database = current_database()
      order by seconds desc`),
    assess(all) {
      const found = all.filter(({ seconds, is_idle }) => seconds > (is_idle ? idle_s : long_s));
      const [oldest] = found;
      if (!oldest) return ok('No transaction is open for long.');
      const named_ones = named(found.map(({ who, seconds }) => `${who} for ${ago(seconds)}`));
      const text = `Open for long: ${named_ones}. Dead rows cannot be removed meanwhile.`;
      return oldest.seconds > longest_s ? error(text, end) : warning(text, end);
    },
  }),
  check({
    name: 'postgres/locks',
    read: rowsOf<{ blocker: string; waiting: number; seconds: number; tables: string | null }>(sql`
      with waiting as (
        select w.pid, clock_timestamp() - w.query_start as waits, unnest(pg_blocking_pids(w.pid)) as blocked_by
        from pg_stat_activity w
        where w.datname = current_database() and cardinality(pg_blocking_pids(w.pid)) > 0
      )
      select ${who('b')} as blocker,
        count(distinct w.pid) as waiting,
        -- Requests give up after some seconds, and others come: the blocker's transaction is as old as their plight.
        extract(epoch from greatest(max(w.waits), clock_timestamp() - b.xact_start))::float8 as seconds,
        string_agg(distinct l.relation::regclass::text, ', ') as tables
      from waiting w
      join pg_stat_activity b on b.pid = w.blocked_by and cardinality(pg_blocking_pids(b.pid)) = 0
      left join pg_locks l on l.pid = w.pid and not l.granted
      group by b.pid, b.application_name, b.usename, b.state, b.xact_start
      union all
      -- Nobody waits at the moment.
      select ${who('b')}, 0, extract(epoch from clock_timestamp() - b.xact_start)::float8, string_agg(distinct l.relation::regclass::text, ', ')
      from pg_locks l
      join pg_class c on c.oid = l.relation and c.relkind in ('r', 'p')
      join pg_stat_activity b on b.pid = l.pid
      where l.mode = 'AccessExclusiveLock' and l.granted and c.relnamespace::regnamespace::text in (select core.own_schemas())
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
        and not exists (select from waiting w where w.blocked_by = b.pid)
      group by b.pid, b.application_name, b.usename, b.state, b.xact_start
      order by 2 desc`),
    assess(all_waiting) {
      const found = all_waiting.filter(({ seconds }) => seconds > waits_s);
      if (found.length === 0) return ok('Nobody waits for a lock for long.');
      const all = found.map(({ blocker, waiting, seconds, tables }) =>
        waiting > 0
          ? `${blocker} holds up ${waiting} for ${ago(seconds)}${tables ? ` at ${tables}` : ''}`
          : `${blocker} keeps ${tables} locked for ${ago(seconds)}`,
      );
      return error(`${named(all)}.`, end);
    },
  }),
  check({
    name: 'postgres/snapshot',
    read: rowOf<{ age: number; who: string | null }>(sql`
      select coalesce(h.age, 0)::int as age, h.who
      from (values (1)) as one
      left join lateral (
        select age(a.backend_xmin) as age, ${who('a')} as who
        from pg_stat_activity a
        where a.backend_xmin is not null and a.pid <> pg_backend_pid()
        union all
        select greatest(age(s.xmin), age(s.catalog_xmin)), format('replication slot %s', s.slot_name)
        from pg_replication_slots s
        where s.xmin is not null or s.catalog_xmin is not null
        union all
        select age(p.transaction), format('prepared transaction %s', p.gid) from pg_prepared_xacts p
        order by 1 desc
        limit 1
      ) as h on true`),
    assess({ age, who }) {
      if (who === null) return ok('No snapshot is held.');
      const text = `The oldest snapshot is ${age.toLocaleString('en')} transactions old, of ${who}.`;
      return age > many_transactions ? warning(`${text} Dead rows since then are kept.`, end) : ok(text);
    },
  }),
];
