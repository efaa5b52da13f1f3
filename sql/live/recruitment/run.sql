-- Searches and scans as they are shown.
create or replace view recruitment.search with (security_invoker = true) as
select
  t.organization_id, t.id, t.brand_id, t.search_type, t.request, t.ceiling_minor, t.state, t.error, t.results as results_count, t.found,
  ceil(t.spent_micros / 10000.0)::bigint as spent_minor, t.credit = 'refunded' as credit_refunded,
  (
    select s.id
    from recruitment.run s
    where s.organization_id = t.organization_id and s.brand_id = t.brand_id and s.kind = 'scan' and s.search_id = t.id
  ) as scan_id,
  t.started_at, t.finished_at, t.created_at, t.updated_at
from recruitment.run t
where t.kind = 'search';
comment on view recruitment.search is 'Searches for prospects.';

create or replace view recruitment.scan with (security_invoker = true) as
select
  t.organization_id, t.id, t.brand_id, t.trigger, t.search_id, t.ceiling_minor, t.state, t.error, t.found, t.visits, t.visits_left,
  ceil(t.spent_micros / 10000.0)::bigint as spent_minor, t.credit = 'refunded' as credit_refunded,
  t.finished_at, t.created_at, t.updated_at
from recruitment.run t
where t.kind = 'scan';
comment on view recruitment.scan is 'Scans: visits of the pages of prospects.';
