-- Rollups by day (UTC). They are read from the rows, so that they are exact at any moment. Each has the days between the first row and the last
-- one, and reads the rows of each of them by an index: a condition on the day leaves days out before their rows are read. (One on a time that is
-- computed from rows could not use an index behind row-level security, because the functions that compute it are not leakproof; what
-- `core.days_between` gives are columns.) Clicks are found by their ids. The days come newest first, so that the first rows of a list in this order
-- are computed without those of other days.

create or replace view data.click_daily with (security_barrier = true) as
select d.day, d.program_id, c.partner_id, c.link_id, c.country, c.clicks, c.credited_clicks
from (
  select p.id as program_id, d.day, d.starts_at, d.ends_at, d.first_id, d.after_id
  from program.program p
  cross join lateral core.days_between(
    (select c.created_at - interval '2 hours' from program.click c where c.organization_id = (select data.organization_id()) and c.program_id = p.id order by c.id limit 1),
    (select c.created_at + interval '2 hours' from program.click c where c.organization_id = (select data.organization_id()) and c.program_id = p.id order by c.id desc limit 1),
    'clk'
  ) as d
  where p.organization_id = (select data.organization_id())
  order by d.day desc, p.id desc
) as d
cross join lateral (
  select c.partner_id, c.link_id, c.country, count(*) as clicks, count(c.referral_id) as credited_clicks
  from program.click c
  where c.organization_id = (select data.organization_id()) and c.program_id = d.program_id
    and c.id >= d.first_id and c.id < d.after_id and c.created_at >= d.starts_at and c.created_at < d.ends_at and not c.is_bot
  group by 1, 2, 3
) as c;
comment on view data.click_daily is 'Clicks by day (UTC), partner, link and country. Those of bots are left out.';
comment on column data.click_daily.day is 'The day (UTC) of the clicks.';
comment on column data.click_daily.program_id is 'The program (prg_).';
comment on column data.click_daily.partner_id is 'The partner (part_).';
comment on column data.click_daily.link_id is 'The link (lnk_). Null: the visitors came by the partner''s handle.';
comment on column data.click_daily.country is 'ISO 3166-1 alpha-2 country code. Null: not given.';
comment on column data.click_daily.clicks is 'All clicks but those of bots.';
comment on column data.click_daily.credited_clicks is 'Clicks that are credited to a referral.';

create or replace view data.sale_daily with (security_barrier = true) as
select d.day, d.program_id, s.partner_id, s.product_id, s.currency, s.sales, s.first_sales, s.amount_minor, s.net_amount_minor, s.refunded_minor
from (
  select p.id as program_id, d.day, d.starts_at, d.ends_at
  from program.program p
  cross join lateral core.days_between(
    (select s.occurred_at from program.sale s where s.organization_id = (select data.organization_id()) and s.program_id = p.id and s.deleted_at is null order by s.occurred_at limit 1),
    (select s.occurred_at from program.sale s where s.organization_id = (select data.organization_id()) and s.program_id = p.id and s.deleted_at is null order by s.occurred_at desc limit 1)
  ) as d
  where p.organization_id = (select data.organization_id())
  order by d.day desc, p.id desc
) as d
cross join lateral (
  select
    s.partner_id,
    s.product_id,
    s.currency,
    count(*) as sales,
    count(*) filter (where s.is_first_sale) as first_sales,
    sum(s.amount_minor)::bigint as amount_minor,
    sum(s.net_amount_minor)::bigint as net_amount_minor,
    sum(s.refunded_minor)::bigint as refunded_minor
  from program.sale s
  where s.organization_id = (select data.organization_id()) and s.program_id = d.program_id and s.deleted_at is null and s.occurred_at >= d.starts_at and s.occurred_at < d.ends_at
  group by 1, 2, 3
) as s;
comment on view data.sale_daily is 'Sales by day (UTC) on which they occurred, partner, product and currency, including sales without a partner.';
comment on column data.sale_daily.day is 'The day (UTC) on which the sales occurred.';
comment on column data.sale_daily.program_id is 'The program (prg_).';
comment on column data.sale_daily.partner_id is 'The partner who is credited (part_). Null: nobody.';
comment on column data.sale_daily.product_id is 'Your id of the product. Null: not given.';
comment on column data.sale_daily.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.sale_daily.sales is 'How many sales.';
comment on column data.sale_daily.first_sales is 'Sales that were the first of their customers.';
comment on column data.sale_daily.amount_minor is 'What was charged, in minor units.';
comment on column data.sale_daily.net_amount_minor is 'What was charged, without tax, shipping, fee and discount, in minor units.';
comment on column data.sale_daily.refunded_minor is 'What was refunded of these sales so far, in minor units.';

