/**
 * The sweeps of each minute: what no request has done.
 *
 * - Campaigns are started at their time and finished once they are over, have their sequences scheduled that are not, and are paused where they bounced too often or
 *   lost their last inbox in a race.
 * - Sequences are completed `reply_wait_days` times 24 hours after their last email, while their campaign sends and their inbox is connected:
 *   "sequence.completed, outcome no_reply"; `unknown` where an email may not have left.
 */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { event } from '../events/event.ts';
import { isUnpaused } from '../sequences/sequence.ts';
import { lockCampaign } from './campaign.ts';
import { finishCampaigns, is_over } from './end.ts';
import { guardBounces, hasConnectedInbox, is_over_limit, pauseCampaign } from './pause.ts';
import { isUnscheduling, requestSchedule, requestUnschedule } from './reschedule.ts';

/** A campaign that starts, or for which what no request has done is made up for. */
interface Due {
  organization_id: string;
  campaign_id: string;
  is_start: boolean;
}

const connected = sql`exists (
  select from recruitment.inbox i
  where i.organization_id = t.organization_id and i.id = any(t.inbox_ids) and i.status = 'connected' and i.deleted_at is null)`;

/** Finds the campaigns of all organizations for which something is to be done. */
export const campaignsDue = (tx: Tx, tick: string): Promise<Due[]> =>
  tx.all<Due>(sql`
    select t.organization_id, t.id as campaign_id, true as is_start from recruitment.campaign t
    where t.state = 'scheduled' and t.start_at <= ${tick}::timestamptz
    union all
    select t.organization_id, t.id, false from recruitment.campaign t
    where t.state = 'sending' and (t.is_unscheduling or ${is_over} or not ${connected} or ${is_over_limit} or exists (
      select from recruitment.sequence s
      where s.organization_id = t.organization_id and s.campaign_id = t.id and s.open and s.due_at is null))`);

/** Finishes a campaign that is over, pauses one that bounced too often or whose last inbox was disconnected meanwhile, has sequences scheduled that are not. */
export async function sweepCampaign(tx: Tx, campaign_id: string): Promise<void> {
  const { state, inbox_ids } = await lockCampaign(tx, campaign_id);
  if (state !== 'sending') return;
  await finishCampaigns(tx, [campaign_id]);
  await guardBounces(tx, campaign_id);
  if ((await lockCampaign(tx, campaign_id)).state !== 'sending') return;
  if (await isUnscheduling(tx, campaign_id)) requestUnschedule(tx, campaign_id);
  else if (await hasConnectedInbox(tx, inbox_ids)) requestSchedule(tx, campaign_id);
  else await pauseCampaign(tx, campaign_id, 'inbox', 'no_inbox');
}

/** Sequences of one transaction. */
export const most_completed = 500;

/** A sequence of a campaign that sends, all of whose emails are out, and whose wait is over. A paused one waits on. */
const isComplete = (tick: string): Sql => sql`
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
      where s.organization_id = c.organization_id and s.campaign_id = c.id and ${isComplete(tick)}
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
      where s.organization_id = c.organization_id and s.campaign_id = c.id and ${isComplete(tick)}
    )
    order by c.id
    for no key update of c`);
  const completed = await tx.all<Completed>(sql`
    with over as materialized (
      select s.id
      from recruitment.campaign c
      join recruitment.sequence s on s.organization_id = c.organization_id and s.campaign_id = c.id
      where c.organization_id = ${tx.organization_id} and c.state = 'sending' and not c.is_unscheduling and ${isComplete(tick)}
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
