/** Which jobs a command is about. */
import sql, { join, type Sql } from 'sql-template-tag';
import type { JobState } from '../../core/jobs/job_state.ts';
import { findTasks } from '../../core/jobs/task.ts';
import { type Database, run } from '../../core/postgres/database.ts';
import { nearest } from '../../core/values/texts/nearest.ts';
import { requireOrganization } from '../chosen.ts';
import { UsageError } from '../command.ts';

export interface Filter {
  task?: string;
  state?: JobState[];
  error?: string;
  olderThan?: number;
  organization?: string;
  object?: string;
}

/** @throws UsageError for a task that there is not, Error for such an organization */
export async function whereOf(database: Database, filter: Filter): Promise<Sql> {
  const { task, state, error, olderThan, organization, object } = filter;
  if (task !== undefined) await requireTask(database, task);
  if (organization !== undefined) await requireOrganization(database, organization);
  const conditions = [
    ...(task === undefined ? [] : [sql`j.task = ${task}`]),
    ...(state === undefined ? [] : [sql`j.state = any (${state}::text[])`]),
    ...(error === undefined ? [] : [sql`position(lower(${error}) in lower(j.last_error)) > 0`]),
    ...(olderThan === undefined ? [] : [sql`j.since < now() - ${olderThan} * interval '1 second'`]),
    ...(object === undefined ? [] : [sql`(j.object_id = ${object} or j.run_id = ${object})`]),
    ...(organization === undefined
      ? []
      : [
          sql`coalesce(j.organization_id, (select q.organization_id from webhooks.endpoint_queue q where q.endpoint_id = j.object_id)) = ${organization}`,
        ]),
  ];
  return conditions.length === 0 ? sql`true` : join(conditions, ' and ');
}

/** Jobs of a task that only another version has are shown too. */
async function requireTask(database: Database, task: string): Promise<void> {
  const tasks = Object.keys(await findTasks());
  if (tasks.includes(task)) return;
  const queued = await run(database, sql`select from core.jobs() j where j.task = ${task} limit 1`);
  if (queued.length > 0) return;
  const meant = nearest(task, tasks);
  const hint = meant === undefined ? `Tasks: ${tasks.join(' ')}` : `Did you mean ${meant}?`;
  throw new UsageError(`There is no task '${task}'. ${hint}`);
}