create or replace view data.commission_daily with (security_barrier = true) as
select d.day, e.program_id, e.partner_id, e.currency, e.earned_minor, e.adjusted_minor, e.clawed_back_minor, e.voided_minor, e.paid_minor
from (
  select d.day, d.starts_at, d.ends_at
  from core.days_between(
    (select e.posted_at from program.commission_entry e where e.organization_id = (select data.organization_id()) order by e.posted_at limit 1),
    (select e.posted_at from program.commission_entry e where e.organization_id = (select data.organization_id()) order by e.posted_at desc limit 1)
  ) as d
  order by d.day desc
) as d
cross join lateral (
  select
    e.program_id,
    e.partner_id,
    e.currency,
    coalesce(sum(e.amount_minor) filter (where e.kind = 'earned'), 0)::bigint as earned_minor,
    coalesce(sum(e.amount_minor) filter (where e.kind = 'adjusted'), 0)::bigint as adjusted_minor,
    coalesce(sum(e.amount_minor) filter (where e.kind = 'clawed_back'), 0)::bigint as clawed_back_minor,
    coalesce(sum(e.amount_minor) filter (where e.kind = 'voided'), 0)::bigint as voided_minor,
    coalesce(sum(e.amount_minor) filter (where e.kind = 'paid'), 0)::bigint as paid_minor
  from program.commission_entry e
  where e.organization_id = (select data.organization_id()) and e.posted_at >= d.starts_at and e.posted_at < d.ends_at
  group by 1, 2, 3
) as e;
comment on view data.commission_daily is 'What happened to commissions by day (UTC) of posting, partner and currency. Read a day some minutes after its end, because entries are dated by the start of their transaction; it then does not change.';
comment on column data.commission_daily.day is 'The day (UTC) on which the entries were posted.';
comment on column data.commission_daily.program_id is 'The program (prg_).';
comment on column data.commission_daily.partner_id is 'The partner (part_).';
comment on column data.commission_daily.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.commission_daily.earned_minor is 'Earned, in minor units.';
comment on column data.commission_daily.adjusted_minor is 'Adjusted by refunds, corrections and edits, in minor units.';
comment on column data.commission_daily.clawed_back_minor is 'Clawed back: negative, in minor units.';
comment on column data.commission_daily.voided_minor is 'Voided, rejected or deleted: negative, in minor units.';
comment on column data.commission_daily.paid_minor is 'Payments (negative) and returned payments (positive), in minor units.';

