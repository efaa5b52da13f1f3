/** The processes of the service, of all machines: each says once a minute that it lives. */
import type pg from 'pg';
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { causeOf, restoredHold } from '../metrics/hold.ts';
import { processName, type Role } from '../postgres/connections.ts';
import { type Database, run } from '../postgres/database.ts';
import { logFailure } from '../postgres/outage.ts';
import { skewMs } from '../values/clock.ts';
import { ago, counted, named } from './amounts.ts';
import { check, error, ok, rowsOf, warning } from './check.ts';

const announce_every_ms = 60_000;
const undefined_table = '42P01';

export interface Announced {
  role: Role;
  version: string;
  /** The connections that it may open. */
  connections: number;
}

/** Announces this process now and each minute, and forgets those that were not seen for long. One that stops takes itself off the list. */
export async function announceProcess(
  database: Database,
  { role, version, connections }: Announced,
  stopping: AbortSignal,
  log: Logger,
): Promise<void> {
  const name = processName();
  const announce = () =>
    run(
      database,
      sql`
        with forgotten as (delete from core.process p where p.seen_at < now() - interval '10 minutes' and p.name <> ${name})
        insert into core.process as p (name, role, version, connections, clock_skew_ms)
        values (${name}, ${role}, ${version}, ${connections}, ${skewMs()})
        on conflict (name) do update
        set role = excluded.role, version = excluded.version, connections = excluded.connections, clock_skew_ms = excluded.clock_skew_ms,
          seen_at = now()`,
    ).catch((failure) => {
      // A database without its migrations is waited for, and told of, elsewhere.
      if (failure.code !== undefined_table) logFailure(log, failure, 'this process could not be announced');
    });
  await announce();
  const timer = setInterval(() => void announce(), announce_every_ms).unref();
  stopping.addEventListener('abort', () => {
    clearInterval(timer);
    run(database, sql`delete from core.process p where p.name = ${name}`).catch(() => {});
  });
}

interface Process {
  name: string;
  role: Role;
  version: string;
  clock_skew_ms: number;
}

export const processChecks = [
  check({
    name: 'service/processes',
    read: rowsOf<Process>(sql`
      select p.name, p.role, p.version, p.clock_skew_ms
      from core.process p
      where p.seen_at > now() - interval '3 minutes'
      order by p.role, p.name`),
    assess(found) {
      if (found.length === 0)
        return warning('No process of Rail runs.', "Begin 'npx --no rail api' and 'npx --no rail worker'.");
      const roles = [...Map.groupBy(found, ({ role }) => role)].map(([role, those]) => `${those.length} ${role}`);
      const versions = [...new Set(found.map(({ version }) => version))];
      const text = `${roles.join(', ')}, of version ${versions.join(' and ')}.`;
      return versions.length > 1 ? warning(text, 'Finish the deploy, so that all are of one version.') : ok(text);
    },
  }),
  check({
    name: 'service/clocks',
    read: rowsOf<Process>(sql`
      select p.name, p.clock_skew_ms from core.process p where p.seen_at > now() - interval '3 minutes' and p.clock_skew_ms <> 0`),
    assess(found) {
      if (found.length === 0) return ok("The clocks of all processes agree with Postgres'.");
      const texts = found.map(
        ({ name, clock_skew_ms: ms }) => `${name} is ${ago(Math.abs(ms) / 1_000)} ${ms > 0 ? 'ahead' : 'behind'}`,
      );
      return error(`${named(texts)}. They schedule no jobs.`, 'Synchronize the clocks of their machines (NTP).');
    },
  }),
  check({
    name: 'service/held',
    read: (on) => restoredHold(on as pg.Pool),
    assess: (hold) =>
      hold === undefined
        ? ok('Emails and payouts are not held.')
        : error(
            `Emails and payouts are held since ${hold.since}: ${causeOf(hold)}.`,
            "See 'npx --no rail resume --dry-run'; 'npx --no rail resume' lets them go on.",
          ),
  }),
  check({
    name: 'service/workers',
    // Who lives holds the lock of its session.
    read: rowsOf<{ host: string; is_alive: boolean }>(sql`
      select w.host, exists (
        select from pg_locks l
        where l.locktype = 'advisory' and l.classid = 1 and l.objid = w.lock_key::oid and l.granted
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
      ) as is_alive
      from core.worker w`),
    assess(found) {
      const alive = found.filter(({ is_alive }) => is_alive);
      if (alive.length > 0)
        return ok(`${counted(alive.length, 'worker')} on ${named([...new Set(alive.map(({ host }) => host))])}.`);
      return error('No worker runs: nothing is delivered, paid or scheduled.', "Begin 'npx --no rail worker'.");
    },
  }),
];
