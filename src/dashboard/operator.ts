/** Jobs and health of the whole service, for its operators: other organizations have no such page. */
import type { FastifyReply } from 'fastify';
import sql, { type Sql } from 'sql-template-tag';
import { ago } from '../core/doctor/amounts.ts';
import { withinDeadline } from '../core/http/deadline.ts';
import { changeJobs, countJobs, type Job, type JobCount, lockJobs, readJobs, whyNot } from '../core/jobs/job.ts';
import { job_states } from '../core/jobs/job_state.ts';
import { nextTick, readSchedules, type Scheduled } from '../core/jobs/scheduled_runs.ts';
import { service_opening } from '../core/jobs/task.ts';
import { type Database, run } from '../core/postgres/database.ts';
import { transaction } from '../core/postgres/transaction.ts';
import { databaseTime } from '../core/values/clock.ts';
import { number, time, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { formOf } from '../pages/sign_in.ts';
import { table } from '../pages/table.ts';
import { schedules } from '../products.ts';
import { sendDashboard } from './frame.ts';
import { queryOf } from './list_page.ts';
import { type DashboardVisit, readPage } from './visit.ts';

const most_shown = 50;
/** More at a time are for the command line. */
const most_at_once = 1_000;

/** `GET /dashboard/service`. */
export function showService(visit: DashboardVisit, reply: FastifyReply): Promise<FastifyReply> {
  const { retried, cancelled } = queryOf(visit.request.query);
  const isCount = (text: string | undefined) => text !== undefined && /^\d{1,4}$/.test(text);
  const said = [
    isCount(retried) && notice(`Retried: ${retried}. They run at once, with all their attempts.`),
    isCount(cancelled) && notice(`Cancelled: ${cancelled}. They can be retried for 30 days.`),
  ];
  return show(visit, reply, html`${said}`);
}

/** `POST /dashboard/service/jobs`. */
export async function changeService(visit: DashboardVisit, reply: FastifyReply): Promise<FastifyReply> {
  const { request, store, session } = visit;
  const form = formOf(request);
  const action = form.get('action') === 'cancel' ? 'cancel' : 'retry';
  const { ids, refused } = await withinDeadline(request, 'pages', (asked) =>
    transaction(store, { ...service_opening, request_id: request.id, asked }, async (tx) => {
      const found = await lockJobs(tx, wantedOf(form));
      const reason = found.map((job) => whyNot(action, job)).find((one) => one !== undefined);
      const is_as_shown = found.length === Number(form.get('confirm') ?? 1);
      const refused = is_as_shown ? reason : 'The jobs are others than those that were shown. Nothing was changed.';
      const ids = found.map(({ id }) => id);
      if (refused === undefined) await changeJobs(tx, action, ids);
      return { ids, refused };
    }),
  );
  if (refused !== undefined) return show(visit, reply, notice(refused, true), 409);
  const about = { user_id: session.user_id, action, jobs: ids.length, job_ids: ids.slice(0, most_shown) };
  request.log.warn(about, 'an operator changed jobs');
  return reply.redirect(`/dashboard/service?${action === 'retry' ? 'retried' : 'cancelled'}=${ids.length}`, 303);
}

/** One job, or all failed ones of a task. */
function wantedOf(form: URLSearchParams): Sql {
  const id = form.get('id') ?? '';
  if (/^\d{1,18}$/.test(id)) return sql`j.id = ${id}::bigint`;
  return sql`j.id = any (array(
    select f.id from core.jobs() f where f.task = ${form.get('task') ?? ''} and f.state = 'failed' limit ${most_at_once + 1}
  ))`;
}

interface Endpoint {
  id: string;
  organization_id: string;
  organization: string;
  disabled_reason: string | null;
  updated_at: string;
}

/** Where they are, and who they are of: an address may hold a secret. */
const readDisabled = (database: Database): Promise<Endpoint[]> =>
  run<Endpoint>(
    database,
    sql`
      select e.id, e.organization_id, o.name as organization, e.disabled_reason, e.updated_at
      from webhooks.endpoint e
      join core.organization o on o.id = e.organization_id
      where e.status = 'disabled' and e.deleted_at is null
      order by e.organization_id, e.id
      limit ${most_shown + 1}`,
  );

async function show(visit: DashboardVisit, reply: FastifyReply, said: Html, status = 200): Promise<FastifyReply> {
  const { store, request } = visit;
  const [counts, failed, disabled, scheduled] = await withinDeadline(request, 'pages', () =>
    Promise.all([
      countJobs(store.database),
      readJobs(store.database, sql`j.state = 'failed'`, most_shown + 1),
      readDisabled(store.database),
      readSchedules(store.database, schedules),
    ]),
  );
  const { chosen } = await readPage(visit, async () => ({}));
  const content = html`${said}<p>All organizations of this service. On the command line: 'npx --no rail jobs list', 'npx --no rail runs list' and 'npx --no rail doctor'.</p>
<h2>Queues</h2>${queueTable(visit, counts)}
<h2>Failed jobs</h2>${failedTable(visit, failed.slice(0, most_shown))}${failed.length > most_shown && html`<p>Those that failed first are shown.</p>`}
<h2>Webhook endpoints that are off</h2>${endpointTable(visit, disabled.slice(0, most_shown))}${disabled.length > most_shown && html`<p>The first ${most_shown} are shown.</p>`}
<h2>Schedules</h2>${scheduleTable(visit, scheduled)}`;
  return sendDashboard(reply, visit, { title: 'Jobs and health', content, at: 'service', chosen }, status);
}

function queueTable(visit: DashboardVisit, counts: JobCount[]): Html {
  const tasks = [...Map.groupBy(counts, ({ task }) => task)].map(([task, of]) => ({ task, of }));
  type Row = (typeof tasks)[number];
  const stateOf = ({ of }: Row, state: string) => of.find((one) => one.state === state);
  return table(
    'Queues',
    [
      { title: 'Task', cell: ({ task }: Row) => html`<code>${task}</code>` },
      ...job_states.map((state) => ({
        title: words(state),
        is_number: true,
        cell: (row: Row) => number(stateOf(row, state)?.jobs ?? 0, visit.reader),
      })),
      {
        title: 'Oldest due',
        is_number: true,
        cell: (row: Row) => (stateOf(row, 'ready') ? ago(stateOf(row, 'ready')?.age_s ?? 0) : '–'),
      },
      { title: 'All failed', cell: (row: Row) => changeAll(row.task, stateOf(row, 'failed')?.jobs ?? 0) },
    ],
    tasks,
    'No job waits, runs or has failed.',
  );
}

/** Retries all failed jobs of a task, as long as they are as many as were shown. */
const changeAll = (task: string, count: number): Html | string =>
  count === 0
    ? '–'
    : count > most_at_once
      ? `More than ${most_at_once}: 'npx --no rail jobs retry --task ${task} --state failed'`
      : buttons({ task, confirm: String(count) }, `all ${count}`);

const buttons = (fields: Record<string, string>, which: string): Html =>
  html`<form class="buttons" method="post" action="/dashboard/service/jobs">${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<button class="plain" name="action" value="retry" aria-label="Retry ${which}">Retry</button><button class="plain" name="action" value="cancel" aria-label="Cancel ${which}">Cancel</button></form>`;

const failedTable = (visit: DashboardVisit, jobs: Job[]): Html =>
  table(
    'Failed jobs',
    [
      { title: 'Job', cell: ({ id }) => id },
      { title: 'Task', cell: ({ task }) => html`<code>${task}</code>` },
      { title: 'Failed', cell: ({ since }) => time(since, visit.reader) },
      { title: 'Attempts', is_number: true, cell: ({ attempts, max_attempts }) => `${attempts}/${max_attempts}` },
      {
        title: 'About',
        cell: ({ object_id, organization_id }) =>
          html`${object_id ?? '–'}${organization_id && html`<br><span class="hint">${organization_id}</span>`}`,
      },
      {
        title: 'Last error',
        cell: ({ last_error }) => html`<span class="long">${(last_error ?? '–').slice(0, 300)}</span>`,
      },
      { title: 'Change', cell: ({ id }) => buttons({ id: String(id) }, `job ${id}`) },
    ],
    jobs,
    'No job has failed.',
  );

const endpointTable = (visit: DashboardVisit, endpoints: Endpoint[]): Html =>
  table(
    'Webhook endpoints that are off',
    [
      { title: 'Endpoint', cell: ({ id }) => id },
      {
        title: 'Organization',
        cell: ({ organization, organization_id }) => html`${organization} <span class="hint">${organization_id}</span>`,
      },
      {
        title: 'Reason',
        cell: ({ disabled_reason }) =>
          html`<span class="long">${disabled_reason ?? 'Switched off by the organization'}</span>`,
      },
      { title: 'Since', cell: ({ updated_at }) => time(updated_at, visit.reader) },
    ],
    endpoints,
    'Every endpoint is on.',
  );

function scheduleTable(visit: DashboardVisit, all: Scheduled[]): Html {
  const now = new Date(databaseTime());
  const next = (scheduled: Scheduled): Html | string => {
    const at = nextTick(scheduled, now);
    return at ? time(at.toISOString(), visit.reader) : '–';
  };
  return table(
    'Schedules',
    [
      { title: 'Schedule', cell: ({ schedule }) => html`<code>${schedule}</code>` },
      { title: 'Cron (UTC)', cell: ({ cron }) => html`<code>${cron}</code>` },
      { title: 'Last run', cell: ({ latest }) => (latest ? time(latest.tick, visit.reader) : 'Never') },
      { title: 'State', cell: ({ latest }) => (latest ? html`<span class="status">${latest.state}</span>` : '–') },
      { title: 'Jobs left', is_number: true, cell: ({ latest }) => number(latest?.jobs_left ?? 0, visit.reader) },
      { title: 'Next run', cell: next },
      { title: 'Late by', cell: ({ late_s }) => (late_s > 60 ? ago(late_s) : '–') },
    ],
    all,
    'There is no schedule.',
  );
}
