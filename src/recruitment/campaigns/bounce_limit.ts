import sql from 'sql-template-tag';

const least_sent = 20;
const least_bounced = 2;

/** "≥ 20 sent and ≥ 2 bounced since the last pause, and over the limit." */
export const isOverLimit = ({ sent, bounced }: { sent: number; bounced: number }, bounce_pause_bps: number): boolean =>
  sent >= least_sent && bounced >= least_bounced && bounced * 10_000 > bounce_pause_bps * sent;

/** So many emails after a bounce, the rate of all is not over a limit by the one that was counted last. */
const most_counted = 1_000;

/** Of a message `m`. A full mailbox or a timeout says nothing of the addresses or the emails of a campaign. */
export const counts_as_bounced = sql`m.bounce_reason is distinct from 'undelivered'`;

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
