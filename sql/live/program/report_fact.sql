-- The facts that reports count: one row for each event, at its own time, with the attribution of today. Everything else about reports follows from
-- this view: what a write changes (report_note.sql), what a report reads at its edges, and what the audit recounts.

-- Host and path of a URL. Long ones are cut, so that they fit into an index.
create or replace function program.landing_page(url text) returns text
language sql immutable parallel safe
return left(
  substr(split_part(split_part(url, '#', 1), '?', 1), position('://' in url) + case when position('://' in url) > 0 then 3 else 1 end), 500
);
comment on function program.landing_page(text) is 'Host and path of a URL, without query and fragment, at most 500 characters.';

-- The fact of each row of a table, if any, from the row and those that it has its attribution from: `s` its sale, `r` the referral. Postgres inlines
-- these functions, so that neither the view nor a trigger calls a function for each row. An amount stands in one of the columns alone; the others are
-- null. A filter or a report's rows need these columns: a click has no coupon, and what is not a sale or its money has neither product nor customer.

create or replace function program.click_fact(c program.click) returns setof program.fact
language sql stable
as $$
  select
    c.organization_id, c.program_id, 'click', c.id, null::text collate "C", c.created_at,
    c.partner_id, c.link_id, null::text collate "C",
    c.country collate "C", program.landing_page(c.landing_url) collate "C", null::text collate "C", null::text collate "C", '' collate "C",
    1, null::integer, null::integer, null::integer, null::integer,
    null::bigint, null::bigint, null::bigint, null::bigint, null::bigint, c.inserted_in
  where not c.is_bot
$$;

create or replace function program.referral_fact(r program.referral) returns setof program.fact
language sql stable
as $$
  select
    r.organization_id, r.program_id, 'referral', r.id, null::text collate "C", r.created_at,
    r.partner_id, r.link_id, null::text collate "C",
    r.country collate "C", program.landing_page(r.landing_url) collate "C", null::text collate "C", null::text collate "C", '' collate "C",
    null::integer, 1, null::integer, null::integer, null::integer,
    null::bigint, null::bigint, null::bigint, null::bigint, null::bigint, r.inserted_in
  where r.deleted_at is null
$$;

-- A customer is counted twice: as a lead, and as a customer from the first payment on.
create or replace function program.lead_fact(c program.customer, r program.referral) returns setof program.fact
language sql stable
as $$
  select
    c.organization_id, c.program_id, 'lead', c.id, null::text collate "C", c.lead_at,
    c.partner_id, c.link_id, c.coupon_id,
    r.country collate "C", program.landing_page(r.landing_url) collate "C", null::text collate "C", null::text collate "C", '' collate "C",
    null::integer, null::integer, 1, null::integer, null::integer,
    null::bigint, null::bigint, null::bigint, null::bigint, null::bigint, c.inserted_in
  where c.deleted_at is null and c.lead_at is not null
$$;

create or replace function program.customer_fact(c program.customer, r program.referral) returns setof program.fact
language sql stable
as $$
  select
    c.organization_id, c.program_id, 'customer', c.id, null::text collate "C", c.converted_at,
    c.partner_id, c.link_id, c.coupon_id,
    r.country collate "C", program.landing_page(r.landing_url) collate "C", null::text collate "C", null::text collate "C", '' collate "C",
    null::integer, null::integer, null::integer, 1, null::integer,
    null::bigint, null::bigint, null::bigint, null::bigint, null::bigint, c.inserted_in
  where c.deleted_at is null and c.converted_at is not null
$$;

create or replace function program.sale_fact(s program.sale, r program.referral) returns setof program.fact
language sql stable
as $$
  select
    s.organization_id, s.program_id, 'sale', s.id, s.id, s.occurred_at,
    s.partner_id, s.link_id, s.coupon_id,
    r.country collate "C", program.landing_page(r.landing_url) collate "C", s.product_id collate "C", s.customer_id, s.currency collate "C",
    null::integer, null::integer, null::integer, null::integer, 1,
    s.amount_minor, null::bigint, null::bigint, null::bigint, null::bigint, s.inserted_in
  where s.deleted_at is null and s.partner_id is not null
$$;

-- The time is that of the index refund_by_refund_time, to the letter.
create or replace function program.refund_fact(f program.refund, s program.sale, r program.referral) returns setof program.fact
language sql stable
as $$
  select
    f.organization_id, f.program_id, 'refund', f.id, s.id, case when f.refunded_at is null then f.created_at else f.refunded_at end,
    s.partner_id, s.link_id, s.coupon_id,
    r.country collate "C", program.landing_page(r.landing_url) collate "C", s.product_id collate "C", s.customer_id, s.currency collate "C",
    null::integer, null::integer, null::integer, null::integer, null::integer,
    null::bigint, f.amount_minor, null::bigint, null::bigint, null::bigint, f.inserted_in
  where f.deleted_at is null and f.reversed_at is null and s.deleted_at is null and s.partner_id is not null
$$;

-- A commission of a sale counts at its time, with its attribution, and for the partner of its own; without a sale, at its own time.
create or replace function program.commission_fact(c program.commission, s program.sale, r program.referral) returns setof program.fact
language sql stable
as $$
  select
    c.organization_id, c.program_id, 'commission', c.id, s.id, s.occurred_at,
    c.partner_id, s.link_id, s.coupon_id,
    r.country collate "C", program.landing_page(r.landing_url) collate "C", s.product_id collate "C", c.customer_id, c.currency collate "C",
    null::integer, null::integer, null::integer, null::integer, null::integer,
    null::bigint, null::bigint, c.amount_minor, null::bigint, null::bigint, c.inserted_in
  where c.deleted_at is null and c.kind in ('sale', 'bonus') and program.is_counted(c.status) and c.sale_id = s.id
