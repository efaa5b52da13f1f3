/** Deletes clicks that are older than they are kept, and that nobody depends on. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { databaseTime } from '../../core/values/clock.ts';
import { idTimePart, timeOfId } from '../../core/values/id.ts';

/** A click is kept for longer than any attribution window, which is 365 days at most. */
export const least_click_days = 400;

const day_ms = 86_400_000;

/** Before any click: an id of then is made up. */
const first_click_ms = Date.UTC(2020);

/** Returns whether a click that is not there may have been deleted: it is then as one whose window is over. */
export function mayBeForgotten(click_id: string): boolean {
  const made_ms = timeOfId(click_id);
  return made_ms >= first_click_ms && made_ms < databaseTime() - least_click_days * day_ms;
}

/** Returns the id before which clicks are too old. */
export const oldestKept = (days: number, at: string): string =>
  `clk_${idTimePart(Math.min(Date.parse(at), databaseTime()) - days * day_ms)}`;

/** The organizations that have clicks before an id, for the scheduled task only. */
export const organizationsWithClicks = (tx: Tx, before: string): Promise<{ organization_id: string }[]> =>
  tx.all(sql`
    select o.id as organization_id from core.organization o
    where exists (select from program.click t where t.organization_id = o.id and t.id < ${before})`);

/** Clicks of an organization, from an id on. */
export interface OldClicks {
  after: string;
  before: string;
}

/**
 * Deletes a step of them. What leads to a customer or a sale stays: all clicks of the visitor, since sales name clicks for years, and
 * claims look for those of another partner.
 * @param most that it looks at
 * @returns the last one that it looked at; null where there are no more
 */
export async function forgetClicks(tx: Tx, { after, before }: OldClicks, most: number): Promise<string | null> {
  const { last, looked } = await tx.one<{ last: string | null; looked: number }>(sql`
    with old as materialized (
      select t.id, t.program_id, t.visitor_token
      from program.click t
      where ${tenant(tx)} and t.id > ${after} and t.id < ${before}
      order by t.id
      limit ${most}
    ),
    deleted as (
      delete from program.click t using old o
      where ${tenant(tx)} and t.id = o.id and t.id > ${after} and t.id < ${before} and not exists (
        select from (
          select r.id from program.referral r
          where r.organization_id = t.organization_id and r.program_id = o.program_id and r.visitor_token = o.visitor_token and r.deleted_at is null
          union all
          select r.id from program.referral r
          where r.organization_id = t.organization_id and r.program_id = o.program_id and r.visitor_token = o.visitor_token and r.deleted_at is not null
        ) as r
        where exists (select from program.customer c where c.organization_id = t.organization_id and c.referral_id = r.id)
          or exists (
            select from program.sale s where s.organization_id = t.organization_id and s.referral_id = r.id and s.deleted_at is null
          )
      )
    )
    select max(o.id collate "C") as last, count(*)::integer as looked from old o`);
  return looked === most ? last : null;
}
