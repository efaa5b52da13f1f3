/** `rail jobs retry` and `rail jobs cancel`. */
import sql, { type Sql } from 'sql-template-tag';
import { counted } from '../../core/doctor/amounts.ts';
import {
  changeJobs as change,
  type FoundJob,
  type Job,
  type JobAction,
  lockJobs,
  whyNot,
} from '../../core/jobs/job.ts';
import { service_opening } from '../../core/jobs/task.ts';
import type { Database } from '../../core/postgres/database.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { answer, UsageError, warnWithoutWorker, withStore } from '../command.ts';
import { table } from '../output/table.ts';
import { grouped } from '../payouts/tables.ts';
import { type Filter, whereOf } from './job.ts';
import { linesOf } from './list.ts';

/** So many of those that stay as they are are named. */
const most_refused = 20;

interface ChangeOptions extends Filter {
  confirm?: number;
  dryRun?: boolean;
  json?: boolean;
}

interface Outcome {
  /** The jobs that were changed, or would be. */
  jobs: Job[];
  refused: { id: number; reason: string }[];
  done: boolean;
}

/**
 * Runs jobs at once and with all their attempts, or has them never run. A job that a worker runs is neither: it is refused.
 * @param ids of jobs; without any, those that match the options, of which `confirm` says how many they are
 */
export const changeJobs = (action: JobAction, ids: number[], options: ChangeOptions): Promise<void> =>
  withStore(async ({ store }) => {
    const { confirm, dryRun, json, ...filter } = options;
    const where = await wantedOf(store.database, ids, filter, confirm);
    const is_asked = ids.length > 0 ? !dryRun : confirm !== undefined && !dryRun;
    const outcome = await transaction(store, service_opening, async (tx) => {
      const found = await lockJobs(tx, where);
      requireAll(ids, found);
      return decide(tx, action, found, is_asked && ids.length === 0 ? confirm : undefined, is_asked);
    });
    if (outcome.done && action === 'retry' && outcome.jobs.length > 0)
      await warnWithoutWorker(store, 'they wait until one does');
    answer(outcome, { json, lines: outcomeLines(action, outcome, ids.length === 0 && !dryRun) });
    if (outcome.refused.length > 0 && ids.length > 0) process.exitCode = 1;
  });

async function wantedOf(database: Database, ids: number[], filter: Filter, confirm: number | undefined): Promise<Sql> {
  const is_filtered = Object.values(filter).some((value) => value !== undefined);
  if (ids.length > 0 && (is_filtered || confirm !== undefined))
    throw new UsageError('Give either ids of jobs, or options that say which.');
  if (ids.length === 0 && !is_filtered)
    throw new UsageError(
      "Say which jobs: by their ids, or by options such as --task. 'npx --no rail jobs list' shows them.",
    );
  return ids.length > 0 ? sql`j.id = any (${ids}::bigint[])` : whereOf(database, filter);
}

function requireAll(ids: number[], found: FoundJob[]): void {
  const missing = ids.filter((id) => !found.some((job) => job.id === id));
  if (missing.length > 0) throw new Error(`There is no job ${missing.join(', ')}: it is done, or never was.`);
}

async function decide(
  tx: Tx,
  action: JobAction,
  found: FoundJob[],
  confirmed: number | undefined,
  is_asked: boolean,
): Promise<Outcome> {
  const checked = found.map((job) => ({ job, reason: whyNot(action, job) }));
  const jobs = checked.filter(({ reason }) => reason === undefined).map(({ job: { is_free: _, ...job } }) => job);
  const refused = checked.flatMap(({ job: { id }, reason }) => (reason === undefined ? [] : [{ id, reason }]));
  if (confirmed !== undefined && confirmed !== jobs.length)
    throw new Error(
      `${jobsThat(jobs.length, 'matches', 'match')}, and --confirm says ${grouped(confirmed)}: nothing was changed.`,
    );
  if (is_asked)
    await change(
      tx,
      action,
      jobs.map(({ id }) => id),
    );
  return { jobs, refused, done: is_asked };
}

/** `No job matches`, `1 job matches`, `2 jobs match`. */
const jobsThat = (jobs: number, verb: string, verb_of_many = verb): string =>
  jobs === 0 ? `No job ${verb}` : counted(jobs, `job ${verb}`, `jobs ${verb_of_many}`);

const texts: Record<JobAction, { would: string; did: (jobs: number) => string }> = {
  retry: {
    would: 'would run at once',
    did: (jobs) =>
      jobsThat(jobs, 'runs at once', 'run at once') +
      (jobs === 0 ? '' : `, with all ${jobs === 1 ? 'its' : 'their'} attempts`),
  },
  cancel: {
    would: 'would be cancelled',
    did: (jobs) => {
      const [do_not, them] = jobs === 1 ? ['it does not', 'it'] : ['they do not', 'them'];
      const until = jobs === 0 ? '' : `: ${do_not} run, unless 'npx --no rail jobs retry' runs ${them}`;
      return jobsThat(jobs, 'is cancelled', 'are cancelled') + until;
    },
  },
};

function outcomeLines(action: JobAction, { jobs, refused, done }: Outcome, is_filtered: boolean): string[] {
  const said = `${done ? texts[action].did(jobs.length) : jobsThat(jobs.length, texts[action].would)}.`;
  const confirm =
    is_filtered && !done && jobs.length > 0 ? [`Repeat it with --confirm ${jobs.length} to do that.`] : [];
  const left = refused.map(({ id, reason }) => [id, reason]);
  return [
    ...(jobs.length > 0 && !done ? [...linesOf(jobs, ''), ''] : []),
    said,
    ...confirm,
    ...(left.length > 0 ? ['', ...table(['JOB', 'UNCHANGED BECAUSE'], left.slice(0, most_refused), '')] : []),
  ];
}
