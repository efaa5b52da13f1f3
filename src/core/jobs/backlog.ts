import sql from 'sql-template-tag';
import { type Backlog, type Measured, most_counted } from '../metrics/backlog.ts';
import { SharedGauge } from '../metrics/registry.ts';
import { type Database, run } from '../postgres/database.ts';
import { firstTick, type Schedule } from './schedule.ts';

const jobs = new SharedGauge(
  'rail_jobs',
  'Jobs: ready to run, run by a worker, to run later, or failed permanently. Counted up to 100,000.',
  ['task', 'state'],
);
const jobs_oldest = new SharedGauge(
  'rail_jobs_oldest_seconds',
  'How long the oldest job has been due or, if a worker runs it, has been running.',
  ['task', 'state'],
);
const workers = new SharedGauge('rail_workers', 'Registered workers.');
const schedule_lag = new SharedGauge(
  'rail_schedule_lag_seconds',
  'How long the oldest tick that has not run is overdue.',
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
  const known = await run<{ name: string; last: string; now: string }>(
    database,
    sql`select
        s.name, clock_timestamp() as now,
        coalesce((select max(r.tick) from core.scheduled_run r where r.name = s.name and r.tick <= now()), s.since) as last
      from core.schedule s`,
  );
  return schedules.map((schedule) => {
    const row = known.find(({ name }) => name === schedule.name);
    const missed = row && firstTick(schedule, Date.parse(row.last), Date.parse(row.now));
    const value = row && missed ? (Date.parse(row.now) - missed) / 1_000 : 0;
    return { gauge: schedule_lag, labels: { schedule: schedule.name }, value };
  });
}
