/** Finds events that were not worked on, that have waited for too long, and that are not kept for longer. Loaded by each worker: it asks no processor. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { kept_days } from './backlog.ts';

/** A job does not take longer to begin. */
const late = sql`interval '2 minutes'`;
/** Then the processor is asked. */
const patience = sql`interval '72 hours'`;
/** The number of queues, and of events, that a tick deals with: the rest waits for the next. */
const most = 1_000;

interface Queue {
  organization_id: string;
  program_id: string;
  queue: string;
}

/** The events `e` whose processor may be asked: others wait for another key, or for a connection. */
const of_connected = sql`
  program.processor_event e
  join program.processor p on p.organization_id = e.organization_id and p.program_id = e.program_id
    and p.processor = e.processor and p.deleted_at is null and p.status = 'connected'`;

/** Queues whose events are pending for longer than a job needs. */
export const lateQueues = (tx: Tx): Promise<Queue[]> =>
  tx.all<Queue>(sql`
    select distinct e.organization_id, e.program_id, e.queue
    from ${of_connected}
    where e.status = 'pending' and e.updated_at < now() - ${late}
    limit ${most}`);

/** @param tick the time as of which they have waited for too long */
export const overdueEvents = (tx: Tx, tick: string): Promise<{ organization_id: string; id: string }[]> =>
  tx.all(sql`
    select e.organization_id, e.id
    from ${of_connected}
    where e.status = 'waiting' and e.worked_at < ${tick}::timestamptz - ${patience}
    order by e.worked_at
    limit ${most}`);

/** The connections whose events are compared with those of the processor, of all organizations. */
export const connectionsToReconcile = (tx: Tx): Promise<{ organization_id: string; id: string }[]> =>
  tx.all(sql`
    select t.organization_id, t.id from program.processor t
    where t.deleted_at is null and t.status = 'connected' order by t.organization_id, t.id`);

/** Deletes events that are older than they are kept. @returns how many */
export async function purgeEvents(tx: Tx, tick: string, at_once: number): Promise<number> {
  const { count } = await tx.one<{ count: number }>(sql`
    with expired as (
      select t.ctid from program.processor_event t
      where t.created_at < least(${tick}::timestamptz, now()) - make_interval(days => ${kept_days})
      order by t.created_at
      limit ${at_once}
      for update skip locked
    ),
    deleted as (delete from program.processor_event t where t.ctid = any(array(select e.ctid from expired e)) returning 1)
    select count(*) as count from deleted`);
  return count;
}
