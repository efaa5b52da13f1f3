/** Tables: their partitions, dead rows, statistics and indexes. */
import sql from 'sql-template-tag';
import { ago, counted, named } from './amounts.ts';
import { check, error, ok, rowsOf, warning } from './check.ts';

/** Dead rows that a table may have: so many, or a share of those that live. Autovacuum comes at a fifth. */
const few_dead = 50_000;
const dead_share = 0.4;
/** The number of rows from which a table without statistics is read by bad plans. */
const many_rows = 10_000;
const weeks_ahead = 2;

export const tableChecks = [
  check({
    name: 'postgres/partitions',
    read: rowsOf<{ name: string; weeks: number; in_default: boolean }>(sql`
      with family as (
        select format('%I.%I', n.nspname, regexp_replace(c.relname, '_[0-9]{8}$', '')) as name, max(to_date(right(c.relname, 8), 'YYYYMMDD')) as last_week,
          (array_agg(p.partdefid))[1] as rest
        from pg_inherits i
        join pg_class c on c.oid = i.inhrelid
        join pg_partitioned_table p on p.partrelid = i.inhparent
        join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in (select core.own_schemas()) and c.relname ~ '_[0-9]{8}$'
        group by 1
      )
      select f.name, floor((f.last_week + 7 - (now() at time zone 'UTC')::date) / 7.0)::int as weeks,
        coalesce(pg_relation_size(f.rest) > 0, false) as in_default
      from family f
      order by 2`),
    assess(found) {
      const late = found.filter(({ weeks }) => weeks < weeks_ahead);
      const remedy =
        "Run 'npx --no rail run webhooks/keep_partitions' and 'npx --no rail run program/keep_partitions'; 'npx --no rail runs' says why they fail.";
      if (found.length === 0) return error('There are no weekly partitions.', "Run 'npx --no rail migrate'.");
      if (late.length > 0)
        return error(
          `Weeks ahead: ${named(late.map(({ name, weeks }) => `${name} ${weeks}`))}. Rows beyond go to the default partition.`,
          remedy,
        );
      const spilled = found.filter(({ in_default }) => in_default);
      if (spilled.length > 0)
        return warning(
          `The default partition of ${named(spilled.map(({ name }) => name))} has rows: no worker made their weeks in time.`,
          'They are kept, and their weeks stay in it. Keep a worker running.',
        );
      return ok(`All tables have ${found[0]?.weeks} weeks ahead at least.`);
    },
  }),
  check({
    name: 'postgres/vacuum',
    read: rowsOf<{ name: string; dead: number; live: number; seconds: number | null }>(sql`
      select s.relid::regclass::text as name, s.n_dead_tup as dead, s.n_live_tup as live,
        extract(epoch from now() - greatest(s.last_autovacuum, s.last_vacuum))::float8 as seconds
      from pg_stat_user_tables s
      where s.n_dead_tup > ${few_dead}::bigint and s.n_dead_tup > ${dead_share}::float8 * s.n_live_tup
      order by s.n_dead_tup desc
      limit 10`),
    assess(found) {
      if (found.length === 0) return ok('No table has many dead rows.');
      const texts = found.map(
        ({ name, dead, live, seconds }) =>
          `${name} ${dead.toLocaleString('en')} beside ${live.toLocaleString('en')} live, vacuumed ${seconds === null ? 'never' : `${ago(seconds)} ago`}`,
      );
      return warning(
        `Dead rows: ${named(texts, 3)}.`,
        'End what postgres/snapshot names. Where that is young, run VACUUM, and let autovacuum do more (autovacuum_vacuum_cost_limit).',
      );
    },
  }),
  check({
    name: 'postgres/statistics',
    // A partitioned table has statistics of its own only after an ANALYZE by hand.
    read: rowsOf<{ name: string; rows: number }>(sql`
      select s.relid::regclass::text as name, s.n_live_tup as rows
      from pg_stat_user_tables s
      where s.n_live_tup > ${many_rows}
        and not exists (select from pg_stats t where t.schemaname = s.schemaname and t.tablename = s.relname)
      order by s.n_live_tup desc`),
    assess: (found) =>
      found.length === 0
        ? ok('All large tables have statistics.')
        : warning(
            `${counted(found.length, 'table')} without statistics: ${named(found.map(({ name }) => name))}. Statements take bad plans.`,
            'Run ANALYZE.',
          ),
  }),
  check({
    name: 'postgres/indexes',
    read: rowsOf<{ name: string }>(sql`
      select i.indexrelid::regclass::text as name
      from pg_index i
      join pg_class c on c.oid = i.indexrelid
      join pg_namespace n on n.oid = c.relnamespace
      where not i.indisvalid and n.nspname in (select core.own_schemas())
        and not exists (select from pg_stat_progress_create_index p where p.index_relid = i.indexrelid)`),
    assess: (found) =>
      found.length === 0
        ? ok('All indexes are valid.')
        : warning(
            `Invalid: ${named(found.map(({ name }) => name))}. They are written, and never read.`,
            "Run 'npx --no rail migrate', or REINDEX INDEX CONCURRENTLY each.",
          ),
  }),
];
