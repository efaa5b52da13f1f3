/**
 * Completes sequences, `reply_wait_days` times 24 hours after their last email, while their campaign sends and their inbox is connected: "sequence.completed,
 * outcome no_reply"; `unknown` where an email may not have left.
 */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { finishCampaigns } from '../campaigns/finish.ts';
import { event } from '../events/event.ts';
import { isUnpaused } from '../sequences/sequence.ts';

/** Sequences of one transaction. */
export const most_completed = 500;

/** A sequence of a campaign that sends, all of whose emails are out, and whose wait is over. A paused one waits on. */
const isOver = (tick: string): Sql => sql`
  s.state = 'active' and s.next_step >= jsonb_array_length(c.steps) and s.due_at <= ${tick}::timestamptz
    and ${isUnpaused(sql`s`, tick)}
    and exists (
      select from recruitment.inbox i where i.organization_id = s.organization_id and i.id = s.inbox_id and i.status = 'connected'
    )`;

/** Finds the organizations that have any, for the scheduled task. */
export const organizationsToComplete = (tx: Tx, tick: string): Promise<{ organization_id: string }[]> =>
  tx.all(sql`
    select distinct c.organization_id
    from recruitment.campaign c
    where c.state = 'sending' and not c.is_unscheduling and exists (
      select from recruitment.sequence s
      where s.organization_id = c.organization_id and s.campaign_id = c.id and ${isOver(tick)}
    )`);

interface Completed {
  id: string;
  brand_id: string;
  prospect_id: string | null;
  campaign_id: string;
  inbox_id: string;
  is_unknown: boolean;
}

/** Ends some of them. Locks campaigns before sequences, so that the last one finishes its campaign. @returns how many */
export async function completeSequences(tx: Tx, tick: string): Promise<number> {
  await tx.all(sql`
    select from recruitment.campaign c
    where c.organization_id = ${tx.organization_id} and c.state = 'sending' and not c.is_unscheduling and exists (
      select from recruitment.sequence s
      where s.organization_id = c.organization_id and s.campaign_id = c.id and ${isOver(tick)}
    )
    order by c.id
    for no key update of c`);
  const completed = await tx.all<Completed>(sql`
    with over as materialized (
      select s.id
      from recruitment.campaign c
      join recruitment.sequence s on s.organization_id = c.organization_id and s.campaign_id = c.id
      where c.organization_id = ${tx.organization_id} and c.state = 'sending' and not c.is_unscheduling and ${isOver(tick)}
      order by s.id
      limit ${most_completed}
      for no key update of s
    )
    update recruitment.sequence s set state = 'completed', ended_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    from over where s.organization_id = ${tx.organization_id} and s.id = over.id
    returning s.id, s.brand_id, s.prospect_id, s.campaign_id, s.inbox_id, exists (
      select from recruitment.message m
      where m.organization_id = s.organization_id and m.sequence_id = s.id and m.purpose = 'sequence' and m.state = 'unknown'
    ) as is_unknown`);
  for (const { id: sequence_id, prospect_id, is_unknown, ...about } of completed) {
    if (prospect_id === null) continue;
    tx.emit(
      event('sequence.completed', tx.organization_id, {
        ...{ ...about, sequence_id, prospect_id, occurred_at: tx.now },
        outcome: is_unknown ? 'unknown' : 'no_reply',
      }),
    );
  }
  await finishCampaigns(tx, [...new Set(completed.map(({ campaign_id }) => campaign_id))].sort());
  return completed.length;
}
