/** `rail runs`: what schedules have run, how far it is, and why it fails. */
import sql, { type Sql } from 'sql-template-tag';
import { lateSchedules, type Schedule } from '../../core/jobs/schedule.ts';
import { type Database, run } from '../../core/postgres/database.ts';
import { nearest } from '../../core/values/texts/nearest.ts';
import { schedules } from '../../products.ts';
import { answer, UsageError, withStore } from '../command.ts';
import { age } from '../output/age.ts';
import { table } from '../output/table.ts';
import { type Job, job_columns } from './job.ts';
import { linesOf, shortened } from './list.ts';

interface Run {
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

const readRuns = (database: Database, runs: Sql): Promise<Run[]> =>
  run<Run>(
    database,
    sql`with job as (${jobs_by_run}), chosen as (${runs}) select ${run_columns} from chosen r left join job j on j.run_id = r.id order by r.name, r.tick desc`,
  );

interface ListOptions {
  schedule?: string;
  limit: number;
  json?: boolean;
}

/** The latest run of each schedule, or the latest ones of a schedule. */
export const listRuns = ({ schedule, limit, json }: ListOptions): Promise<void> =>
  withStore(async ({ store: { database } }) => {
    if (schedule !== undefined) {
      requireSchedule(schedule);
      const runs = await readRuns(
        database,
        sql`select s.* from core.scheduled_run s where s.name = ${schedule} order by s.tick desc limit ${limit}`,
      );
      return answer(runs, { json, lines: runLines(runs) });
    }
    const latest = await readRuns(database, latest_runs);
    const lags = await lateSchedules(database, schedules);
    const all = schedules.map((one) => ({
      ...scheduleOf(one, latest),
      late_s: lags.find(({ name }) => name === one.name)?.late_s ?? 0,
    }));
    answer(all, { json, lines: [...scheduleLines(all), ...errorLines(latest)] });
  });

const latest_runs = sql`
  select r.* from core.schedule s
  cross join lateral (select x.* from core.scheduled_run x where x.name = s.name order by x.tick desc limit 1) as r`;

function requireSchedule(name: string): void {
  const names = schedules.map((one) => one.name);
  if (names.includes(name)) return;
  const meant = nearest(name, names);
  throw new UsageError(
    `There is no schedule '${name}'. ${meant === undefined ? `Schedules: ${names.join(' ')}` : `Did you mean ${meant}?`}`,
  );
}

const scheduleOf = ({ name, cron }: Schedule, runs: Run[]) => ({
  schedule: name,
  cron,
  latest: runs.find((one) => one.schedule === name) ?? null,
});

function scheduleLines(all: (ReturnType<typeof scheduleOf> & { late_s: number })[]): string[] {
  const rows = all.map(({ schedule, cron, latest, late_s }) => [
    ...[schedule, cron, latest ? age(latest.age_s) : 'never', latest?.state ?? '', latest?.jobs_left || ''],
    late_s > 60 ? `${age(late_s)} late` : '',
  ]);
  return table(['SCHEDULE', 'CRON (UTC)', 'RAN', 'STATE', 'JOBS LEFT', ''], rows, '');
}

function runLines(runs: Run[]): string[] {
  const rows = runs.map(({ id, schedule, tick, age_s, state, jobs_left }) => [
    ...[id, schedule, tick.replace('.000Z', 'Z'), age(age_s), state, jobs_left || ''],
  ]);
  return [
    ...table(['RUN', 'SCHEDULE', 'AS OF', 'RAN', 'STATE', 'JOBS LEFT'], rows, 'It has not run within 90 days.'),
    ...errorLines(runs),
  ];
}

function errorLines(runs: Run[]): string[] {
  const rows = runs.flatMap(({ id, schedule, last_error }) =>
    last_error === null ? [] : [[id, schedule, shortened(last_error)]],
  );
  return rows.length === 0 ? [] : ['', ...table(['RUN', 'SCHEDULE', 'LAST ERROR'], rows, '')];
}

const most_jobs = 50;

/** A run, and the jobs that it has caused and that are not done. */
export const showRun = (id: string, { json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store: { database } }) => {
    const [found] = await readRuns(database, sql`select s.* from core.scheduled_run s where s.id = ${id}`);
    if (!found) throw new Error(`There is no run '${id}'. 'npx --no rail runs list' shows them.`);
    const jobs = await run<Job>(
      database,
      sql`select ${job_columns} from core.jobs() j where j.run_id = ${id} order by j.id limit ${most_jobs}`,
    );
    answer({ ...found, jobs }, { json, lines: [...runLines([found]), '', ...linesOf(jobs, 'All its jobs are done.')] });
  });
