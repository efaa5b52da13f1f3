/** Has sequences scheduled, or their times taken so that they are scheduled anew. */
import sql from 'sql-template-tag';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';

/** Has the sequences of a campaign scheduled that are not yet. */
export const requestSchedule = (tx: Tx, campaign_id: string): void =>
  tx.enqueue(
    'recruitment/schedule_sequences',
    { organization_id: tx.organization_id, campaign_id },
    { job_key: `schedule:${campaign_id}` },
  );

/** A sequence whose first email was sent, or is being sent: its address and its inbox stay the same. */
export const has_begun = sql`(t.state = 'active' or exists (
  select from recruitment.message m
  where m.organization_id = t.organization_id and m.sequence_id = t.id and m.purpose = 'sequence' and m.state <> 'cancelled'))`;

/**
 * Takes the times of the open sequences of a campaign, which the caller has locked, and the inboxes of those that have not begun: they are scheduled
 * anew. Of many a job takes those that are left, and the campaign sends nothing before it has.
 */
export async function unschedule(tx: Tx, campaign_id: string): Promise<void> {
  if ((await unscheduleSome(tx, campaign_id)) === most_at_once) requestUnschedule(tx, campaign_id);
}

export function requestUnschedule(tx: Tx, campaign_id: string): void {
  const { organization_id, request_id } = tx;
  const job_key = `unschedule:${campaign_id}`;
  tx.enqueue('recruitment/unschedule_sequences', { organization_id, request_id, campaign_id }, { job_key });
}

export const isUnscheduling = async (tx: Tx, campaign_id: string): Promise<boolean> =>
  (await tx.maybe(sql`
    select from recruitment.campaign t where ${tenant(tx)} and t.id = ${campaign_id} and t.is_unscheduling`)) !==
  undefined;

/** Takes the times of some, by the index of those that have one: the others are not read again with each part. @returns how many */
export async function unscheduleSome(tx: Tx, campaign_id: string): Promise<number> {
  const taken = await tx.all(sql`
    with scheduled as materialized (
      select s.id
      from recruitment.inbox i
      cross join lateral (
        select s.id from recruitment.sequence s
        where s.organization_id = i.organization_id and s.inbox_id = i.id and s.campaign_id = ${campaign_id} and s.open and s.due_at is not null
        limit ${most_at_once}
      ) as s
      where i.organization_id = ${tx.organization_id}
      limit ${most_at_once}
    ), open as materialized (
      select t.id, ${has_begun} as has_begun from recruitment.sequence t
      where ${tenant(tx)} and t.id in (select id from scheduled) and t.open
      order by t.id
      for no key update of t
    )
    update recruitment.sequence t
    set due_at = null, inbox_id = case when open.has_begun then t.inbox_id end, updated_at = ${tx.now}::timestamptz
    from open where ${tenant(tx)} and t.id = open.id
    returning t.id`);
  const is_unscheduling = taken.length === most_at_once;
  await tx.all(sql`
    update recruitment.campaign t set is_unscheduling = ${is_unscheduling} where ${tenant(tx)} and t.id = ${campaign_id}`);
  return taken.length;
}
