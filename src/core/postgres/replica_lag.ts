import sql, { type Sql } from 'sql-template-tag';

/**
 * Selects how many seconds a server is behind: 0 for one that has replayed what the primary had written before, however long nothing came, and for a
 * primary. One that has replayed no transaction since it started is behind for as long at least.
 * @param lsn what the primary had written before
 */
export const replicaLag = (lsn: string | null): Sql => sql`
  case
    when not pg_is_in_recovery() or pg_last_wal_replay_lsn() >= ${lsn}::pg_lsn then 0
    else extract(epoch from clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()))::float8
  end`;
