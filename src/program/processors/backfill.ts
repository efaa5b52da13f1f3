/** Takes in what happened at a processor before the program was connected: page after page, each with where the next begins. */
import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { accountOf, type Connection, currentConnection, whileKeyHolds } from './connection.ts';
import { take } from './intake.ts';
import type { ProcessorName } from './processor.ts';
import { billing } from './processors.ts';
import { readable } from './reconcile.ts';

/** How far it is, as it stands beside the connection. */
export interface Progress {
  since: string;
  /** Counts what would be taken in, and takes in nothing. */
  dry_run: boolean;
  status: 'running' | 'done' | 'failed';
  /** The beginning of the next page; null: at the beginning, or after the end. */
  from: string | null;
  /** Events that were read. */
  read: number;
  /** Those that were not known. */
  found: number;
  /** Why it failed. */
  error: string | null;
  updated_at: string;
}

export interface Wanted {
  organization_id: string;
  program_id: string;
  processor: ProcessorName;
  /** ISO 8601. */
  since: string;
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
  const connection = await connectionFor(wanted, context);
  if (!connection) throw new Error(`The program ${wanted.program_id} is not connected to ${wanted.processor}.`);
  let progress = await begun(wanted, connection, context);
  do {
    progress = await takePage(wanted, connection, progress, context);
    tell(progress);
  } while (progress.status === 'running');
  return progress;
}

/** The pages that a job reads: further ones are those of the next. */
const most_pages = 50;

/**
 * The same as a job, some pages of it.
 * @returns whether there are more
 * @throws ProcessorAway
 */
export async function backfillSome(
  wanted: Wanted,
  { stopping, ...context }: Context & Pick<TaskContext, 'stopping'>,
): Promise<boolean> {
  const connection = await connectionFor(wanted, context);
  if (!connection) return false;
  const opening = { organization_id: wanted.organization_id, request_id: null };
  let progress = await begun(wanted, connection, context);
  const holds = await whileKeyHolds(context.store, opening, connection.id, async () => {
    for (let page = 0; page < most_pages && progress.status === 'running' && !stopping.aborted; page++)
      progress = await takePage(wanted, connection, progress, context);
  });
  if (holds) return progress.status === 'running';
  const failed = { ...progress, status: 'failed' as const, error: 'The processor refuses the key.' };
  await transaction(context.store, opening, (tx) => noteProgress(tx, connection.id, failed));
  return false;
}

const connectionFor = ({ organization_id, program_id, processor }: Wanted, { store }: Context) =>
  transaction(store, { organization_id, request_id: null }, (tx) => currentConnection(tx, program_id, processor));

async function takePage(
  { organization_id, processor, dry_run }: Wanted,
  connection: Connection,
  progress: Progress,
  { store, services, cut_off }: Context,
): Promise<Progress> {
  const { since, from } = progress;
  const page = await billing[processor].history(accountOf(services, connection, cut_off), since, from);
  if (page.next !== null && page.next === from) throw new Error('The processor gives the same page again.');
  return transaction(store, { organization_id, request_id: null }, async (tx) => {
    const events = await unknown(tx, connection, readable(connection, page.events));
    const found = dry_run ? events.length : (await take(tx, events)).filter((one) => one === 'stored').length;
    const next: Progress = {
      ...{ since, dry_run, status: page.next === null ? 'done' : 'running', from: page.next },
      ...{ read: progress.read + page.events.length, found: progress.found + found, error: null, updated_at: tx.now },
    };
    await noteProgress(tx, connection.id, next);
    return next;
  });
}

export const beginning = (since: string, dry_run: boolean, updated_at: string): Progress => ({
  ...{ since, dry_run, status: 'running', from: null, read: 0, found: 0, error: null, updated_at },
});

async function begun(
  { since, dry_run }: Wanted,
  { organization_id, id }: Connection,
  { store }: Context,
): Promise<Progress> {
  return transaction(store, { organization_id, request_id: null }, async (tx) => {
    const kept = await progressOf(tx, id);
    const goes_on = kept?.since === since && kept.dry_run === dry_run && kept.status !== 'done';
    return goes_on ? { ...kept, status: 'running' } : beginning(since, dry_run, tx.now);
  });
}

/** Undefined: none was ever begun. */
export async function progressOf(tx: Tx, connection_id: string): Promise<Progress | undefined> {
  const kept = await tx.maybe<{ backfill: Progress | null }>(
    sql`select t.backfill from program.processor t where ${tenant(tx)} and t.id = ${connection_id}`,
  );
  return kept?.backfill ?? undefined;
}

export const noteProgress = (tx: Tx, connection_id: string, progress: Progress) =>
  tx.all(sql`
    update program.processor t set backfill = ${JSON.stringify(progress)}::jsonb, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${connection_id}`);

/** The reasons of a webhook that may not hold any more. */
const changing = ['refund_pending', 'not_approved', 'not_captured', 'not_begun'];

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
      and t.external_object_id = any(${events.map(({ envelope }) => envelope.external_object_id)}::text[])
      and (t.status <> 'ignored' or t.reason <> all(${changing}::text[]))`);
  const known = new Set(told.map(({ type, external_object_id }) => `${type} ${external_object_id}`));
  return events.filter(({ envelope }) => !known.has(`${envelope.type} ${envelope.external_object_id}`));
}
