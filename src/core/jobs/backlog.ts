import sql from 'sql-template-tag';
import { type Backlog, type Measured, most_counted } from '../metrics/backlog.ts';
import { SharedGauge } from '../metrics/registry.ts';
import { type Database, run } from '../postgres/database.ts';
import { lateSchedules, type Schedule } from './schedule.ts';

const jobs = new SharedGauge(
  'rail_jobs',
  {
    help: 'Jobs: ready to run, run by a worker, to run later, or failed permanently. Counted up to 100,000.',
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
        remedy: 'Their last_error in graphile_worker.jobs says why. Mend the cause, then let them run again.',
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
    draws: 'topk(10, max by (task, state) (rail_jobs_oldest_seconds{state=~"ready|taken"}) > 0)',
    alerts: [
      {
        name: 'RailJobsLate',
        expr: 'max(rail_jobs_oldest_seconds{state="ready"}) > 120',
        for: '5m',
        severity: 'critical',
        summary: 'A job has been due for more than two minutes.',
        remedy:
          'Look whether workers run and are busy: add workers while Postgres has room, or find the task that fills them.',
      },
      {
        name: 'RailJobHangs',
        expr: 'max by (task) (rail_jobs_oldest_seconds{state="taken"}) > 3600',
        for: '5m',
        severity: 'warning',
        summary: 'A job of {{ $labels.task }} has been running for more than an hour.',
        remedy:
          'Look for its statement in pg_stat_activity, and for the lock that it waits for. Restarting its worker lets another take it.',
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
        remedy: "Look whether a worker runs whose clock agrees with Postgres', and into its log.",
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

async function readJobs(database: Database): Promise<Measured[]> {
  const counts = await run<JobCount>(database, jobsByState);
  return counts.flatMap(({ task, state, size, oldest }) => [
    { gauge: jobs, labels: { task, state }, value: size },
    { gauge: jobs_oldest, labels: { task, state }, value: oldest },
  ]);
}

/** All tasks in all states, so that what is not there is shown as 0. */
const jobsByState = sql`
  with job as (
    select
      j.task_identifier,
      case
        when j.locked_at is not null then 'taken'
        when j.attempts >= j.max_attempts then 'failed'
        when j.run_at > now() then 'later'
        else 'ready'
      end as state,
      coalesce(j.locked_at, j.run_at) as since
    from graphile_worker.jobs j
    limit ${most_counted}
  )
  select
    t.identifier as task, s.state, count(job.since) as size,
    greatest(coalesce(extract(epoch from clock_timestamp() - min(job.since)), 0), 0)::float8 as oldest
  from graphile_worker._private_tasks t
  cross join unnest(array['ready', 'taken', 'later', 'failed']) as s (state)
  left join job on job.task_identifier = t.identifier and job.state = s.state
  group by t.identifier, s.state`;

async function readWorkers(database: Database): Promise<Measured> {
  const [row] = await run<{ registered: number }>(database, sql`select count(*) as registered from core.worker`);
  return { gauge: workers, labels: {}, value: row?.registered ?? 0 };
}

async function readScheduleLags(database: Database, schedules: Schedule[]): Promise<Measured[]> {
  const lags = await lateSchedules(database, schedules);
  return lags.map(({ name, late_s }) => ({ gauge: schedule_lag, labels: { schedule: name }, value: late_s }));
}
