/** How old the oldest imports and results are: see `readRetention`. */
import sql from 'sql-template-tag';
import type { Kept } from '../core/jobs/retention.ts';

export const kept: Kept[] = [
  {
    ...{ kind: 'imports', setting: 'IMPORT_RETENTION_DAYS', days: ({ import_days }) => import_days, late_days: 1 },
    oldest: sql`
      select min(i.finished_at) as at from core.organization o cross join lateral (
        select t.finished_at from recruitment.import t where t.organization_id = o.id order by t.id limit 1
      ) i`,
  },
  {
    ...{
      kind: 'search_results',
      setting: 'SEARCH_RETENTION_DAYS',
      days: ({ search_days }) => search_days,
      late_days: 1,
    },
    oldest: sql`
      select min(i.created_at) as at from core.organization o cross join lateral (
        select t.created_at from recruitment.run_result t where t.organization_id = o.id order by t.id limit 1
      ) i`,
  },
  {
    ...{ kind: 'pages', setting: 'SEARCH_RETENTION_DAYS', days: ({ search_days }) => search_days, late_days: 1 },
    oldest: sql`
      select min(i.fetched_at) as at from core.organization o cross join lateral (
        select t.fetched_at from recruitment.page t where t.organization_id = o.id order by t.fetched_at limit 1
      ) i`,
  },
];
