import sql from 'sql-template-tag';
import { type Backlog, type Measured, most_counted } from '../metrics/backlog.ts';
import { SharedGauge } from '../metrics/registry.ts';
import { type Database, run } from '../postgres/database.ts';
import { job_states } from './job_state.ts';
import { lateSchedules, type Schedule } from './schedule.ts';

const jobs = new SharedGauge(
  'rail_jobs',
  {
    help: 'Jobs: ready to run, running, to run later (for the first time, or retrying), failed for good, or cancelled by an operator. Counted up to 100,000.',
    row: 'Jobs',
    title: 'Jobs by state',
    draws: 'sum by (state) (max by (task, state) (rail_jobs))',
    alerts: [
      {
        name: 'RailJobsFailed',
        expr: 'sum by (task) (max by (task, state) (rail_jobs{state="failed"})) > 0',
        for: '1m',
        severity: 'warning',
        summary: 'Jobs of {{ $labels.task }} have failed for good.',
        remedy:
          "'npx --no rail jobs list --task {{ $labels.task }} --state failed' says why. Mend the cause, then 'npx --no rail jobs retry' runs them again, or 'npx --no rail jobs cancel' ends them.",
      },
    ],
  },
  ['task', 'state'],
);
const jobs_oldest = new SharedGauge(
  'rail_jobs_oldest_seconds',
  {
    help: 'How long the oldest job has been due or, if a worker runs it, has been running.',
    row: 'Jobs',
    title: 'Oldest jobs',
    draws: 'topk(10, max by (task, state) (rail_jobs_oldest_seconds) > 0)',
    alerts: [
      {
        name: 'RailJobsLate',
        expr: 'max(rail_jobs_oldest_seconds{state="ready"}) > 120',
        for: '5m',
        severity: 'critical',
        summary: 'A job has been due for more than two minutes.',
        remedy:
          "Look whether workers run and are busy: 'npx --no rail jobs stats' says which tasks wait. Add workers while Postgres has room, or find the task that fills them.",
      },
      {
        name: 'RailJobHangs',
        expr: 'max by (task) (rail_jobs_oldest_seconds{state="running"}) > 3600',
        for: '5m',
        severity: 'warning',
        summary: 'A job of {{ $labels.task }} has been running for more than an hour.',
        remedy:
          "'npx --no rail jobs list --task {{ $labels.task }} --state running' names it, and 'npx --no rail doctor' the lock that it may wait for. If its worker is restarted, another worker runs it.",
      },
    ],
  },
  ['task', 'state'],
);
const workers = new SharedGauge('rail_workers', {
  help: 'Registered workers.',
  row: 'Is it well',
  title: 'Workers',
  alerts: [
    {
      name: 'RailNoWorker',
      expr: 'max(rail_workers) == 0',
      for: '2m',
      severity: 'critical',
      summary: 'No worker runs: no webhooks, emails or payouts are sent, and nothing is attributed.',
      remedy: "Start 'npx --no rail worker', and look into the logs of those that ended.",
    },
  ],
});
const schedule_lag = new SharedGauge(
  'rail_schedule_lag_seconds',
  {
    help: 'How long the oldest tick that has not run is overdue.',
    row: 'Jobs',
    title: 'Schedules that are late',
    draws: 'topk(10, max by (schedule) (rail_schedule_lag_seconds) > 0)',
    alerts: [
      {
        name: 'RailScheduleLate',
        expr: 'max by (schedule) (rail_schedule_lag_seconds) > 180',
        for: '2m',
        severity: 'critical',
        summary: 'The schedule {{ $labels.schedule }} has not run when it should have.',
        remedy:
          "'npx --no rail runs' shows what has run and why it fails. Look whether a worker runs whose clock agrees with Postgres', and into its log.",
      },
    ],
  },
  ['schedule'],
);

/** The jobs, the workers, and how late the schedules are. */
export const jobBacklog = (schedules: Schedule[]): Backlog => ({
  gauges: [jobs, jobs_oldest, workers, schedule_lag],
  read: async (database) => [
    ...(await readJobs(database)),
    await readWorkers(database),
    ...(await readScheduleLags(database, schedules)),
  ],
});

interface JobCount {
  task: string;
  state: string;
  size: number;
  oldest: number;
}

/** The states in which a job is to be done now. */
const is_awaited = new Set(['ready', 'running']);

async function readJobs(database: Database): Promise<Measured[]> {
  const counts = await run<JobCount>(database, jobsByState);
  return counts.flatMap(({ task, state, size, oldest }) => [
    { gauge: jobs, labels: { task, state }, value: size },
    ...(is_awaited.has(state) ? [{ gauge: jobs_oldest, labels: { task, state }, value: oldest }] : []),
  ]);
}

/** All tasks in all states, so that what is not there is shown as 0. */
const jobsByState = sql`
  with job as (
    select j.task, j.state, j.since
    from core.jobs() j
    limit ${most_counted}
  )
  select
    t.identifier as task, s.state, count(job.since) as size,
    greatest(coalesce(extract(epoch from clock_timestamp() - min(job.since)), 0), 0)::float8 as oldest
  from graphile_worker._private_tasks t
  cross join unnest(${[...job_states]}::text[]) as s (state)
  left join job on job.task = t.identifier and job.state = s.state
  group by t.identifier, s.state`;

async function readWorkers(database: Database): Promise<Measured> {
  const [row] = await run<{ registered: number }>(database, sql`select count(*) as registered from core.worker`);
  return { gauge: workers, labels: {}, value: row?.registered ?? 0 };
}

async function readScheduleLags(database: Database, schedules: Schedule[]): Promise<Measured[]> {
  const lags = await lateSchedules(database, schedules);
  return lags.map(({ name, late_s }) => ({ gauge: schedule_lag, labels: { schedule: name }, value: late_s }));
}