create or replace view data.funnel_daily with (security_barrier = true) as
select d.day, d.program_id, f.partner_id, f.clicks, f.referrals, f.leads, f.customers, f.sales
from (
  select p.id as program_id, d.day, d.starts_at, d.ends_at, d.first_id, d.after_id
  from program.program p
  cross join lateral core.days_between(
    least(
      (select x.created_at - interval '2 hours' from program.click x where x.organization_id = (select data.organization_id()) and x.program_id = p.id order by x.id limit 1),
      (select x.created_at from program.referral x where x.organization_id = (select data.organization_id()) and x.program_id = p.id and x.deleted_at is null order by x.created_at limit 1),
      (select x.lead_at from program.customer x where x.organization_id = (select data.organization_id()) and x.program_id = p.id and x.deleted_at is null and x.lead_at is not null order by x.lead_at limit 1),
      (select x.converted_at from program.customer x where x.organization_id = (select data.organization_id()) and x.program_id = p.id and x.deleted_at is null and x.converted_at is not null order by x.converted_at limit 1),
      (select x.occurred_at from program.sale x where x.organization_id = (select data.organization_id()) and x.program_id = p.id and x.deleted_at is null and x.partner_id is not null order by x.occurred_at limit 1)
    ),
    greatest(
      (select x.created_at + interval '2 hours' from program.click x where x.organization_id = (select data.organization_id()) and x.program_id = p.id order by x.id desc limit 1),
      (select x.created_at from program.referral x where x.organization_id = (select data.organization_id()) and x.program_id = p.id and x.deleted_at is null order by x.created_at desc limit 1),
      (select x.lead_at from program.customer x where x.organization_id = (select data.organization_id()) and x.program_id = p.id and x.deleted_at is null and x.lead_at is not null order by x.lead_at desc limit 1),
      (select x.converted_at from program.customer x where x.organization_id = (select data.organization_id()) and x.program_id = p.id and x.deleted_at is null and x.converted_at is not null order by x.converted_at desc limit 1),
      (select x.occurred_at from program.sale x where x.organization_id = (select data.organization_id()) and x.program_id = p.id and x.deleted_at is null and x.partner_id is not null order by x.occurred_at desc limit 1)
    ),
    'clk'
  ) as d
  where p.organization_id = (select data.organization_id())
  order by d.day desc, p.id desc
) as d
cross join lateral (
  select
    x.partner_id, sum(x.clicks) as clicks, sum(x.referrals) as referrals, sum(x.leads) as leads, sum(x.customers) as customers, sum(x.sales) as sales
  from (
    select x.partner_id, 1, 0, 0, 0, 0
    from program.click x
    where x.organization_id = (select data.organization_id()) and x.program_id = d.program_id and x.id >= d.first_id and x.id < d.after_id and x.created_at >= d.starts_at and x.created_at < d.ends_at and not x.is_bot
    union all
    select x.partner_id, 0, 1, 0, 0, 0
    from program.referral x
    where x.organization_id = (select data.organization_id()) and x.program_id = d.program_id and x.deleted_at is null and x.created_at >= d.starts_at and x.created_at < d.ends_at
    union all
    select x.partner_id, 0, 0, 1, 0, 0
    from program.customer x
    where x.organization_id = (select data.organization_id()) and x.program_id = d.program_id and x.deleted_at is null and x.lead_at >= d.starts_at and x.lead_at < d.ends_at
    union all
    select x.partner_id, 0, 0, 0, 1, 0
    from program.customer x
    where x.organization_id = (select data.organization_id()) and x.program_id = d.program_id and x.deleted_at is null and x.converted_at is not null and x.converted_at >= d.starts_at and x.converted_at < d.ends_at
    union all
    select x.partner_id, 0, 0, 0, 0, 1
    from program.sale x
    where x.organization_id = (select data.organization_id()) and x.program_id = d.program_id and x.deleted_at is null and x.partner_id is not null and x.occurred_at >= d.starts_at and x.occurred_at < d.ends_at
  ) as x (partner_id, clicks, referrals, leads, customers, sales)
  group by 1
) as f;
comment on view data.funnel_daily is 'From click to sale by day (UTC) and partner: each step counts on the day on which it happened, with today''s attribution.';
comment on column data.funnel_daily.day is 'The day (UTC).';
comment on column data.funnel_daily.program_id is 'The program (prg_).';
comment on column data.funnel_daily.partner_id is 'The partner (part_).';
comment on column data.funnel_daily.clicks is 'Clicks on this day. Those of bots are left out.';
comment on column data.funnel_daily.referrals is 'Referrals that were created on this day.';
comment on column data.funnel_daily.leads is 'Customers who signed up on this day. Erased ones are not counted.';
comment on column data.funnel_daily.customers is 'Customers who first paid on this day. Erased ones are not counted.';
comment on column data.funnel_daily.sales is 'Sales of the partner that occurred on this day.';
