import sql from 'sql-template-tag';
import type { Tx } from '../../../../core/postgres/transaction.ts';
import { tenant } from '../../../../core/resource/resource.ts';
import { lockCampaign } from '../records/campaign.ts';
import { type Counted, pauseCampaign } from './pause.ts';

const least_sent = 20;
const least_bounced = 2;

/** "≥ 20 sent and ≥ 2 bounced since the last pause, and over the limit." */
export const isOverLimit = ({ sent, bounced }: Counted, bounce_pause_bps: number): boolean =>
  sent >= least_sent && bounced >= least_bounced && bounced * 10_000 > bounce_pause_bps * sent;

/** So many emails after a bounce, the rate of all is not over a limit by the one that was counted last. */
const most_counted = 1_000;

/**
 * For the sweep: a campaign `t` that is over its limit by an email that was sent, not by one that bounced. That is the 20th, and those that were
 * sent in the minute after it.
 */
export const is_over_limit = sql`(
  exists (
    select from recruitment.message m
    where m.organization_id = t.organization_id and m.campaign_id = t.id and m.bounced_at >= t.counted_since
  ) and exists (
    select
    from (
      (
        select m.bounced_at from recruitment.message m
        where m.organization_id = t.organization_id and m.campaign_id = t.id and m.purpose = 'sequence' and m.sent_at >= t.counted_since
        limit ${most_counted}
      )
      union all
      select m.bounced_at from recruitment.message m
      where m.organization_id = t.organization_id and m.campaign_id = t.id and m.purpose = 'sequence' and m.sent_at is null
        and m.bounced_at >= t.counted_since
    ) as counted
    having count(*) between ${least_sent} and ${most_counted} and count(counted.bounced_at) >= ${least_bounced}
      and count(counted.bounced_at) * 10000 > t.bounce_pause_bps * count(*)
  ))`;

/**
 * Pauses a campaign too many of whose emails bounced. To be called when one has, and where `is_over_limit`. Locks the campaign: before prospects and sequences, if they are
 * to be locked as well.
 * @param message_id a message that bounced in this transaction, whose row does not say so yet
 */
export async function guardBounces(tx: Tx, campaign_id: string, message_id: string | null = null): Promise<void> {
  const { state, bounce_pause_bps } = await lockCampaign(tx, campaign_id);
  if (state !== 'sending') return;
  const counted = await count(tx, campaign_id, message_id);
  if (isOverLimit(counted, bounce_pause_bps)) await pauseCampaign(tx, campaign_id, 'guard', 'bounce_rate', counted);
}

/** "A feedback report": a campaign that a recipient reported as spam is paused. */
export const pauseForComplaint = (tx: Tx, campaign_id: string): Promise<object> =>
  pauseCampaign(tx, campaign_id, 'guard', 'spam_complaint');

/** "Sent and bounced restart at each pause, and bounces count only for mails sent since." An address that a server refuses counts as both. */
const count = (tx: Tx, campaign_id: string, message_id: string | null): Promise<Counted> =>
  tx.one<Counted>(sql`
    with campaign as (
      select c.counted_since as since from recruitment.campaign c
      where c.organization_id = ${tx.organization_id} and c.id = ${campaign_id}
    ), sent as (
      select count(*)::integer as sent,
        (count(*) filter (where t.bounced_at is not null or t.id = ${message_id}))::integer as bounced
      from recruitment.message t, campaign
      where ${tenant(tx)} and t.campaign_id = ${campaign_id} and t.purpose = 'sequence' and t.sent_at >= campaign.since
    ), refused as (
      select count(*)::integer as refused
      from recruitment.message t, campaign
      where ${tenant(tx)} and t.campaign_id = ${campaign_id} and t.purpose = 'sequence' and t.sent_at is null
        and t.bounced_at >= campaign.since
    )
    select sent.sent + refused.refused as sent, sent.bounced + refused.refused as bounced from sent, refused`);
