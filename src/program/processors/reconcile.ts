/** Compares the inbox with what the processor says that it sent, and takes in what is missing. */
import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { accountOf, type Connection, connectionById, whileKeyHolds } from './connection.ts';
import { isOtherMode, type Taken, take } from './intake.ts';
import { webhooks } from './metrics.ts';
import { DeliveryRefused, type Envelope } from './processor.ts';
import { billing } from './processors.ts';

/** A processor may list an event some time after it happened. */
const overlap_ms = 3_600_000;
/** Stripe keeps events for 30 days. */
const most_ms = 30 * 86_400_000;

type Context = Pick<TaskContext, 'store' | 'services' | 'cut_off'>;
type Named = { organization_id: string; id: string };

/**
 * Takes in the events since the last comparison that are missing.
 * @param tick the time as of which it is compared
 * @returns how many were missing
 */
export async function reconcile({ organization_id, id }: Named, tick: string, context: Context): Promise<number> {
  const { store } = context;
  const opening = { organization_id, request_id: null };
  const found = await transaction(store, { ...opening, only_reads: true }, async (tx) => {
    const connection = await connectionById(tx, id);
    const { reconciled_to } = await tx.one<{ reconciled_to: string }>(
      sql`select t.reconciled_to from program.processor t where ${tenant(tx)} and t.id = ${id}`,
    );
    return connection && { connection, reconciled_to };
  });
  if (!found) return 0;
  const { connection, reconciled_to } = found;
  const since = Math.max(Date.parse(reconciled_to) - overlap_ms, Date.parse(tick) - most_ms);
  let missing = 0;
  await whileKeyHolds(store, opening, id, async () => {
    missing = await takeMissing(connection, new Date(since).toISOString(), context);
    await transaction(store, opening, (tx) =>
      tx.all(sql`
        update program.processor t
        set reconciled_to = greatest(t.reconciled_to, least(${tick}::timestamptz, now())), updated_at = ${tx.now}::timestamptz
        where ${tenant(tx)} and t.id = ${id}`),
    );
  });
  return missing;
}

async function takeMissing(connection: Connection, since: string, context: Context): Promise<number> {
  const processor = billing[connection.processor];
  const account = accountOf(context.services, connection, context.cut_off);
  let missing = 0;
  let from: string | null = null;
  do {
    const page = await processor.events(account, since, from);
    missing += await takeAll(connection, page.events, context);
    from = page.next;
  } while (from !== null);
  return missing;
}

/** Takes in events that the processor told when it was asked. @returns how many were not known */
export async function takeAll(connection: Connection, events: unknown[], { store }: Context): Promise<number> {
  const { organization_id, processor } = connection;
  const told = readable(connection, events);
  if (told.length === 0) return 0;
  const outcomes = await transaction(store, { organization_id, request_id: null }, (tx) => take(tx, told));
  const taken = outcomes.filter((outcome) => outcome === 'stored').length;
  if (taken > 0) webhooks.inc({ processor, outcome: 'reconciled' }, taken);
  return taken;
}

/** The events that have effects, as the inbox takes them. */
export function readable(connection: Connection, events: unknown[]): Taken[] {
  const { program_id, processor, mode } = connection;
  return events.flatMap((event) => {
    const envelope = envelopeOf(connection, event);
    if (!envelope || isOtherMode(envelope, mode)) return [];
    return [{ processor, program_id, mode, envelope, body: JSON.stringify(event) }];
  });
}

function envelopeOf({ processor }: Connection, event: unknown): Envelope | undefined {
  try {
    return billing[processor].envelope(event);
  } catch (error) {
    if (error instanceof DeliveryRefused) return undefined;
    throw error;
  }
}
