import sql, { raw } from 'sql-template-tag';
import { position_days } from '../exports/position.ts';
import type { Tx } from '../postgres/transaction.ts';

/** Tables of the core and their retention, by `created_at`. "Replays the first response for 24 hours" is the reply to an idempotency key. */
const kept: { table: string; hours: number }[] = [
  { table: 'core.idempotency_key', hours: 24 },
  { table: 'core.scheduled_run', hours: 90 * 24 },
  { table: 'core.outgoing_mail', hours: 90 * 24 },
  { table: 'core.export_position', hours: position_days * 24 },
];

/**
 * Deletes rows that are older than they are kept, by Postgres' clock.
 * @param at as of when, ISO 8601: not later than now
 * @param most of each table
 * @returns how many of the table that had most of them
 */
export async function purgeExpired(tx: Tx, at: string, most: number): Promise<number> {
  let largest = 0;
  for (const { table, hours } of kept) {
    const { deleted } = await tx.one<{ deleted: number }>(sql`
      with expired as (
        select t.ctid from ${raw(table)} t
        where t.created_at < least(${at}::timestamptz, now()) - make_interval(hours => ${hours})
        limit ${most}
        for update skip locked
      ),
      deleted as (
        delete from ${raw(table)} t where t.ctid = any (array(select e.ctid from expired e)) returning 1
      )
      select count(*) as deleted from deleted`);
    largest = Math.max(largest, deleted);
  }
  return largest;
}
