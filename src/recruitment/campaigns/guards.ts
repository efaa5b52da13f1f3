import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { counts_as_bounced, isOverLimit } from './bounce_limit.ts';
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
