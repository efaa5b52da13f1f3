/** The runs of schedules: how far each is, and why it fails. */
import sql, { type Sql } from 'sql-template-tag';
import { type Database, run } from '../postgres/database.ts';
import { firstTick, lateSchedules, type Schedule } from './schedule.ts';

export interface Run {
  id: string;
  schedule: string;
  /** The time that it goes by. */
  tick: string;
  age_s: number;
  /** The state of its jobs that are left; where there is none, done, or cancelled if some were. */
  state: 'done' | 'cancelled' | 'running' | 'waiting' | 'retrying' | 'failed';
  jobs_left: number;
  last_error: string | null;
}

/** A run with the jobs that it has caused and that are not done. */
const run_columns = sql`
  r.id, r.name as schedule, r.tick, extract(epoch from now() - r.created_at)::float8 as age_s,
  case
    when j.cancelled > 0 and j.jobs = 0 then 'cancelled'
    when coalesce(j.jobs, 0) = 0 then 'done'
    when j.failed > 0 then 'failed'
    when j.running > 0 then 'running'
    when j.last_error is not null then 'retrying'
    else 'waiting'
  end as state,
  coalesce(j.jobs, 0) as jobs_left, j.last_error`;

const jobs_by_run = sql`
  select j.run_id, count(*) filter (where j.state <> 'cancelled') as jobs, count(*) filter (where j.state = 'cancelled') as cancelled,
    count(*) filter (where j.state = 'failed') as failed, count(*) filter (where j.state = 'running') as running,
    max(j.last_error) filter (where j.state <> 'cancelled') as last_error
  from core.jobs() j
  where j.run_id is not null
  group by j.run_id`;

/** @param runs rows of core.scheduled_run */
export const readRuns = (database: Database, runs: Sql): Promise<Run[]> =>
  run<Run>(
    database,
    sql`with job as (${jobs_by_run}), chosen as (${runs}) select ${run_columns} from chosen r left join job j on j.run_id = r.id order by r.name, r.tick desc`,
  );

const latest_runs = sql`
  select r.* from core.schedule s
  cross join lateral (select x.* from core.scheduled_run x where x.name = s.name order by x.tick desc limit 1) as r`;

/** A schedule with its latest run. */
export interface Scheduled {
  schedule: string;
  cron: string;
  latest: Run | null;
  late_s: number;
}

export async function readSchedules(database: Database, schedules: Schedule[]): Promise<Scheduled[]> {
  const latest = await readRuns(database, latest_runs);
  const lags = await lateSchedules(database, schedules);
  return schedules.map(({ name, cron }) => ({
    schedule: name,
    cron,
    latest: latest.find((one) => one.schedule === name) ?? null,
    late_s: lags.find((lag) => lag.name === name)?.late_s ?? 0,
  }));
}

const most_ahead_ms = 366 * 86_400_000;

/** When a schedule runs next; undefined where it does not within a year. */
export function nextTick(schedule: Pick<Schedule, 'cron'>, now: Date): Date | undefined {
  const at = firstTick(schedule, now.getTime(), now.getTime() + most_ahead_ms);
  return at === undefined ? undefined : new Date(at);
}
