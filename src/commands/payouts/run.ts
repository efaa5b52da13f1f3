import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'sql-template-tag';
import { logCommand } from '../../core/access/audit_log.ts';
import { run } from '../../core/postgres/database.ts';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import { createBatch, dueAt, refuseFarDueAt } from '../../program/payouts/batches/batch.ts';
import { countPartners } from '../../program/payouts/batches/selection.ts';
import { type PayoutBatch, payoutBatches } from '../../program/payouts/payout_batch.ts';
import { type Program, programs } from '../../program/programs/program.ts';
import { choose } from '../chosen.ts';
import { answer, type Opened, requireWorker, withStore } from '../command.ts';
import { showProgress } from '../output/progress.ts';
import { catchStop } from '../process.ts';
import { laterLines, maturingLater, requirePast } from './preview.ts';
import { grouped, sumsLines } from './tables.ts';

const poll_ms = 250;

interface RunOptions {
  program?: string;
  cutoff?: string;
  dueAt?: string;
  json?: boolean;
}

interface Created {
  organization_id: string;
  batch: PayoutBatch;
  program: Program;
  partners: number;
}

/** There was nothing to create a batch of. */
interface Nobody {
  cutoff: string;
  later: Awaited<ReturnType<typeof maturingLater>>;
}

/** `rail payouts run`: creates a batch and follows it. Ctrl-C ends the following alone. */
export async function runPayouts(options: RunOptions): Promise<void> {
  const stopping = catchStop();
  await withStore(async (opened) => {
    const { store } = opened;
    await requireWorker(store, 'nothing would create the payouts');
    const created = await create(opened, options);
    if ('later' in created) {
      const lines = [
        `No partner has a balance by ${created.cutoff}: no batch was created.`,
        ...laterLines(created.later),
      ];
      return answer({ batch: null, cutoff: created.cutoff }, { json: options.json, lines });
    }
    console.error(`Created ${created.batch.id}. Ctrl-C leaves it to the worker.`);
    const batch = await follow(store, created, stopping);
    if (batch) answer(batch, { json: options.json, lines: linesOf(batch, created.program) });
    else leave(created.batch.id);
  });
}

async function create(opened: Opened, options: RunOptions): Promise<Created | Nobody> {
  const { store } = opened;
  const { id, organization_id } = await choose(opened, 'program', options.program);
  return transaction(store, { organization_id, request_id: null }, async (tx) => {
    const program = await programs.get(tx, id);
    const cutoff = requirePast(options.cutoff ?? tx.now, tx.now);
    const partners = await countPartners(tx, { program_id: program.id, cutoff, is_preview: true });
    if (partners === 0) return { cutoff, later: await maturingLater(tx, { program_id: program.id, cutoff }) };
    const due_at = options.dueAt ?? dueAt(program, cutoff);
    refuseFarDueAt(tx, due_at);
    const batch = await createBatch(tx, program, { cutoff, due_at, created_by_user_id: null });
    logCommand(tx, 'payout_batches.create', batch.id);
    return { organization_id, batch, program, partners };
  });
}

/** @returns the batch once its payouts are created; undefined when it was left alone before */
async function follow(store: Store, created: Created, stopping: AbortSignal): Promise<PayoutBatch | undefined> {
  const { organization_id, batch, partners } = created;
  using progress = showProgress();
  while (!stopping.aborted) {
    const now = await transaction(store, { organization_id, request_id: null }, (tx) =>
      payoutBatches.get(tx, batch.id),
    );
    const { partners_looked_at, payouts } = now.progress;
    progress.shows(shareOf(partners_looked_at, partners), said(partners_looked_at, partners, payouts));
    if (now.progress.state === 'done') return now;
    await requireNoFailure(store, batch.id);
    await sleep(poll_ms, undefined, { signal: stopping }).catch(() => {});
  }
  return undefined;
}

/** Partners who earned something meanwhile can be more than were counted. */
const shareOf = (partners: number, total: number): number => (total === 0 ? 1 : Math.min(1, partners / total));

const said = (partners: number, total: number, payouts: number): string =>
  `${grouped(partners)} of ${grouped(Math.max(partners, total))} ${total === 1 ? 'partner' : 'partners'} looked at, ${grouped(payouts)} ${payouts === 1 ? 'payout' : 'payouts'} created`;

/** @throws Error that says why the job that creates the payouts failed */
async function requireNoFailure({ database }: Store, batch_id: string): Promise<void> {
  const [failed] = await run<{ last_error: string }>(
    database,
    sql`select j.last_error from graphile_worker._private_jobs j where j.payload ->> 'id' = ${batch_id} and j.last_error is not null`,
  );
  if (failed) throw new Error(`The job of ${batch_id} failed, and is tried again: ${failed.last_error}`);
}

/** Not a failure, yet not done either. */
function leave(batch_id: string): void {
  console.error(`${batch_id} goes on. Follow it with: npx --no rail payouts status --batch ${batch_id}`);
  process.exitCode = 130;
}

function linesOf(batch: PayoutBatch, program: Program): string[] {
  return [
    `${batch.id} is ${batch.status.replaceAll('_', ' ')}.`,
    '',
    ...sumsLines(batch.progress),
    ...next(batch, program),
  ];
}

function next({ id, status, due_at }: PayoutBatch, { auto_payouts_enabled }: Program): string[] {
  if (status === 'awaiting_approval') return ['', `Next: POST /v1/payout_batches/${id}/approve with a key of a user.`];
  if (status !== 'ready') return [];
  const sent = auto_payouts_enabled ? `They are sent on ${due_at}, or before that` : 'They are sent';
  return [
    '',
    `${sent} with: npx --no rail payouts send --batch ${id}`,
    `Follow them with: npx --no rail payouts status --batch ${id}`,
  ];
}
