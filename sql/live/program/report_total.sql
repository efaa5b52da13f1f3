-- The notes folded into sums: for each dimension of reports, key and span of time one row. A report adds up the fewest spans that its window
-- consists of, what is not folded yet, and the facts themselves at both ends of the window.

-- Folds up to so many notes into their sums, and gives how many there were.
create or replace function program.fold_reports(most integer) returns bigint
language sql volatile
as $$
  with taken as materialized (
    delete from program.report_change
    where ctid = any(array(select c.ctid from program.report_change c limit most for update skip locked))
    returning *
  ),
  finest as materialized (
    select
      t.organization_id, t.program_id, k.dimension, date_bin(make_interval(mins => s.minutes), t.at, 'epoch') as starts_at, k.key,
      t.currency, sum(t.sign * t.clicks) as clicks, sum(t.sign * t.referrals) as referrals, sum(t.sign * t.leads) as leads,
      sum(t.sign * t.customers) as customers, sum(t.sign * t.sales) as sales, sum(t.sign * t.revenue_minor) as revenue_minor,
      sum(t.sign * t.refunds_minor) as refunds_minor, sum(t.sign * t.commissions_minor) as commissions_minor,
      sum(t.sign * t.clawbacks_minor) as clawbacks_minor, sum(t.sign * t.paid_minor) as paid_minor
    from taken t
    cross join lateral program.report_keys(
      t.noun, t.partner_id, t.link_id, t.coupon_id, t.country, t.landing_page, t.product_id, t.customer_id
    ) k
    join program.report_spans() s on s.dimension = k.dimension and s.is_finest
    group by t.organization_id, t.program_id, k.dimension, date_bin(make_interval(mins => s.minutes), t.at, 'epoch'), k.key, t.currency
  ),
  folded as (
    insert into program.report_total as f (
      organization_id, program_id, dimension, minutes, starts_at, key, currency,
      clicks, referrals, leads, customers, sales, revenue_minor, refunds_minor, commissions_minor, clawbacks_minor, paid_minor
    )
    select
      n.organization_id, n.program_id, n.dimension, s.minutes, date_bin(make_interval(mins => s.minutes), n.starts_at, 'epoch'), n.key,
      n.currency, nullif(sum(n.clicks), 0), nullif(sum(n.referrals), 0), nullif(sum(n.leads), 0), nullif(sum(n.customers), 0),
      nullif(sum(n.sales), 0), nullif(sum(n.revenue_minor), 0), nullif(sum(n.refunds_minor), 0), nullif(sum(n.commissions_minor), 0),
      nullif(sum(n.clawbacks_minor), 0), nullif(sum(n.paid_minor), 0)
    from finest n
    join program.report_spans() s on s.dimension = n.dimension
    group by 1, 2, 3, 4, 5, 6, 7
    order by 1, 2, 3, 4, 5, 6, 7
    on conflict (organization_id, program_id, dimension, minutes, starts_at, key, currency) do update
    set
      clicks = nullif(coalesce(f.clicks, 0) + coalesce(excluded.clicks, 0), 0),
      referrals = nullif(coalesce(f.referrals, 0) + coalesce(excluded.referrals, 0), 0),
      leads = nullif(coalesce(f.leads, 0) + coalesce(excluded.leads, 0), 0),
      customers = nullif(coalesce(f.customers, 0) + coalesce(excluded.customers, 0), 0),
      sales = nullif(coalesce(f.sales, 0) + coalesce(excluded.sales, 0), 0),
      revenue_minor = nullif(coalesce(f.revenue_minor, 0) + coalesce(excluded.revenue_minor, 0), 0),
      refunds_minor = nullif(coalesce(f.refunds_minor, 0) + coalesce(excluded.refunds_minor, 0), 0),
      commissions_minor = nullif(coalesce(f.commissions_minor, 0) + coalesce(excluded.commissions_minor, 0), 0),
      clawbacks_minor = nullif(coalesce(f.clawbacks_minor, 0) + coalesce(excluded.clawbacks_minor, 0), 0),
      paid_minor = nullif(coalesce(f.paid_minor, 0) + coalesce(excluded.paid_minor, 0), 0)
  )
  select count(*) from taken
$$;
