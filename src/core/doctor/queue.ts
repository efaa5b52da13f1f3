/** Jobs, schedules and mail. */
import sql from 'sql-template-tag';
import { attempts_told } from '../jobs/failed_job.ts';
import { lateSchedules, type Schedule } from '../jobs/schedule.ts';
import { findTasks } from '../jobs/task.ts';
import { ago, counted, named } from './amounts.ts';
import { type AnyCheck, check, error, ok, rowOf, rowsOf, type Session, warning } from './check.ts';

/** The time for which a job may be due, and the oldest event may wait. */
export const late_s = 120;
export const very_late_s = 900;
const long_run_s = 3_600;
const late_schedule_s = 180;
const very_late_schedule_s = 3_600;

interface ByTask {
  task: string;
  jobs: number;
}

const tasksOf = (found: ByTask[]): string => named(found.map(({ task, jobs }) => `${task} (${jobs})`));
const sumOf = (found: ByTask[]): number => found.reduce((sum, { jobs }) => sum + jobs, 0);

/** Returns the finding about a queue's oldest item. */
export function lateness(seconds: number | null, nothing: string, textOf: (age: string) => string, remedy: string) {
  if (seconds === null) return ok(nothing);
  const text = textOf(ago(seconds));
  if (seconds > very_late_s) return error(text, remedy);
  return seconds > late_s ? warning(text, remedy) : ok(text);
}

export const queueChecks = [
  check({
    name: 'jobs/oldest',
    read: rowOf<{ jobs: number; seconds: number | null; task: string | null }>(sql`
      select count(*) as jobs, extract(epoch from now() - min(j.since))::float8 as seconds,
        (array_agg(j.task order by j.since))[1] as task
      from core.jobs() j
      where j.state = 'ready'`),
    assess: ({ jobs, seconds, task }) =>
      lateness(
        seconds,
        'No job is due.',
        (age) => `${counted(jobs, 'job is', 'jobs are')} due; the oldest, of ${task}, for ${age}.`,
        "'npx --no rail jobs stats' shows what waits. Start more workers, or see why they fail.",
      ),
  }),
  check({
    name: 'jobs/running',
    read: rowsOf<{ id: number; task: string; seconds: number }>(sql`
      select j.id, j.task, extract(epoch from now() - j.since)::float8 as seconds
      from core.jobs() j
      where j.state = 'running' and j.since < now() - ${long_run_s} * interval '1 second'
      order by j.since`),
    assess: (found) =>
      found.length === 0
        ? ok('No job runs for long.')
        : warning(
            `Running for long: ${named(found.map(({ id, task, seconds }) => `${id} (${task}) for ${ago(seconds)}`))}.`,
            "'npx --no rail jobs show ID' shows what it is about. Its worker's log, and postgres/locks, say what it waits for.",
          ),
  }),
  check({
    name: 'jobs/retrying',
    read: rowsOf<ByTask>(sql`
      select j.task, count(*)::int as jobs
      from core.jobs() j
      where j.last_error is not null and j.attempts between ${attempts_told} and j.max_attempts - 1
      group by j.task
      order by 2 desc`),
    assess: (found) =>
      found.length === 0
        ? ok('No job fails again and again.')
        : warning(
            `${counted(sumOf(found), 'job has', 'jobs have')} failed ${attempts_told} times or more: ${tasksOf(found)}.`,
            "'npx --no rail jobs list --state retrying' shows why. After the cause is mended, 'npx --no rail jobs retry' runs them at once.",
          ),
  }),
  check({
    name: 'jobs/failed',
    read: rowsOf<ByTask>(
      sql`select j.task, count(*)::int as jobs from core.jobs() j where j.state = 'failed' group by j.task order by 2 desc`,
    ),
    assess: (found) =>
      found.length === 0
        ? ok('No job has failed for good.')
        : error(
            `${counted(sumOf(found), 'job has', 'jobs have')} failed for good: ${tasksOf(found)}. Nothing runs them again.`,
            "'npx --no rail jobs list --state failed' shows why. Then 'npx --no rail jobs retry', or 'cancel', each.",
          ),
  }),
  check({
    name: 'jobs/tasks',
    read: async (on) => ({
      known: Object.keys(await findTasks()),
      waiting: await rowsOf<ByTask>(
        sql`select j.task, count(*)::int as jobs from core.jobs() j where j.state <> 'cancelled' group by j.task`,
      )(on),
    }),
    assess({ known, waiting }) {
      const unknown = waiting.filter(({ task }) => !known.includes(task));
      if (unknown.length === 0) return ok('All jobs are of tasks that this version has.');
      return error(
        `No worker of this version runs ${tasksOf(unknown)}.`,
        "Run a worker of the version that enqueued them, or cancel them: 'npx --no rail jobs cancel --task NAME'.",
      );
    },
  }),
  check({
    name: 'service/mail',
    read: rowOf<{ waiting: number; seconds: number | null; refused: number }>(sql`
      select count(*) filter (where m.error is null) as waiting,
        extract(epoch from now() - min(m.created_at) filter (where m.error is null))::float8 as seconds,
        count(*) filter (where m.error is not null) as refused
      from core.outgoing_mail m
      where m.sent_at is null and m.created_at > now() - interval '7 days'`),
    assess({ waiting, seconds, refused }) {
      if (refused > 0)
        return warning(
          `${counted(refused, 'email')} of the last 7 days to owners and partners ${refused === 1 ? 'was' : 'were'} not sent.`,
          'core.outgoing_mail.error says why. Check SMTP_URL and MAIL_FROM.',
        );
      return lateness(
        seconds,
        'No email to owners or partners waits.',
        (age) => `${counted(waiting, 'email waits', 'emails wait')}, the oldest for ${age}.`,
        "'npx --no rail jobs list --task core/send_mail' shows why.",
      );
    },
  }),
  check({
    name: 'service/expiry',
    read: rowsOf<{ name: string; days: number }>(sql`
      select format('data login %s (%s)', l.role_name, l.organization_id) as name,
        floor(extract(epoch from l.expires_at - now()) / 86400)::int as days
      from core.data_login l
      where l.revoked_at is null and l.expires_at between now() and now() + interval '14 days'
      order by 2`),
    assess: (found) =>
      found.length === 0
        ? ok('No login expires within 14 days.')
        : warning(
            `Expiring: ${named(found.map(({ name, days }) => `${name} in ${counted(days, 'day')}`))}.`,
            "Create another one with 'npx --no rail data user create', and hand it to its users.",
          ),
  }),
];

/** @param schedules of all parts of the service */
export const scheduleCheck = (schedules: Schedule[]): AnyCheck =>
  check({
    name: 'jobs/schedules',
    read: (on: Session) => lateSchedules(on, schedules),
    assess(lags) {
      const late = lags.filter(({ late_s: seconds }) => seconds > late_schedule_s);
      if (late.length === 0) return ok(`All ${lags.length} schedules run in time.`);
      const worst = late.toSorted((a, b) => b.late_s - a.late_s);
      const text = `Late: ${named(worst.map(({ name, late_s: seconds }) => `${name} ${ago(seconds)}`))}.`;
      const remedy =
        "Only workers whose clock is right tick: see service/workers and service/clocks. 'npx --no rail runs' shows what has run.";
      return (worst[0]?.late_s ?? 0) > very_late_schedule_s ? error(text, remedy) : warning(text, remedy);
    },
  });
