/** One request a second to a host, by whichever worker: the turns of a host follow one another in a row of the database. */
import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'sql-template-tag';
import { type Database, run } from '../../core/postgres/database.ts';
import type { Pacing } from '../pages/pacing.ts';

const forgotten_after_s = 3_600;

export const sharedPacing = (database: Database, interval_ms: number): Pacing => ({
  async turn(host, delay_ms = 0, signal) {
    const wait_ms = await takeTurn(database, host, Math.max(interval_ms, delay_ms));
    if (wait_ms > 0) await sleep(wait_ms, undefined, { signal });
  },
  hold(host, ms) {
    // Politeness that could not be written down is not worth failing a visit for.
    holdHost(database, host, ms).catch(() => {});
  },
});

/** @returns in how many milliseconds the turn is */
async function takeTurn(database: Database, host: string, interval_ms: number): Promise<number> {
  const interval = sql`make_interval(secs => ${interval_ms / 1_000}::double precision)`;
  const [row] = await run<{ wait_ms: number }>(
    database,
    sql`
      with turn as (
        insert into recruitment.host_turn as t (host, next_at)
        values (${host}, clock_timestamp() + ${interval})
        on conflict (host) do update set next_at = greatest(t.next_at, clock_timestamp()) + ${interval}
        returning t.next_at
      )
      select (extract(epoch from turn.next_at - ${interval} - clock_timestamp()) * 1000)::double precision as wait_ms from turn`,
  );
  return row?.wait_ms ?? 0;
}

const holdHost = (database: Database, host: string, ms: number): Promise<object[]> =>
  run(
    database,
    sql`
      insert into recruitment.host_turn as t (host, next_at)
      values (${host}, clock_timestamp() + make_interval(secs => ${ms / 1_000}::double precision))
      on conflict (host) do update set next_at = greatest(t.next_at, excluded.next_at)`,
  );

/** When the host's next turn is, in ISO 8601, where that is further away than so. */
export async function busyUntil(database: Database, host: string, ms: number): Promise<string | undefined> {
  const [row] = await run<{ next_at: string }>(
    database,
    sql`
      select t.next_at
      from recruitment.host_turn t
      where t.host = ${host} and t.next_at > clock_timestamp() + make_interval(secs => ${ms / 1_000}::double precision)`,
  );
  return row?.next_at;
}

export const forgetTurns = (database: Database): Promise<object[]> =>
  run(
    database,
    sql`delete from recruitment.host_turn t where t.next_at < now() - make_interval(secs => ${forgotten_after_s})`,
  );
