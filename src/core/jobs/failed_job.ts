/** Logs jobs that fail. Never logs their payload, which may hold what belongs to a tenant: the ids in it say what a job is about. */
import type { Job, WorkerEvents } from 'graphile-worker';
import type { Logger } from 'pino';
import { logFailure } from '../postgres/outage.ts';

/** After so many attempts in some minutes a job that fails is no accident. */
export const attempts_told = 5;

/**
 * Each failed attempt is a warning. A job that keeps failing, and one that has failed every attempt, are one error each.
 * @param events of a pool of graphile-worker
 */
export function logFailures(events: WorkerEvents, log: Logger): void {
  events.on('job:error', ({ job, error }) => {
    const about = aboutJob(job);
    const look = `'npx --no rail jobs show ${job.id}' shows it`;
    if (job.attempts >= job.max_attempts) {
      log.error({ err: error, ...about }, `a job failed every attempt and is given up: ${look}`);
    } else if (job.attempts === attempts_told) {
      log.error({ err: error, ...about }, `a job keeps failing; it is tried again: ${look}`);
    } else logFailure(log, error, 'a job failed; it is tried again', about);
  });
}

/** The job, and the ids in its payload. */
export function aboutJob({ id, task_identifier, attempts, max_attempts, payload }: Job): Record<string, unknown> {
  return { ...idsIn(payload), job_id: id, task: task_identifier, attempts, max_attempts };
}

const an_id = /^[a-z_]{2,12}_[0-9a-z]{20,32}$/;

/** Its fields that are ids: `organization_id`, `id`, `endpoint_id`. */
export function idsIn(payload: unknown): Record<string, string> {
  const fields = typeof payload === 'object' && payload !== null ? Object.entries(payload) : [];
  return Object.fromEntries(
    fields
      .filter((field): field is [string, string] => typeof field[1] === 'string' && an_id.test(field[1]))
      .map(([name, id]) => [name === 'id' ? 'object_id' : name, id]),
  );
}
