import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { ReplyKind } from '../sequences/message.ts';

/** What was counted of one text of a step. */
export interface Counted {
  step_index: number;
  variant: number;
  sent: number;
  bounced: number;
  failed: number;
  unknown: number;
  unsubscribed: number;
  /** Emails with a positive reply. */
  positive: number;
  replies: Partial<Record<ReplyKind, number>>;
}

/**
 * Counts the emails of a campaign by step and text, in one statement. Which email a reply answers is said by `recruitment.answered_email`, as in
 * reports.
 */
export const countTexts = (tx: Tx, campaign_id: string): Promise<Counted[]> =>
  tx.all<Counted>(sql`
    with reply as materialized (
      select t.reply_kind, answered.id as answered_id, answered.step_index, answered.variant
      from recruitment.message t
      join recruitment.answered_email answered on answered.organization_id = t.organization_id and answered.reply_id = t.id
      where ${tenant(tx)} and t.campaign_id = ${campaign_id} and t.direction = 'inbound' and t.purpose = 'reply'
    ), replied as (
      select r.step_index, r.variant, json_object_agg(r.reply_kind, r.count) as replies
      from (select reply_kind, step_index, variant, count(*) as count from reply group by 1, 2, 3) as r
      group by r.step_index, r.variant
    ), positive as (
      select r.step_index, r.variant, count(distinct r.answered_id)::integer as positive
      from reply r
      where r.reply_kind = 'positive'
      group by r.step_index, r.variant
    ), counted as (
      select t.step_index, t.variant,
        (count(*) filter (where t.sent_at is not null))::integer as sent,
        (count(*) filter (where t.sent_at is not null and t.bounced_at is not null))::integer as bounced,
        (count(*) filter (where t.state = 'failed'))::integer as failed,
        (count(*) filter (where t.state = 'unknown'))::integer as unknown,
        (count(*) filter (where t.unsubscribed_at is not null))::integer as unsubscribed
      from recruitment.message t
      where ${tenant(tx)} and t.campaign_id = ${campaign_id} and t.purpose = 'sequence' and t.step_index is not null and t.variant is not null
      group by t.step_index, t.variant
    )
    select c.*, coalesce(p.positive, 0) as positive, coalesce(r.replies, '{}'::json) as replies
    from counted c
    left join replied r on r.step_index = c.step_index and r.variant = c.variant
    left join positive p on p.step_index = c.step_index and p.variant = c.variant
    order by c.step_index, c.variant`);
