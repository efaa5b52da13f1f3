/** Takes in what happened at a processor before the program was connected: page after page, each with where the next begins. */
import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { accountOf, type Connection, currentConnection } from './connection.ts';
import { take } from './intake.ts';
import type { ProcessorName } from './processor.ts';
import { billing } from './processors.ts';
import { readable } from './reconcile.ts';

export interface Progress {
  since: string;
  /** The beginning of the next page; null: at the beginning, or after the end. */
  from: string | null;
  /** Events that were read. */
  read: number;
  /** Those that were not known. */
  found: number;
}

export interface Wanted {
  organization_id: string;
  program_id: string;
  processor: ProcessorName;
  /** ISO 8601. */
  since: string;
  /** Counts what would be taken in, and takes in nothing. */
  dry_run: boolean;
}

type Context = Pick<TaskContext, 'store' | 'services' | 'cut_off'>;

/**
 * Goes on where an earlier one of the same time was ended.
 * @param tell called after each page
 * @throws Error where the program is not connected; KeyRefused, ProcessorAway
 */
export async function backfill(
  wanted: Wanted,
  context: Context,
  tell: (progress: Progress) => void,
): Promise<Progress> {
  const { organization_id, program_id, processor, since, dry_run } = wanted;
  const { store, services, cut_off } = context;
  const opening = { organization_id, request_id: null };
  const connection = await transaction(store, opening, (tx) => currentConnection(tx, program_id, processor));
  if (!connection) throw new Error(`The program ${program_id} is not connected to ${billing[processor].title}.`);
  const account = accountOf(services, connection, cut_off);
  let progress = await begun(wanted, connection, context);
  do {
    const page = await billing[processor].history(account, since, progress.from);
    const { from } = progress;
    progress = await transaction(store, opening, async (tx) => {
      const events = await unknown(tx, connection, readable(connection, page.events));
      const found = dry_run ? events.length : (await take(tx, events)).filter((one) => one === 'stored').length;
      const next = { since, from: page.next, read: progress.read + page.events.length, found: progress.found + found };
      if (!dry_run) await note(tx, connection.id, page.next === null ? null : next);
      return next;
    });
    if (progress.from !== null && progress.from === from) throw new Error('The processor gives the same page again.');
    tell(progress);
  } while (progress.from !== null);
  return progress;
}

async function begun(
  { since, dry_run }: Wanted,
  { organization_id, id }: Connection,
  { store }: Context,
): Promise<Progress> {
  const beginning = { since, from: null, read: 0, found: 0 };
  if (dry_run) return beginning;
  const kept = await transaction(store, { organization_id, request_id: null }, (tx) =>
    tx.one<{ backfill: Progress | null }>(
      sql`select t.backfill from program.processor t where ${tenant(tx)} and t.id = ${id}`,
    ),
  );
  return kept.backfill?.since === since ? kept.backfill : beginning;
}

const note = (tx: Tx, id: string, progress: Progress | null) =>
  tx.all(sql`
    update program.processor t set backfill = ${progress === null ? null : JSON.stringify(progress)}::jsonb, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${id}`);

/** Leaves out what a webhook told, though its event has another id. */
async function unknown<Event extends Parameters<typeof take>[1][number]>(
  tx: Tx,
  { program_id, processor }: Connection,
  events: Event[],
): Promise<Event[]> {
  const told = await tx.all<{ type: string; external_object_id: string }>(sql`
    select t.type, t.external_object_id
    from program.processor_event t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.processor = ${processor}
      and t.external_object_id = any(${events.map(({ envelope }) => envelope.external_object_id)}::text[])`);
  const known = new Set(told.map(({ type, external_object_id }) => `${type} ${external_object_id}`));
  return events.filter(({ envelope }) => !known.has(`${envelope.type} ${envelope.external_object_id}`));
}
