/** `rail jobs list` and `rail jobs stats`. */
import sql, { type Sql } from 'sql-template-tag';
import { countJobs, type Job, type JobCount, readJobs } from '../../core/jobs/job.ts';
import { job_states } from '../../core/jobs/job_state.ts';
import type { Database } from '../../core/postgres/database.ts';
import { run } from '../../core/postgres/database.ts';
import { answer, withStore } from '../command.ts';
import { age } from '../output/age.ts';
import { table } from '../output/table.ts';
import { grouped } from '../payouts/tables.ts';
import { type Filter, whereOf } from './job.ts';

interface ListOptions extends Filter {
  limit: number;
  json?: boolean;
}

export const listJobs = ({ limit, json, ...filter }: ListOptions): Promise<void> =>
  withStore(async ({ store }) => {
    const where = await whereOf(store.database, filter);
    const jobs = await readJobs(store.database, where, limit);
    const count = await countOf(store.database, where);
    const shown =
      jobs.length === 1 ? 'one that was there first is' : `${grouped(jobs.length)} that were there first are`;
    const more =
      count > jobs.length ? ['', `${grouped(count)} jobs match; the ${shown} shown. --limit shows more.`] : [];
    const is_filtered = Object.values(filter).some((value) => value !== undefined);
    const none = is_filtered ? 'There is no such job.' : 'There are no jobs.';
    answer(jobs, { json, lines: [...linesOf(jobs, none), ...more] });
  });

async function countOf(database: Database, where: Sql): Promise<number> {
  const [row] = await run<{ count: number }>(database, sql`select count(*) as count from core.jobs() j where ${where}`);
  return row?.count ?? 0;
}

/** The jobs, and below them why they failed: what is the same in many is said once. */
export function linesOf(jobs: Job[], when_empty: string): string[] {
  const rows = jobs.map((job) => [
    ...[job.id, job.task, job.state, age(job.age_s), `${job.attempts}/${job.max_attempts}`, job.object_id ?? ''],
  ]);
  return [...table(['JOB', 'TASK', 'STATE', 'AGE', 'ATTEMPTS', 'ABOUT'], rows, when_empty), ...errorLines(jobs)];
}

const error_width = 60;
const most_errors = 10;

function errorLines(jobs: Job[]): string[] {
  const failed = jobs.filter(({ last_error }) => last_error !== null);
  const alike = Map.groupBy(failed, ({ task, last_error }) => `${task} ${shortened(last_error as string)}`);
  const rows = [...alike.values()].map((those) => {
    const [{ task, last_error, id }] = those as [Job];
    return [those.length === 1 ? `${id}` : `${grouped(those.length)} jobs`, task, shortened(last_error as string)];
  });
  return rows.length === 0 ? [] : ['', ...table(['JOB', 'TASK', 'LAST ERROR'], rows.slice(0, most_errors), '')];
}

/** The beginning of an error in one line. */
export function shortened(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ');
  return line.length > error_width ? `${line.slice(0, error_width)}…` : line;
}

/** Counts the jobs of each task, by state. */
export const jobStats = ({ json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const counts = await countJobs(store.database);
    answer(counts, { json, lines: statLines(counts) });
  });

function statLines(counts: JobCount[]): string[] {
  const rows = [...Map.groupBy(counts, ({ task }) => task)].map(([task, those]) => {
    const of = (state: string) => those.find((one) => one.state === state);
    const oldest = of('ready');
    return [
      task,
      ...job_states.map((state) => (of(state) ? grouped(of(state)?.jobs ?? 0) : '')),
      oldest ? age(oldest.age_s) : '',
    ];
  });
  return table(
    ['TASK', ...job_states.map((state) => state.toUpperCase()), 'OLDEST DUE'],
    rows,
    'No job waits, runs or has failed.',
  );
}
