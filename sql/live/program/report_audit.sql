-- Recounts the sums of reports: the facts that the snapshot sees, less the notes about them since. A clean database gives no row.
create or replace function program.audit_reports()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  with noted as (
    select 1 as sign, r.*
    from program.report_fact r
    join program.fold f on f.organization_id = r.organization_id and f.sums = 'reports' and pg_visible_in_snapshot(r.inserted_in, f.seen)
    union all
    select -n.sign, n.organization_id, n.program_id, n.noun, n.id, n.sale_id, n.at, n.partner_id, n.link_id, n.coupon_id, n.country, n.landing_page,
      n.product_id, n.customer_id, n.currency, n.clicks, n.referrals, n.leads, n.customers, n.sales, n.revenue_minor, n.refunds_minor,
      n.commissions_minor, n.clawbacks_minor, n.paid_minor, n.inserted_in
    from program.report_note n
    join program.fold f on f.organization_id = n.organization_id and f.sums = 'reports' and pg_visible_in_snapshot(n.inserted_in, f.seen)
  ),
  -- The facts that should be in the sums, by the shortest span of each dimension.
  finest as (
    select n.organization_id, n.program_id, k.dimension, s.minutes, date_bin(make_interval(mins => s.minutes), n.at, 'epoch') as starts_at,
      k.key, n.currency, sum(n.sign * n.clicks) as clicks, sum(n.sign * n.referrals) as referrals, sum(n.sign * n.leads) as leads,
      sum(n.sign * n.customers) as customers, sum(n.sign * n.sales) as sales, sum(n.sign * n.revenue_minor) as revenue_minor,
      sum(n.sign * n.refunds_minor) as refunds_minor, sum(n.sign * n.commissions_minor) as commissions_minor,
      sum(n.sign * n.clawbacks_minor) as clawbacks_minor, sum(n.sign * n.paid_minor) as paid_minor
    from noted n
    cross join lateral program.report_keys(
      n.noun, n.partner_id, n.link_id, n.coupon_id, n.country, n.landing_page, n.product_id, n.customer_id
    ) k
    join program.report_spans() s on s.dimension = k.dimension and s.is_finest
    group by 1, 2, 3, 4, 5, 6, 7
  ),
  difference as (
    select n.organization_id, n.program_id, n.dimension, s.minutes, date_bin(make_interval(mins => s.minutes), n.starts_at, 'epoch') as starts_at,
      n.key, n.currency, n.clicks, n.referrals, n.leads, n.customers, n.sales, n.revenue_minor, n.refunds_minor, n.commissions_minor,
      n.clawbacks_minor, n.paid_minor
    from finest n
    join program.report_spans() s on s.dimension = n.dimension
    union all
    select s.organization_id, s.program_id, s.dimension, s.minutes, to_timestamp(t.starts_in * 60.0), k.key, t.currency, -t.clicks, -t.referrals, -t.leads,
      -t.customers, -t.sales, -t.revenue_minor, -t.refunds_minor, -t.commissions_minor, -t.clawbacks_minor, -t.paid_minor
    from program.report_total t
    join program.report_slice s on s.id = t.slice_id
    join program.report_key k on k.id = t.key_id
  )
  select 'the sums of reports are what they are counted from', d.organization_id, d.program_id,
    format('%s %s in the %s minutes from %s', coalesce(nullif(d.dimension, ''), 'all'), d.key, d.minutes, d.starts_at)
  from difference d
  where exists (
    select from program.program p where p.organization_id = d.organization_id and p.id = d.program_id and p.reports_ready
  )
  group by d.organization_id, d.program_id, d.dimension, d.minutes, d.starts_at, d.key, d.currency
  having num_nonnulls(
    nullif(sum(d.clicks), 0), nullif(sum(d.referrals), 0), nullif(sum(d.leads), 0), nullif(sum(d.customers), 0), nullif(sum(d.sales), 0),
    nullif(sum(d.revenue_minor), 0), nullif(sum(d.refunds_minor), 0), nullif(sum(d.commissions_minor), 0),
    nullif(sum(d.clawbacks_minor), 0), nullif(sum(d.paid_minor), 0)
  ) > 0
$$;
comment on function program.audit_reports() is 'The sums of reports recounted; a clean database gives no row.';
