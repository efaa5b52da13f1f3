-- What reports count: one row for each thing that happened, at its own time, with the attribution of today. Everything else about reports
-- follows from this view: what a write changes (report_change.sql), what a report reads at its edges, and what the audit recounts.

-- Host and path of a URL. Long ones are cut, so that they fit into an index.
create or replace function program.landing_page(url text) returns text
language sql immutable parallel safe
return left(
  substr(split_part(split_part(url, '#', 1), '?', 1), position('://' in url) + case when position('://' in url) > 0 then 3 else 1 end), 500
);
comment on function program.landing_page(text) is 'Host and path of a URL, without query and fragment, at most 500 characters.';

-- An amount stands in one of the columns alone; the others are null. Which columns a filter or a report's rows need: a click has no coupon,
-- and what is not a sale or its money has neither product nor customer.
create or replace view program.report_fact with (security_invoker = true) as
select
  c.organization_id, c.program_id, 'click' as noun, c.id, null::text collate "C" as sale_id, c.created_at as at,
  c.partner_id, c.link_id, null::text collate "C" as coupon_id,
  c.country collate "C" as country, program.landing_page(c.landing_url) collate "C" as landing_page,
  null::text collate "C" as product_id, null::text collate "C" as customer_id, '' collate "C" as currency,
  1 as clicks, null::integer as referrals, null::integer as leads, null::integer as customers, null::integer as sales,
  null::bigint as revenue_minor, null::bigint as refunds_minor, null::bigint as commissions_minor,
  null::bigint as clawbacks_minor, null::bigint as paid_minor
from program.click c
union all
select
  r.organization_id, r.program_id, 'referral', r.id, null, r.created_at, r.partner_id, r.link_id, null,
  r.country, program.landing_page(r.landing_url) collate "C", null, null, '' collate "C", null, 1, null, null, null, null, null, null, null, null
from program.referral r
where r.deleted_at is null
union all
select
  c.organization_id, c.program_id, 'lead', c.id, null, c.lead_at, c.partner_id, c.link_id, c.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", null, null, '' collate "C", null, null, 1, null, null, null, null, null, null, null
from program.customer c
left join program.referral r on r.organization_id = c.organization_id and r.id = c.referral_id
where c.deleted_at is null and c.lead_at is not null
union all
select
  c.organization_id, c.program_id, 'customer', c.id, null, c.converted_at, c.partner_id, c.link_id, c.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", null, null, '' collate "C", null, null, null, 1, null, null, null, null, null, null
from program.customer c
left join program.referral r on r.organization_id = c.organization_id and r.id = c.referral_id
where c.deleted_at is null and c.converted_at is not null
union all
select
  s.organization_id, s.program_id, 'sale', s.id, s.id, s.occurred_at, s.partner_id, s.link_id, s.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", s.product_id collate "C", s.customer_id, s.currency collate "C",
  null, null, null, null, 1, s.amount_minor, null, null, null, null
from program.sale s
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
where s.deleted_at is null and s.partner_id is not null
union all
select
  f.organization_id, f.program_id, 'refund', f.id, s.id, coalesce(f.refunded_at, f.created_at), s.partner_id, s.link_id, s.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", s.product_id collate "C", s.customer_id, s.currency collate "C",
  null, null, null, null, null, null, f.amount_minor, null, null, null
from program.refund f
join program.sale s on s.organization_id = f.organization_id and s.id = f.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
where f.deleted_at is null and s.deleted_at is null and s.partner_id is not null
union all
select
  c.organization_id, c.program_id, 'commission', c.id, s.id, s.occurred_at, c.partner_id, s.link_id, s.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", s.product_id collate "C", c.customer_id, c.currency collate "C",
  null, null, null, null, null, null, null, c.amount_minor, null, null
from program.commission c
join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
where c.deleted_at is null and c.kind in ('sale', 'bonus') and program.is_counted(c.status)
union all
select
  c.organization_id, c.program_id, 'commission', c.id, null, c.created_at, c.partner_id, null, null,
  null, null, null, c.customer_id, c.currency collate "C", null, null, null, null, null, null, null, c.amount_minor, null, null
from program.commission c
where c.deleted_at is null and c.kind in ('sale', 'bonus') and program.is_counted(c.status) and c.sale_id is null
union all
select
  c.organization_id, c.program_id, 'clawback', c.id, s.id, c.created_at, c.partner_id, s.link_id, s.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", s.product_id collate "C", c.customer_id, c.currency collate "C",
  null, null, null, null, null, null, null, null, -c.amount_minor, null
from program.commission c
left join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
where c.deleted_at is null and c.kind = 'clawback' and program.is_counted(c.status)
union all
select
  c.organization_id, c.program_id, 'paid', c.id, s.id, c.paid_at, c.partner_id, s.link_id, s.coupon_id,
  r.country, program.landing_page(r.landing_url) collate "C", s.product_id collate "C", c.customer_id, c.currency collate "C",
  null, null, null, null, null, null, null, null, null, c.amount_minor
from program.commission c
left join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
where c.deleted_at is null and c.status = 'paid' and c.paid_at is not null;
comment on view program.report_fact is
  'What reports count: clicks, referrals, leads, customers, sales, refunds, commissions, clawbacks and payments, each at its own time.';
grant select on program.report_fact to rail_api;

-- The sums of the facts of a short time, by a plan that a session makes once: to plan a statement over the whole view anew takes longer than to
-- read a few hours of it. Always by the indexes, which is right for a short time alone. A column that nobody asked for is not computed.
create or replace function program.report_sums_between(
  organization_id text, program_id text, first timestamptz, after timestamptz, first_click text, after_click text,
  nouns text[], dimension text, keys text[]
) returns table (
  key text, currency text, clicks bigint, referrals bigint, leads bigint, customers bigint, sales bigint, revenue_minor bigint,
  refunds_minor bigint, commissions_minor bigint, clawbacks_minor bigint, paid_minor bigint
)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  return query
  select
    f.key, f.currency, sum(f.clicks), sum(f.referrals), sum(f.leads), sum(f.customers), sum(f.sales),
    program.bigint_sum(f.revenue_minor), program.bigint_sum(f.refunds_minor), program.bigint_sum(f.commissions_minor),
    program.bigint_sum(f.clawbacks_minor), program.bigint_sum(f.paid_minor)
  from (
    select
      f.*,
      coalesce(
        case report_sums_between.dimension
          when 'partner_id' then f.partner_id
          when 'link_id' then f.link_id
          when 'coupon_id' then f.coupon_id
          when 'country' then f.country
          when 'landing_page' then f.landing_page
          when 'product_id' then f.product_id
          when 'customer_id' then f.customer_id
        end,
        ''
      ) as key
    from program.report_fact f
    where f.organization_id = report_sums_between.organization_id
      and f.program_id = report_sums_between.program_id
      and f.noun = any(report_sums_between.nouns)
      and f.at >= report_sums_between.first
      and f.at < report_sums_between.after
      and (
        f.noun <> 'click'
        or (
          f.id >= report_sums_between.first_click collate "C"
          and f.id < report_sums_between.after_click collate "C"
        )
      )
  ) f
  where report_sums_between.keys is null or f.key in (select k.key from unnest(report_sums_between.keys) as k (key))
  group by 1, 2;
end
$$;
