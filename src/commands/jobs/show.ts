/** `rail jobs show`. */
import sql from 'sql-template-tag';
import { type Job, job_columns } from '../../core/jobs/job.ts';
import { type Database, run } from '../../core/postgres/database.ts';
import { answer, withStore } from '../command.ts';
import { age } from '../output/age.ts';

interface Shown extends Job {
  organization_name: string | null;
  /** The worker that runs it. */
  worker: string | null;
  payload: unknown;
}

export const showJob = (id: number, { json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const job = await readJob(store.database, id);
    const shown = { ...job, payload: withoutSecrets(job.payload) };
    answer(shown, { json, lines: linesOf(shown) });
  });

async function readJob(database: Database, id: number): Promise<Shown> {
  const [job] = await run<Shown>(
    database,
    sql`
      select f.*, (select o.name from core.organization o where o.id = f.organization_id) as organization_name
      from (
        select ${job_columns}, j.payload,
          (select format('%s on %s (pid %s)', w.id, w.host, w.process_id) from core.worker w where j.locked_by = any (w.pool_ids)) as worker
        from core.jobs() j
        where j.id = ${id}
      ) as f`,
  );
  if (job) return job;
  throw new Error(
    `There is no job ${id}: it is done, or never was. 'npx --no rail jobs list' shows those that are there.`,
  );
}

const harmless = /^(?:[a-z0-9_]{1,40}|[0-9TZ:.+-]{10,30})$/;

/** A payload as operators may see it: ids, times, numbers and single words stay, of other texts their length is said. */
export function withoutSecrets(value: unknown): unknown {
  if (typeof value === 'string') return harmless.test(value) ? value : `(${value.length} characters)`;
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [name, is_secret.test(name) ? '(hidden)' : withoutSecrets(field)]),
  );
}

const is_secret = /secret|password|token|signature|email|recipient/;

function linesOf(job: Shown): string[] {
  const { attempts, max_attempts, last_error, organization_id, organization_name, payload, worker } = job;
  const fields: Record<string, string | null> = {
    Job: String(job.id),
    Task: job.task,
    State: `${job.state}, ${stateSince(job)}`,
    About: job.object_id,
    Organization: organization_id && `${organization_id}${organization_name ? ` (${organization_name})` : ''}`,
    Run: job.run_id,
    Worker: worker,
    Attempts: `${attempts} of ${max_attempts}`,
    Created: job.created_at,
    'Next run': ['later', 'retrying'].includes(job.state) ? job.run_at : null,
    Key: job.key,
    Payload: JSON.stringify(payload),
  };
  const rows = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  const error =
    last_error === null ? [] : ['', 'Last error:', ...last_error.split('\n').map((line) => `  ${printable(line)}`)];
  return [...rows.map(([name, value]) => `${name.padEnd(14)}${printable(value as string)}`), ...error];
}

const stateSince = ({ age_s }: Job): string => (age_s < 0 ? `runs ${age(age_s)}` : `for ${age(age_s)}`);

const printable = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ');
