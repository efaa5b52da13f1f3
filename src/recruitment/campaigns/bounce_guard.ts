/**
 * Pauses a campaign too many of whose emails bounced. Counted from the launch or the last pause, among emails sent since: dead addresses, and blocks. A full
 * mailbox or a timeout is no reason to pause. An address that the server refuses counts as sent and bounced. Checked at each bounce, and by the sweep where the
 * 20th email comes after the second bounce.
 */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { lockCampaign } from './campaign.ts';
import { type Counted, pauseCampaign } from './pause.ts';

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
    ), accepted as (
      select count(*)::integer as sent, (count(*) filter (where m.id = ${message_id}))::integer as bounced
      from recruitment.message m, campaign
      where m.organization_id = ${tx.organization_id} and m.campaign_id = ${campaign_id} and m.purpose = 'sequence' and m.sent_at >= campaign.since
    ), returned as (
      select count(*)::integer as bounced, (count(*) filter (where m.sent_at is null))::integer as refused
      from recruitment.message m, campaign
      where m.organization_id = ${tx.organization_id} and m.campaign_id = ${campaign_id} and m.purpose = 'sequence' and m.bounced_at >= campaign.since
        and coalesce(m.sent_at, campaign.since) >= campaign.since and m.id is distinct from ${message_id} and ${counts_as_bounced}
    )
    select accepted.sent + returned.refused as sent, accepted.bounced + returned.bounced as bounced from accepted, returned`);

const least_sent = 20;
const least_bounced = 2;

/** "≥ 20 sent and ≥ 2 bounced since the last pause, and over the limit." */
const isOverLimit = ({ sent, bounced }: { sent: number; bounced: number }, bounce_pause_bps: number): boolean =>
  sent >= least_sent && bounced >= least_bounced && bounced * 10_000 > bounce_pause_bps * sent;

/** So many emails after a bounce, the rate of all is not over a limit by the one that was counted last. */
const most_counted = 1_000;

/** A condition on a message `m`. A full mailbox or a timeout says nothing of the addresses or the emails of a campaign. */
const counts_as_bounced = sql`m.bounce_reason is distinct from 'undelivered'`;

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
      select count(*) as sent
      from (
        select from recruitment.message m
        where m.organization_id = t.organization_id and m.campaign_id = t.id and m.purpose = 'sequence' and m.sent_at >= t.counted_since
        limit ${most_counted}
      ) as accepted
    ) as accepted, (
      select count(*) as bounced, count(*) filter (where m.sent_at is null) as refused
      from recruitment.message m
      where m.organization_id = t.organization_id and m.campaign_id = t.id and m.purpose = 'sequence' and m.bounced_at >= t.counted_since
        and coalesce(m.sent_at, t.counted_since) >= t.counted_since and ${counts_as_bounced}
    ) as returned
    where accepted.sent + returned.refused between ${least_sent} and ${most_counted} and returned.bounced >= ${least_bounced}
      and returned.bounced * 10000 > t.bounce_pause_bps * (accepted.sent + returned.refused)
  ))`;