$$;

create or replace function program.bonus_fact(c program.commission) returns setof program.fact
language sql stable
as $$
  select
    c.organization_id, c.program_id, 'commission', c.id, null::text collate "C", c.created_at,
    c.partner_id, null::text collate "C", null::text collate "C",
    null::text collate "C", null::text collate "C", null::text collate "C", c.customer_id, c.currency collate "C",
    null::integer, null::integer, null::integer, null::integer, null::integer,
    null::bigint, null::bigint, c.amount_minor, null::bigint, null::bigint, c.inserted_in
  where c.deleted_at is null and c.kind in ('sale', 'bonus') and program.is_counted(c.status) and c.sale_id is null
$$;

create or replace function program.clawback_fact(c program.commission, s program.sale, r program.referral) returns setof program.fact
language sql stable
as $$
  select
    c.organization_id, c.program_id, 'clawback', c.id, s.id, c.created_at,
    c.partner_id, s.link_id, s.coupon_id,
    r.country collate "C", program.landing_page(r.landing_url) collate "C", s.product_id collate "C", c.customer_id, c.currency collate "C",
    null::integer, null::integer, null::integer, null::integer, null::integer,
    null::bigint, null::bigint, null::bigint, -c.amount_minor, null::bigint, c.inserted_in
  where c.deleted_at is null and c.kind = 'clawback' and program.is_counted(c.status)
$$;

create or replace function program.payment_fact(c program.commission, s program.sale, r program.referral) returns setof program.fact
language sql stable
as $$
  select
    c.organization_id, c.program_id, 'paid', c.id, s.id, c.paid_at,
    c.partner_id, s.link_id, s.coupon_id,
    r.country collate "C", program.landing_page(r.landing_url) collate "C", s.product_id collate "C", c.customer_id, c.currency collate "C",
    null::integer, null::integer, null::integer, null::integer, null::integer,
    null::bigint, null::bigint, null::bigint, null::bigint, c.amount_minor, c.inserted_in
  where c.deleted_at is null and c.status = 'paid' and c.paid_at is not null
$$;

create or replace view program.report_fact with (security_invoker = true) as
select f.*
from program.click c
cross join lateral program.click_fact(c) f
union all
select f.*
from program.referral r
cross join lateral program.referral_fact(r) f
union all
select f.*
from program.customer c
left join program.referral r on r.organization_id = c.organization_id and r.id = c.referral_id
cross join lateral program.lead_fact(c, r) f
union all
select f.*
from program.customer c
left join program.referral r on r.organization_id = c.organization_id and r.id = c.referral_id
cross join lateral program.customer_fact(c, r) f
union all
select f.*
from program.sale s
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
cross join lateral program.sale_fact(s, r) f
union all
select f.*
from program.refund c
join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
cross join lateral program.refund_fact(c, s, r) f
union all
select f.*
from program.commission c
join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
cross join lateral program.commission_fact(c, s, r) f
union all
select f.*
from program.commission c
cross join lateral program.bonus_fact(c) f
union all
select f.*
from program.commission c
left join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
cross join lateral program.clawback_fact(c, s, r) f
union all
select f.*
from program.commission c
left join program.sale s on s.organization_id = c.organization_id and s.id = c.sale_id
left join program.referral r on r.organization_id = s.organization_id and r.id = s.referral_id
cross join lateral program.payment_fact(c, s, r) f;
comment on view program.report_fact is
  'What reports count: clicks, referrals, leads, customers, sales, refunds, commissions, clawbacks and payments, each at its own time.';
grant select on program.report_fact to rail_api;

-- The sums of the facts of a short time by a dimension, by a plan that a session makes once: to plan a statement over the whole view anew takes
-- longer than to read a few hours of it. Always by the indexes, which is right for a short time alone. Each dimension has a function, whose plan
-- reads what its key needs: the referrals, which most rows would be joined with, are for countries and landing pages alone.
do $do$
declare
  name text;
begin
  foreach name in array array['all', 'partner_id', 'link_id', 'coupon_id', 'country', 'landing_page', 'product_id', 'customer_id'] loop
    execute format(
      $create$
create or replace function program.%I(
  organization_id text, program_id text, first timestamptz, after timestamptz, first_click text, after_click text, nouns text[]
) returns table (
  key text, currency text, clicks bigint, referrals bigint, leads bigint, customers bigint, sales bigint, revenue_minor bigint,
  refunds_minor bigint, commissions_minor bigint, clawbacks_minor bigint, paid_minor bigint
)
language plpgsql stable parallel restricted
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $function$
#variable_conflict use_column
begin
  return query
  select
    f.key, f.currency, sum(f.clicks), sum(f.referrals), sum(f.leads), sum(f.customers), sum(f.sales),
    program.bigint_sum(f.revenue_minor), program.bigint_sum(f.refunds_minor), program.bigint_sum(f.commissions_minor),
    program.bigint_sum(f.clawbacks_minor), program.bigint_sum(f.paid_minor)
  from (
    select f.*, %s as key
    from program.report_fact f
    where f.organization_id = %1$I.organization_id
      and f.program_id = %1$I.program_id
      and f.noun = any(%1$I.nouns)
      and f.at >= %1$I.first
      and f.at < %1$I.after
      and (f.noun <> 'click' or (f.id >= %1$I.first_click collate "C" and f.id < %1$I.after_click collate "C"))
  ) f
  group by 1, 2;
end
$function$
      $create$,
      'report_sums_by_' || name, case name when 'all' then '''''' else format('coalesce(f.%I, '''')', name) end
    );
  end loop;
end
$do$;
