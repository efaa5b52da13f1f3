/** The retention of data: its time, its deletion, and the delay of that. */
import sql, { raw, type Sql } from 'sql-template-tag';
import { position_days } from '../exports/position.ts';
import { type Database, run } from '../postgres/database.ts';
import type { Tx } from '../postgres/transaction.ts';
import type { Retention } from '../resource/services.ts';

/** Rows of a kind, and how long they are kept. */
export interface Kept {
  /** In the plural. */
  kind: string;
  /** The setting that says how long; null: it is part of what the API promises, or they are kept for ever. */
  setting: string | null;
  /** Null: for ever. */
  days(retention: Retention): number | null;
  /** Selects when the oldest row was made, as `at`, by an index; null where there is none. */
  oldest: Sql;
  /** The days by which they go later, because they go many at a time; infinite where some stay. */
  late_days: number;
}

const oldestOf = (table: string): Sql => sql`select min(t.created_at) as at from ${raw(table)} t`;

/** Rows of a table that the hourly job deletes by `created_at`, of which the table has an index. */
const deleted = (kind: string, table: string, setting: string | null, days: Kept['days']) => ({
  ...{ kind, table, setting, days, oldest: oldestOf(table), late_days: 1 },
});

const deleted_hourly = [
  // "Replays the first response for 24 hours".
  deleted('idempotency_keys', 'core.idempotency_key', null, () => 1),
  deleted('sign_in_links', 'core.sign_in_link', null, () => 1),
  // None lasts longer.
  deleted('sessions', 'core.session', null, () => 31),
  deleted('export_positions', 'core.export_position', null, () => position_days),
  deleted('scheduled_runs', 'core.scheduled_run', 'RUN_RETENTION_DAYS', ({ run_days }) => run_days),
  deleted('mails', 'core.outgoing_mail', 'MAIL_RETENTION_DAYS', ({ mail_days }) => mail_days),
  deleted('audit_entries', 'core.audit_entry', 'AUDIT_LOG_RETENTION_DAYS', ({ audit_days }) => audit_days),
];

/** The kinds that the core keeps. */
export const kept_by_core: Kept[] = deleted_hourly;

/** Rows of a table with weekly partitions, which go a week at a time: as old as the first day of the oldest week. */
export const keptInWeeks = (kind: string, table: string, setting: string | null, days: Kept['days']): Kept => ({
  ...{ kind, setting, days, late_days: 8 },
  oldest: sql`
    select min(to_date(right(c.relname, 8), 'YYYYMMDD'))::timestamp at time zone 'UTC' as at
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass and c.relname ~ '_\\d{8}$'`,
});

/**
 * Deletes rows that are older than they are kept, by Postgres' clock.
 * @param at as of when, ISO 8601: not later than now
 * @param most of each table
 * @returns how many of the table that had most of them
 */
export async function purgeExpired(tx: Tx, retention: Retention, at: string, most: number): Promise<number> {
  let largest = 0;
  for (const { table, days } of deleted_hourly) {
    const { count } = await tx.one<{ count: number }>(sql`
      with expired as (
        select t.ctid from ${raw(table)} t
        where t.created_at < least(${at}::timestamptz, now()) - make_interval(days => ${days(retention)})
        order by t.created_at
        limit ${most}
        for update skip locked
      ),
      deleted as (
        delete from ${raw(table)} t where t.ctid = any (array(select e.ctid from expired e)) returning 1
      )
      select count(*) as count from deleted`);
    largest = Math.max(largest, count);
  }
  return largest;
}

/** The state of a kind. */
export interface Retained {
  kind: string;
  setting: string | null;
  /** The retention in days; null: for ever. */
  days: number | null;
  /** The time of the oldest one; null: there is none. */
  oldest_at: string | null;
  /** Since how many days the oldest one should be gone; 0: it should not. */
  behind_days: number;
}

/** Reads how old the oldest rows of each kind are, and what the settings say: one cheap statement a kind. */
export async function readRetention(
  database: Pick<Database, 'query'>,
  kept: Kept[],
  retention: Retention,
): Promise<Retained[]> {
  const all: Retained[] = [];
  for (const { kind, setting, days, oldest, late_days } of kept) {
    const [row] = await run<{ at: string | null; age: number | null }>(
      database,
      sql`select o.at, extract(epoch from now() - o.at)::float8 / 86400 as age from (${oldest}) as o`,
    );
    const kept_days = days(retention);
    const behind_days = kept_days === null ? 0 : Math.max(0, Math.floor((row?.age ?? 0) - kept_days - late_days));
    all.push({ kind, setting, days: kept_days, oldest_at: row?.at ?? null, behind_days });
  }
  return all;
}
