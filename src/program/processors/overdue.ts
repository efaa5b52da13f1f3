/** Events that were not worked on, and those that have waited for too long. */
import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { kept_days } from './backlog.ts';
import { accountOf, currentConnection, whileKeyHolds } from './connection.ts';
import type { ProcessorName } from './processor.ts';
import { billing } from './processors.ts';
import { takeAll } from './reconcile.ts';

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

interface Waiting {
  program_id: string;
  processor: ProcessorName;
  waiting_for: string;
}

/** Asks the processor what an event waits for. Until that is known it is shown as unresolved. */
export async function resolve(
  { organization_id, id }: { organization_id: string; id: string },
  context: Pick<TaskContext, 'store' | 'services' | 'cut_off'>,
): Promise<void> {
  const { store, services, cut_off } = context;
  const opening = { organization_id, request_id: null };
  const found = await transaction(store, { ...opening, only_reads: true }, async (tx) => {
    const event = await tx.maybe<Waiting>(sql`
      select t.program_id, t.processor, t.waiting_for from program.processor_event t
      where ${tenant(tx)} and t.id = ${id} and t.status = 'waiting'`);
    const connection = event && (await currentConnection(tx, event.program_id, event.processor));
    return connection?.status === 'connected' && event ? { event, connection } : undefined;
  });
  if (!found) return;
  const { event, connection } = found;
  await whileKeyHolds(store, opening, connection.id, async () => {
    const account = accountOf(services, connection, cut_off);
    const events = await billing[event.processor].find(account, event.waiting_for);
    // First: what is taken in then makes the id known, and releases it.
    await transaction(store, opening, (tx) => markUnresolved(tx, id, events.length > 0));
    await takeAll(connection, events, context);
  });
}

const markUnresolved = (tx: Tx, id: string, is_found: boolean) =>
  tx.all(sql`
    update program.processor_event t
    set status = 'unresolved', updated_at = ${tx.now}::timestamptz,
      message = 'It waited for 72 hours for ' || t.waiting_for || ${is_found ? ', which was then asked for.' : ', which the processor does not know either.'}::text
    where ${tenant(tx)} and t.id = ${id} and t.status = 'waiting'`);

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
