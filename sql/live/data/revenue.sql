-- Revenue of customers over time, and the part that is refunded.

create or replace view data.cohort_revenue with (security_barrier = true) as
select
  s.program_id,
  date_trunc('month', c.converted_at at time zone 'UTC')::date as cohort,
  (
    (extract(year from s.occurred_at at time zone 'UTC') - extract(year from c.converted_at at time zone 'UTC')) * 12
    + extract(month from s.occurred_at at time zone 'UTC') - extract(month from c.converted_at at time zone 'UTC')
  )::integer as months_since,
  s.currency,
  count(distinct s.customer_id) as customers,
  count(*) as sales,
  sum(s.amount_minor)::bigint as revenue_minor,
  sum(s.refunded_minor)::bigint as refunded_minor,
  sum(s.amount_minor - s.refunded_minor)::bigint as net_revenue_minor
from program.sale s
join program.customer c on c.organization_id = s.organization_id and c.id = s.customer_id
where s.organization_id = (select data.organization_id()) and s.deleted_at is null and c.converted_at is not null
group by 1, 2, 3, 4;
comment on view data.cohort_revenue is 'Revenue by the month (UTC) in which customers first paid, and by the months since then. Erased customers are still counted.';
comment on column data.cohort_revenue.program_id is 'The program (prg_).';
comment on column data.cohort_revenue.cohort is 'The first day of the month (UTC) in which the customers first paid.';
comment on column data.cohort_revenue.months_since is 'Calendar months from the cohort''s month to that of the sales: 0 is the same month. Negative: sales that were recorded late.';
comment on column data.cohort_revenue.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.cohort_revenue.customers is 'Customers of the cohort who paid in that month.';
comment on column data.cohort_revenue.sales is 'Their sales.';
comment on column data.cohort_revenue.revenue_minor is 'What they were charged, in minor units.';
comment on column data.cohort_revenue.refunded_minor is 'What was refunded of these sales so far, in minor units.';
comment on column data.cohort_revenue.net_revenue_minor is 'revenue_minor less refunded_minor.';

create or replace view data.refund_rate with (security_barrier = true) as
select
  s.program_id,
  s.partner_id,
  date_trunc('month', s.occurred_at at time zone 'UTC')::date as month,
  s.currency,
  count(*) as sales,
  count(*) filter (where s.refunded_minor > 0) as refunded_sales,
  sum(s.amount_minor)::bigint as amount_minor,
  sum(s.refunded_minor)::bigint as refunded_minor,
  -- Half away from zero, in integers.
  case when sum(s.amount_minor) = 0 then 0 else div(sum(s.refunded_minor) * 20000 + sum(s.amount_minor), sum(s.amount_minor) * 2) end::bigint
    as refund_rate_bps
from program.sale s
where s.organization_id = (select data.organization_id()) and s.deleted_at is null
group by 1, 2, 3, 4;
comment on view data.refund_rate is 'How much of what was charged was refunded so far, by partner and by the month (UTC) of the sales.';
comment on column data.refund_rate.program_id is 'The program (prg_).';
comment on column data.refund_rate.partner_id is 'The partner who is credited (part_). Null: nobody.';
comment on column data.refund_rate.month is 'The first day of the month (UTC) in which the sales occurred.';
comment on column data.refund_rate.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.refund_rate.sales is 'How many sales.';
comment on column data.refund_rate.refunded_sales is 'Sales that were refunded in whole or in part.';
comment on column data.refund_rate.amount_minor is 'What was charged, in minor units.';
comment on column data.refund_rate.refunded_minor is 'What was refunded of it so far, in minor units.';
comment on column data.refund_rate.refund_rate_bps is 'refunded_minor as a share of amount_minor, in basis points: 250 is 2.5 %.';
