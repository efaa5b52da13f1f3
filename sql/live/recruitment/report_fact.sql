-- The facts that reports of recruitment count: one row for each event, at its own time. The assignee is that of today.
create or replace view recruitment.report_fact with (security_invoker = true) as
select
  p.organization_id, p.brand_id, 'added' as fact, p.created_at as at, p.id as prospect_id, p.assignee_member_id as member_id,
  null::text collate "C" as campaign_id, null::text collate "C" as inbox_id, null::integer as step_index, null::integer as variant, 1::bigint as amount
from recruitment.prospect p
union all
-- These facts count for the last email of a campaign before them.
select
  p.organization_id, p.brand_id, case a.kind when 'stage_changed' then a.data ->> 'to' else a.kind end, a.created_at, p.id, p.assignee_member_id,
  before.campaign_id, before.inbox_id, before.step_index, before.variant, 1
from recruitment.activity a
join recruitment.prospect p on p.organization_id = a.organization_id and p.id = a.prospect_id
left join lateral (
  select m.campaign_id, m.inbox_id, m.step_index, m.variant
  from recruitment.message m
  where m.organization_id = p.organization_id and m.prospect_id = p.id and m.purpose = 'sequence' and m.sent_at <= a.created_at
  order by m.id desc
  limit 1
) as before on true
where a.kind in ('stage_changed', 'invited', 'signed_up', 'unsubscribed', 'activated')
union all
select
  m.organization_id, m.brand_id, f.fact, f.at, m.prospect_id, p.assignee_member_id, m.campaign_id, m.inbox_id, m.step_index, m.variant, 1
from recruitment.message m
left join recruitment.prospect p on p.organization_id = m.organization_id and p.id = m.prospect_id
cross join lateral (
  values ('sent', m.sent_at), ('bounced', m.bounced_at), ('failed', case when m.state = 'failed' then m.updated_at end)
) as f (fact, at)
where m.purpose = 'sequence' and f.at is not null
union all
select
  m.organization_id, m.brand_id, 'reply_' || m.reply_kind, m.received_at, m.prospect_id, p.assignee_member_id, m.campaign_id, m.inbox_id,
  answered.step_index, answered.variant, 1
from recruitment.message m
left join recruitment.prospect p on p.organization_id = m.organization_id and p.id = m.prospect_id
left join recruitment.answered_email answered on answered.organization_id = m.organization_id and answered.reply_id = m.id
where m.direction = 'inbound' and m.reply_kind is not null
union all
select
  e.organization_id, coalesce(r.brand_id, p.brand_id), 'credits_spent', e.created_at, e.prospect_id, p.assignee_member_id, null, null, null, null, -e.amount
from recruitment.credit_entry e
left join recruitment.run r on r.organization_id = e.organization_id and r.id = coalesce(e.search_id, e.scan_id)
left join recruitment.prospect p on p.organization_id = e.organization_id and p.id = e.prospect_id
where e.kind in ('spend', 'refund')
union all
select r.organization_id, r.brand_id, 'provider_micros', r.created_at, null, null, null, null, null, null, r.spent_micros
from recruitment.run r
where r.spent_micros > 0;
comment on view recruitment.report_fact is
  'What reports of recruitment count, each at its own time: prospects, stages that they reached, emails, replies, credits and what providers cost.';
grant select on recruitment.report_fact to rail_api;
