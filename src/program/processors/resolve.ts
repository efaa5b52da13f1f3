/** Asks a processor for what an event has waited for too long. */
import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { accountOf, currentConnection, whileKeyHolds } from './connection.ts';
import type { ProcessorName } from './processor.ts';
import { billing } from './processors.ts';
import { takeAll } from './reconcile.ts';

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
