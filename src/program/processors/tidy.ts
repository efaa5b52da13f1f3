/** Does what is left to do at a processor, and here, once a connection was made or deleted. */
import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { accountOf, connectionById, currentConnection } from './connection.ts';
import { workLater } from './inbox.ts';
import { KeyRefused } from './processor.ts';
import { billing, webhookUrl } from './processors.ts';

/** The queues that one transaction enqueues. */
const most_queues = 5_000;

/**
 * Deletes the webhook endpoints at the processor that send to this program and are not of its current connection: those of earlier ones, and those
 * of a request that failed after it had created one.
 */
export async function tidyConnection(
  { organization_id, id }: { organization_id: string; id: string },
  { store, services, cut_off }: Pick<TaskContext, 'store' | 'services' | 'cut_off'>,
): Promise<void> {
  const opening = { organization_id, request_id: null };
  const found = await transaction(store, opening, async (tx) => {
    const connection = await connectionById(tx, id);
    if (!connection) return undefined;
    const { program_id, processor } = connection;
    const pending = await tx.all<{ queue: string }>(sql`
      select distinct t.queue from program.processor_event t
      where ${tenant(tx)} and t.program_id = ${program_id} and t.processor = ${processor} and t.status = 'pending'
      limit ${most_queues}`);
    workLater(
      tx,
      program_id,
      pending.map(({ queue }) => queue),
    );
    const ended = await tx.all<{ endpoint_id: string }>(sql`
      select t.endpoint_id from program.processor t
      where ${tenant(tx)} and t.program_id = ${program_id} and t.processor = ${processor} and t.deleted_at is not null
        and t.endpoint_id is not null`);
    const ended_ids = ended.map(({ endpoint_id }) => endpoint_id);
    return { connection, ended_ids, current: await currentConnection(tx, program_id, processor) };
  });
  if (!found) return;
  const { connection, current, ended_ids } = found;
  const { processor, program_id } = connection;
  const url = webhookUrl(processor, program_id, services);
  await billing[processor]
    .disconnect(accountOf(services, connection, cut_off), url, { keep: current?.endpoint_id ?? null, ended_ids })
    .catch((error: unknown) => {
      // A key that is refused can delete nothing.
      if (!(error instanceof KeyRefused)) throw error;
    });
}
