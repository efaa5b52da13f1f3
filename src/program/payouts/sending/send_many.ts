import sql, { type Sql } from 'sql-template-tag';
import type { Opening } from '../../../core/jobs/task.ts';
import type { TaskContext } from '../../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { type Program, programs } from '../../programs/program.ts';
import { PayoutFiles } from '../files/freeze.ts';
import { type Payout, payouts } from '../payout.ts';
import { payoutBatches } from '../payout_batch.ts';
import { rail_names } from '../rails/rail.ts';
import { due_by, of_ready_batch } from './find_due.ts';
import { sendPayouts } from './prepare.ts';

/** The payouts to send: pending ones, or failed ones again. */
export type Sent = { action: 'send' } | { action: 'retry'; requested_at: string };

interface Step {
  which: Sql;
  /** The number of payouts that a transaction sends. */
  most: number;
  /** The number of them that are read and checked at a time. */
  most_of_page: number;
}

/** The method that the partner has now, by which the payout is sent. */
const by_provider = sql`exists (
  select from program.payout_method m
  where m.organization_id = t.organization_id and m.partner_id = t.partner_id and m.method = any(${[...rail_names]}))`;

/** Payouts by providers are sent in small steps; those in files in one, so that a batch has one file for each method up to there. */
const steps: Step[] = [
  { which: by_provider, most: 100, most_of_page: 100 },
  { which: sql`not ${by_provider}`, most: 100_000, most_of_page: 1_000 },
];

/** Payouts, called `t`, that can be sent. */
export const to_send = sql`t.status = 'pending' and t.in_progress is null`;

/**
 * Failed payouts, called `t`, that can be sent again: none that has ended in test mode, and none that was sent since the retry was requested,
 * so that a second request, or the same job once more, sends nothing twice.
 */
export const failedBefore = (requested_at: string): Sql => sql`
  t.status = 'failed' and t.livemode and t.in_progress is null and coalesce(t.submitted_at, t.created_at) < ${requested_at}::timestamptz`;

/**
 * Sends payouts, a step a transaction. What cannot be sent stays as it is. It may be run again: what was sent is passed over.
 * @param which of the program's payouts, called `t`
 */
async function sendMany(
  program_id: string,
  which: Sql,
  opening: Opening,
  context: TaskContext,
  sent: Sent = { action: 'send' },
): Promise<void> {
  const { action } = sent;
  const of_status = sent.action === 'send' ? to_send : failedBefore(sent.requested_at);
  for (const step of steps) {
    let after: string | undefined = '';
    while (after !== undefined && !context.stopping.aborted) {
      const from: string = after;
      after = await transaction(context.store, opening, async (tx) => {
        const program = await programs.get(tx, program_id);
        return sendStep(
          tx,
          context.services,
          program,
          { ...step, action, which: sql`${of_status} and ${step.which} and ${which}` },
          from,
        );
      });
    }
  }
}

/**
 * Sends a page at a time. The events of payouts in files are emitted when all files are complete.
 * @returns the last of the payouts that were looked at; undefined where there was none
 */
async function sendStep(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  program: Program,
  { which, most, most_of_page, action }: Step & { action: Sent['action'] },
  after: string,
): Promise<string | undefined> {
  const files = new PayoutFiles(tx, services);
  const sendable = sendableOf(tx, program, which);
  const batch_ids = await lockBatches(tx, sendable, { after, most });
  const of_batches = sql`${sendable} and t.batch_id = any(${batch_ids})`;
  let last: string | undefined;
  for (let left = most; left > 0; left -= most_of_page) {
    const page = { after: last ?? after, most: Math.min(left, most_of_page), action };
    const next = await sendNext(tx, services, program, of_batches, page, files);
    if (next === undefined) break;
    last = next;
  }
  await files.emitUpdates();
  return last;
}

const sendableOf = (tx: Tx, { id }: Program, which: Sql): Sql => sql`
  from ${payouts.from}
  where ${tenant(tx)} and t.program_id = ${id} and ${payouts.alive} and ${which}`;

interface Page {
  after: string;
  most: number;
}

async function sendNext(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  program: Program,
  sendable: Sql,
  { after, most, action }: Page & { action: Sent['action'] },
  files: PayoutFiles,
): Promise<string | undefined> {
  const next = await tx.all<Payout>(sql`
    select ${payouts.columns} ${sendable} and t.id > ${after} order by t.id limit ${most} for no key update of t`);
  for (const batch_id of new Set(next.map((payout) => payout.batch_id))) {
    const of_batch = next.filter((payout) => payout.batch_id === batch_id);
    await sendPayouts(tx, services, program, of_batch, action, files);
  }
  return next.at(-1)?.id;
}

/** Locks batches that are ready: before their payouts, so that none is deleted whose payouts are sent. @returns their ids */
async function lockBatches(tx: Tx, sendable: Sql, { after, most }: Page): Promise<string[]> {
  const ready = await tx.all<{ id: string }>(sql`
    select b.id from program.payout_batch b
    where b.organization_id = ${tx.organization_id} and b.stage = 'ready' and b.deleted_at is null and b.id in (
      select t.batch_id ${sendable} and t.id > ${after} order by t.id limit ${most}
    )
    order by b.id
    for share`);
  return ready.map(({ id }) => id);
}

/** Sends what is pending of a batch that is ready, or again what has failed of it. */
export async function sendBatch(
  { organization_id, request_id, id }: { organization_id: string; request_id: string | null; id: string },
  sent: Sent,
  context: TaskContext,
): Promise<void> {
  const opening = { organization_id, request_id };
  const batch = await transaction(context.store, opening, (tx) =>
    payoutBatches.find(tx, sql`${tenant(tx)} and t.id = ${id} and t.stage = 'ready'`),
  );
  if (!batch) return;
  await sendMany(batch.program_id, sql`t.batch_id = ${id} and ${of_ready_batch}`, opening, context, sent);
  // A worker that must stop leaves the rest to a job.
  if (!context.stopping.aborted) return;
  const retry = sent.action === 'retry' ? { retry_requested_at: sent.requested_at } : {};
  await transaction(context.store, opening, async (tx) =>
    tx.enqueue('program/send_payout_batch', { ...opening, id, ...retry }),
  );
}

/** "Send … at `due_at` with `auto_payouts_enabled`." */
export const sendDue = (
  { organization_id, run_id, id, tick }: { organization_id: string; run_id: string; id: string; tick: string },
  context: TaskContext,
): Promise<void> => sendMany(id, due_by(tick), { organization_id, request_id: run_id }, context);
