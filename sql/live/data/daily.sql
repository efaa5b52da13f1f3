-- Rollups by day (UTC). They are read from the rows, so that they are exact at any moment. A filter by day cannot use an index behind row-level
-- security; one by created_at or id on the rows themselves can.

create or replace view data.click_daily with (security_barrier = true) as
select
  (c.created_at at time zone 'UTC')::date as day,
  c.program_id,
  c.partner_id,
  c.link_id,
  c.country,
  count(*) as clicks,
  count(c.referral_id) as credited_clicks
from program.click c
where c.organization_id = (select data.organization_id())
group by 1, 2, 3, 4, 5;
comment on view data.click_daily is 'Clicks by day (UTC), partner, link and country.';
comment on column data.click_daily.day is 'The day (UTC) of the clicks.';
comment on column data.click_daily.program_id is 'The program (prg_).';
comment on column data.click_daily.partner_id is 'The partner (part_).';
comment on column data.click_daily.link_id is 'The link (lnk_). Null: the visitors came by the partner''s handle.';
comment on column data.click_daily.country is 'ISO 3166-1 alpha-2 country code. Null: not given.';
comment on column data.click_daily.clicks is 'All clicks.';
comment on column data.click_daily.credited_clicks is 'Clicks that are credited to a referral.';

create or replace view data.sale_daily with (security_barrier = true) as
select
  (s.occurred_at at time zone 'UTC')::date as day,
  s.program_id,
  s.partner_id,
  s.product_id,
  s.currency,
  count(*) as sales,
  count(*) filter (where s.is_first_sale) as first_sales,
  sum(s.amount_minor)::bigint as amount_minor,
  sum(s.net_amount_minor)::bigint as net_amount_minor,
  sum(s.refunded_minor)::bigint as refunded_minor
from program.sale s
where s.organization_id = (select data.organization_id()) and s.deleted_at is null
group by 1, 2, 3, 4, 5;
comment on view data.sale_daily is 'Sales by day (UTC) on which they occurred, partner, product and currency, those of nobody included.';
comment on column data.sale_daily.day is 'The day (UTC) on which the sales occurred.';
comment on column data.sale_daily.program_id is 'The program (prg_).';
comment on column data.sale_daily.partner_id is 'The partner who is credited (part_). Null: nobody.';
comment on column data.sale_daily.product_id is 'Your id of the product. Null: not given.';
comment on column data.sale_daily.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.sale_daily.sales is 'How many sales.';
comment on column data.sale_daily.first_sales is 'Of them: the first of their customers.';
comment on column data.sale_daily.amount_minor is 'What was charged, in minor units.';
comment on column data.sale_daily.net_amount_minor is 'Without tax, shipping, fee and discount, in minor units.';
comment on column data.sale_daily.refunded_minor is 'What was refunded of these sales so far, in minor units.';

create or replace view data.commission_daily with (security_barrier = true) as
select
  (e.posted_at at time zone 'UTC')::date as day,
  e.program_id,
  e.partner_id,
  e.currency,
  coalesce(sum(e.amount_minor) filter (where e.kind = 'earned'), 0)::bigint as earned_minor,
  coalesce(sum(e.amount_minor) filter (where e.kind = 'adjusted'), 0)::bigint as adjusted_minor,
  coalesce(sum(e.amount_minor) filter (where e.kind = 'clawed_back'), 0)::bigint as clawed_back_minor,
  coalesce(sum(e.amount_minor) filter (where e.kind = 'voided'), 0)::bigint as voided_minor,
  coalesce(sum(e.amount_minor) filter (where e.kind = 'paid'), 0)::bigint as paid_minor
from program.commission_entry e
where e.organization_id = (select data.organization_id())
group by 1, 2, 3, 4;
comment on view data.commission_daily is 'What happened to commissions by day (UTC) of posting, partner and currency. A day that has ended does not change.';
comment on column data.commission_daily.day is 'The day (UTC) on which it was posted.';
comment on column data.commission_daily.program_id is 'The program (prg_).';
comment on column data.commission_daily.partner_id is 'The partner (part_).';
comment on column data.commission_daily.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.commission_daily.earned_minor is 'Earned, in minor units.';
comment on column data.commission_daily.adjusted_minor is 'Adjusted by refunds, corrections and edits, in minor units.';
comment on column data.commission_daily.clawed_back_minor is 'Clawed back: negative, in minor units.';
comment on column data.commission_daily.voided_minor is 'Voided, rejected or deleted: negative, in minor units.';
comment on column data.commission_daily.paid_minor is 'Paid: negative, less what was returned, in minor units.';

create or replace view data.funnel_daily with (security_barrier = true) as
select
  f.day,
  f.program_id,
  f.partner_id,
  sum(f.clicks)::bigint as clicks,
  sum(f.referrals)::bigint as referrals,
  sum(f.leads)::bigint as leads,
  sum(f.customers)::bigint as customers,
  sum(f.sales)::bigint as sales
from (
  select
    (x.created_at at time zone 'UTC')::date as day, x.program_id, x.partner_id,
    count(*) as clicks, 0::bigint as referrals, 0::bigint as leads, 0::bigint as customers, 0::bigint as sales
  from program.click x
  where x.organization_id = (select data.organization_id())
  group by 1, 2, 3
  union all
  select (x.created_at at time zone 'UTC')::date, x.program_id, x.partner_id, 0, count(*), 0, 0, 0
  from program.referral x
  where x.organization_id = (select data.organization_id()) and x.deleted_at is null
  group by 1, 2, 3
  union all
  select (x.lead_at at time zone 'UTC')::date, x.program_id, x.partner_id, 0, 0, count(*), 0, 0
  from program.customer x
  where x.organization_id = (select data.organization_id()) and x.deleted_at is null and x.lead_at is not null
  group by 1, 2, 3
  union all
  select (x.converted_at at time zone 'UTC')::date, x.program_id, x.partner_id, 0, 0, 0, count(*), 0
  from program.customer x
  where x.organization_id = (select data.organization_id()) and x.deleted_at is null and x.converted_at is not null
  group by 1, 2, 3
  union all
  select (x.occurred_at at time zone 'UTC')::date, x.program_id, x.partner_id, 0, 0, 0, 0, count(*)
  from program.sale x
  where x.organization_id = (select data.organization_id()) and x.deleted_at is null and x.partner_id is not null
  group by 1, 2, 3
) as f
group by f.day, f.program_id, f.partner_id;
comment on view data.funnel_daily is 'From click to sale by day (UTC) and partner: each step counts on the day on which it happened, with today''s attribution.';
comment on column data.funnel_daily.day is 'The day (UTC).';
comment on column data.funnel_daily.program_id is 'The program (prg_).';
comment on column data.funnel_daily.partner_id is 'The partner (part_).';
comment on column data.funnel_daily.clicks is 'Clicks on this day.';
comment on column data.funnel_daily.referrals is 'New visitors on this day.';
comment on column data.funnel_daily.leads is 'Customers who signed up on this day. Erased ones are not counted.';
comment on column data.funnel_daily.customers is 'Customers who first paid on this day. Erased ones are not counted.';
comment on column data.funnel_daily.sales is 'Sales that occurred on this day.';
