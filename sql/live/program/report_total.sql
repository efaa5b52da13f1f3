-- The notes folded into sums: for each dimension of reports, key and span of time one row. A report adds up the fewest spans that its window
-- consists of, what is not folded yet, and the facts themselves at both ends of the window.

-- Moves the sums of an organization on to the snapshot of one statement, and gives how many facts it added. One statement after the other: each sees
-- the numbers of slices and keys that another fold has given meanwhile. A key's number is read by its index for each key: what a join with all keys
-- takes hangs on statistics, which say nothing of the keys of today.
create or replace function program.fold_facts_of(organization text) returns bigint
language plpgsql volatile
as $$
declare
  taken bigint;
  sums program.report_sum[];
begin
  perform from program.fold f where f.organization_id = organization and f.sums = 'reports' for update skip locked;
  if not found then
    return 0;
  end if;
  with note as materialized (
    select u.*, program.report_kind(u.noun) as kind,
      -- A time in the distant past or future counts at its edge: it must not fail the rest.
      greatest(-1e9, least(1e9, floor(extract(epoch from u.at) / 60)))::integer as minute
    from program.unfolded_facts(organization) u
  ),
  noted as (
    delete from program.report_note n where n.organization_id = organization
  ),
  moved as (
    update program.fold f set seen = pg_current_snapshot()
    where f.organization_id = organization and f.sums = 'reports' and exists (select from note)
  ),
  span as materialized (
    select s.dimension, s.minutes from program.report_spans() s where s.is_finest
  ),
  -- Facts with the same keys are added up before each row becomes one for each dimension. Customers, of whom most have one note, are added up apart.
  alike as (
    select
      t.organization_id, t.program_id, t.kind, t.minute / 15 * 15 as minute, t.partner_id, t.link_id, t.coupon_id,
      t.country, t.landing_page, t.product_id, t.currency,
      sum(t.sign * t.clicks) as clicks, sum(t.sign * t.referrals) as referrals, sum(t.sign * t.leads) as leads,
      sum(t.sign * t.customers) as customers, sum(t.sign * t.sales) as sales, sum(t.sign * t.revenue_minor) as revenue_minor,
      sum(t.sign * t.refunds_minor) as refunds_minor, sum(t.sign * t.commissions_minor) as commissions_minor,
      sum(t.sign * t.clawbacks_minor) as clawbacks_minor, sum(t.sign * t.paid_minor) as paid_minor
    from note t
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
  ),
  total as (
    select
      a.organization_id, a.program_id, k.dimension, a.minute / s.minutes * s.minutes as starts_in, k.key, a.currency,
      program.bigint_sum(a.clicks) as clicks, program.bigint_sum(a.referrals) as referrals, program.bigint_sum(a.leads) as leads,
      program.bigint_sum(a.customers) as customers, program.bigint_sum(a.sales) as sales, sum(a.revenue_minor) as revenue_minor,
      sum(a.refunds_minor) as refunds_minor, sum(a.commissions_minor) as commissions_minor, sum(a.clawbacks_minor) as clawbacks_minor,
      sum(a.paid_minor) as paid_minor
    from alike a
    cross join lateral program.report_keys(a.kind, a.partner_id, a.link_id, a.coupon_id, a.country, a.landing_page, a.product_id, null) k
    join span s on s.dimension = k.dimension
    where k.dimension <> 'customer_id'
    group by 1, 2, 3, 4, 5, 6
    union all
    select
      t.organization_id, t.program_id, s.dimension, t.minute / s.minutes * s.minutes, coalesce(t.customer_id, ''), t.currency,
      sum(t.sign * t.clicks), sum(t.sign * t.referrals), sum(t.sign * t.leads), sum(t.sign * t.customers), sum(t.sign * t.sales),
      sum(t.sign * t.revenue_minor), sum(t.sign * t.refunds_minor), sum(t.sign * t.commissions_minor), sum(t.sign * t.clawbacks_minor),
      sum(t.sign * t.paid_minor)
    from note t
    join span s on s.dimension = 'customer_id'
    where t.kind = 'sale'
    group by 1, 2, 3, 4, 5, 6
  )
  select
    (select count(*) from note),
    array(
      select row(
        t.organization_id, t.program_id, t.dimension, t.starts_in, t.key, t.currency, t.clicks, t.referrals, t.leads, t.customers, t.sales,
        t.revenue_minor, t.refunds_minor, t.commissions_minor, t.clawbacks_minor, t.paid_minor,
        (
          select k.id from program.report_key k
          where (k.organization_id, k.program_id, k.dimension, k.key) = (t.organization_id, t.program_id, t.dimension, t.key)
        )
      )::program.report_sum
      from total t
    )
  into taken, sums;
  if taken = 0 then
    return 0;
  end if;

  insert into program.report_slice (organization_id, program_id, dimension, minutes)
  select p.organization_id, p.program_id, s.dimension, s.minutes
  from (select distinct n.organization_id, n.program_id from unnest(sums) n) p
  cross join program.report_spans() s
  where not exists (
    select from program.report_slice e
    where (e.organization_id, e.program_id, e.dimension, e.minutes) = (p.organization_id, p.program_id, s.dimension, s.minutes)
  )
  order by 1, 2, 3, 4
  on conflict do nothing;

  insert into program.report_key (organization_id, program_id, dimension, key)
  select distinct n.organization_id, n.program_id, n.dimension, n.key
  from unnest(sums) n
  where n.key_id is null
  order by 1, 2, 3, 4
  on conflict do nothing;

  with finest as materialized (
    select
      n.*,
      case
        when n.key_id is null then (
          select k.id from program.report_key k
          where (k.organization_id, k.program_id, k.dimension, k.key) = (n.organization_id, n.program_id, n.dimension, n.key)
        )
        else n.key_id
      end as number
    from unnest(sums) n
  )
  insert into program.report_total as f (
    slice_id, starts_in, key_id, organization_id, currency,
    clicks, referrals, leads, customers, sales, revenue_minor, refunds_minor, commissions_minor, clawbacks_minor, paid_minor
  )
  select
    s.id, n.starts_in / s.minutes * s.minutes, n.number, n.organization_id, n.currency,
    nullif(sum(n.clicks), 0), nullif(sum(n.referrals), 0), nullif(sum(n.leads), 0), nullif(sum(n.customers), 0), nullif(sum(n.sales), 0),
    nullif(sum(n.revenue_minor), 0), nullif(sum(n.refunds_minor), 0), nullif(sum(n.commissions_minor), 0), nullif(sum(n.clawbacks_minor), 0),
    nullif(sum(n.paid_minor), 0)
  from finest n
  join program.report_slice s on (s.organization_id, s.program_id, s.dimension) = (n.organization_id, n.program_id, n.dimension)
  group by 1, 2, 3, 4, 5
  order by 1, 2, 3, 5
  on conflict (slice_id, starts_in, key_id, currency) do update
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
    paid_minor = nullif(coalesce(f.paid_minor, 0) + coalesce(excluded.paid_minor, 0), 0);

  return taken;
end
$$;

-- Folds the facts of one organization after the other until so many are added, and gives how many there were.
create or replace function program.fold_reports(most integer) returns bigint
language plpgsql volatile
as $$
declare
  organization text;
  added bigint := 0;
begin
  for organization in
    select f.organization_id from program.fold f where f.sums = 'reports'
  loop
    added := added + program.fold_facts_of(organization);
    exit when added >= most;
  end loop;
  return added;
end
$$;

-- Drops the sums of programs. Their slices and keys stay.
create or replace function program.drop_report_totals(programs text[]) returns void
language plpgsql volatile
as $$
declare
  slices integer[] := array(select s.id from program.report_slice s where s.program_id = any(programs));
begin
  delete from program.report_total t where t.slice_id = any(slices);
end
$$;
