/** `rail runs`: what schedules have run, how far it is, and why it fails. */
import sql from 'sql-template-tag';
import { type Job, job_columns } from '../../core/jobs/job.ts';
import { type Run, readRuns, readSchedules, type Scheduled } from '../../core/jobs/scheduled_runs.ts';
import { run } from '../../core/postgres/database.ts';
import { nearest } from '../../core/values/texts/nearest.ts';
import { schedules } from '../../products.ts';
import { answer, UsageError, withStore } from '../command.ts';
import { age } from '../output/age.ts';
import { table } from '../output/table.ts';
import { linesOf, shortened } from './list.ts';

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
    const all = await readSchedules(database, schedules);
    const latest = all.flatMap(({ latest }) => latest ?? []);
    answer(all, { json, lines: [...scheduleLines(all), ...errorLines(latest)] });
  });

function requireSchedule(name: string): void {
  const names = schedules.map((one) => one.name);
  if (names.includes(name)) return;
  const meant = nearest(name, names);
  throw new UsageError(
    `There is no schedule '${name}'. ${meant === undefined ? `Schedules: ${names.join(' ')}` : `Did you mean ${meant}?`}`,
  );
}

function scheduleLines(all: Scheduled[]): string[] {
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
