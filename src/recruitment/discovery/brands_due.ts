import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';

/** Brands whose weekly scan falls on the local day of a time, and that have none of that day. */
export const brandsDue = (tx: Tx, at: string) =>
  tx.all<{ organization_id: string; id: string; week: string }>(sql`
    select b.organization_id, b.id, (${at}::timestamptz at time zone core.zone(b.default_timezone))::date::text as week
    from recruitment.brand b
    left join recruitment.plan p on p.organization_id = b.organization_id
    where b.deleted_at is null and b.scan_schedule = 'weekly' and coalesce(p.name, 'enterprise') <> 'starter'
      and extract(isodow from ${at}::timestamptz at time zone core.zone(b.default_timezone)) = b.scan_weekday
      and (b.created_at at time zone core.zone(b.default_timezone))::date < (${at}::timestamptz at time zone core.zone(b.default_timezone))::date
      and not exists (
        select from recruitment.run r
        where r.organization_id = b.organization_id and r.brand_id = b.id
          and r.week = (${at}::timestamptz at time zone core.zone(b.default_timezone))::date
      )`);
