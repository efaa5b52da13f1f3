-- The email of a campaign that a reply answers: the one that it names, else the last one of its sequence that was sent.
create or replace view recruitment.answered_email with (security_invoker = true) as
select r.organization_id, r.id as reply_id, answered.id, answered.step_index, answered.variant
from recruitment.message r
cross join lateral (
  select o.id, o.step_index, o.variant
  from recruitment.message o
  where o.organization_id = r.organization_id and o.sequence_id = r.sequence_id and o.purpose = 'sequence'
    and o.state in ('sent', 'bounced', 'unknown')
  order by o.rfc_message_id = r.in_reply_to desc, o.step_index desc
  limit 1
) as answered
where r.direction = 'inbound' and r.purpose = 'reply';
comment on view recruitment.answered_email is 'The email of a campaign that each reply answers.';
grant select on recruitment.answered_email to rail_api;
