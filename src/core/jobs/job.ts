/** A job as operators see it, how many there are, and what they may do to one. */
import sql, { type Sql } from 'sql-template-tag';
import { most_counted } from '../metrics/backlog.ts';
import { type Database, run } from '../postgres/database.ts';
import type { Tx } from '../postgres/transaction.ts';
import type { JobState } from './job_state.ts';

export interface Job {
  id: number;
  task: string;
  state: JobState;
  /** Since when it is due, runs, or has ended; when it is due, where that is to come. */
  since: string;
  age_s: number;
  attempts: number;
  max_attempts: number;
  run_at: string;
  created_at: string;
  last_error: string | null;
  key: string | null;
  organization_id: string | null;
  object_id: string | null;
  run_id: string | null;
}

/** The columns of a job. The queue of an endpoint names its organization. */
export const job_columns = sql`
  j.id, j.task, j.state, j.since, extract(epoch from now() - j.since)::float8 as age_s, j.attempts, j.max_attempts, j.run_at, j.created_at,
  j.last_error, j.key,
  coalesce(j.organization_id, (select q.organization_id from webhooks.endpoint_queue q where q.endpoint_id = j.object_id)) as organization_id,
  j.object_id, j.run_id`;

export const readJobs = (database: Database, where: Sql, limit: number): Promise<Job[]> =>
  run<Job>(
    database,
    sql`select ${job_columns} from core.jobs() j where ${where} order by j.since, j.id limit ${limit}`,
  );

export interface JobCount {
  task: string;
  state: JobState;
  jobs: number;
  /** The age of the oldest one. */
  age_s: number;
}

/** Counts the jobs of each task, by state: so many jobs at most. */
export const countJobs = (database: Database): Promise<JobCount[]> =>
  run<JobCount>(
    database,
    sql`
      with job as (select j.task, j.state, j.since from core.jobs() j limit ${most_counted})
      select j.task, j.state, count(*) as jobs, greatest(extract(epoch from now() - min(j.since)), 0)::float8 as age_s
      from job j
      group by j.task, j.state
      order by j.task, j.state`,
  );

export type JobAction = 'retry' | 'cancel';

export type FoundJob = Job & { is_free: boolean };

/** Locks jobs. No worker takes them meanwhile; those that one is just taking count as running. */
export async function lockJobs(tx: Tx, where: Sql): Promise<FoundJob[]> {
  const found = await tx.all<Job>(sql`select ${job_columns} from core.jobs() j where ${where} order by j.since, j.id`);
  const free = await tx.all<{ id: number }>(sql`
    select p.id from graphile_worker._private_jobs p
    where p.id = any (${found.map(({ id }) => id)}::bigint[]) and p.locked_at is null
    for update skip locked`);
  const free_ids = new Set(free.map(({ id }) => id));
  return found.map((job) => ({ ...job, is_free: free_ids.has(job.id) }));
}

/** Runs jobs at once and with all their attempts, or has them never run. Those that a worker runs stay as they are. */
export const changeJobs = (tx: Tx, action: JobAction, ids: number[]): Promise<object[]> =>
  tx.all(statements[action](ids));

/** The functions of graphile-worker for each action. They leave running jobs as they are. */
const statements: Record<JobAction, (ids: number[]) => Sql> = {
  retry: (ids) =>
    sql`select j.id from graphile_worker.reschedule_jobs(${ids}::bigint[], run_at := now(), attempts := 0) j`,
  cancel: (ids) => sql`
    select f.id
    from core.jobs() j
    cross join lateral graphile_worker.permanently_fail_jobs(
      array[j.id], concat_ws('. Before: ', 'Cancelled by an operator', nullif(j.last_error, ''))
    ) f
    where j.id = any (${ids}::bigint[])`,
};

/** Why a job stays as it is. */
export function whyNot(action: JobAction, { state, is_free, last_error, run_at }: FoundJob): string | undefined {
  if (state === 'running' || !is_free) return 'A worker runs it.';
  if (action === 'cancel') return state === 'cancelled' ? 'It is cancelled already.' : undefined;
  if (state === 'ready') return 'It is due: it runs as soon as a worker is free.';
  return last_error === null ? `It has not failed: it runs at ${run_at}.` : undefined;
}
