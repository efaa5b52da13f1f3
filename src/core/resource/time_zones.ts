import sql from 'sql-template-tag';
import { type Database, run } from '../postgres/database.ts';
import { learnTimeZones } from '../values/time_zone.ts';

/** Selects the names as core.zone() does, which does not exist before the migrations. It reads files, for some hundredths of a second. */
const names = sql`
  select n.name
  from pg_timezone_names n
  where n.name in ('UTC', 'GMT') or not exists (select from pg_timezone_abbrevs a where lower(a.abbrev) = lower(n.name))`;

let learned: Promise<void> | undefined;

/** Learns which time zones Postgres knows, once in a process, before it takes any. */
export function readTimeZones(database: Database): Promise<void> {
  learned ??= run<{ name: string }>(database, names).then((known) => learnTimeZones(known.map(({ name }) => name)));
  learned.catch(() => {
    learned = undefined;
  });
  return learned;
}
