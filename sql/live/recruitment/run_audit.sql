-- Invariants of searches, scans and reveals: one row for each violation.
create or replace function recruitment.run_audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'a run has spent what its pages were reserved with', r.organization_id, r.id,
    format('%s millionths, its pages %s', r.spent_micros, coalesce(p.price_micros, 0))
  from recruitment.run r
  left join (
    select x.organization_id, x.run_id, sum(x.price_micros) as price_micros
    from recruitment.run_page x
    group by x.organization_id, x.run_id
  ) as p on p.organization_id = r.organization_id and p.run_id = r.id
  where r.spent_micros <> coalesce(p.price_micros, 0)

  union all
  select 'a month has spent what its pages were reserved with', m.organization_id, m.month::text,
    format('%s millionths, its pages %s', m.spent_micros, coalesce(p.price_micros, 0))
  from recruitment.spending m
  left join (
    select x.organization_id, date_trunc('month', x.reserved_at at time zone 'UTC')::date as month, sum(x.price_micros) as price_micros
    from recruitment.run_page x
    group by 1, 2
  ) as p on p.organization_id = m.organization_id and p.month = m.month
  where m.spent_micros <> coalesce(p.price_micros, 0)

  union all
  select 'credits taken for runs are those that the runs took', r.organization_id, r.id,
    format('the credit is %s, the ledger says %s', r.credit, coalesce(e.amount, 0))
  from recruitment.run r
  left join (
    select x.organization_id, coalesce(x.search_id, x.scan_id) as run_id, sum(x.amount) as amount, count(*) as entries
    from recruitment.credit_entry x
    where x.reason in ('search', 'scan')
    group by 1, 2
  ) as e on e.organization_id = r.organization_id and e.run_id = r.id
  where coalesce(e.amount, 0) <> case r.credit when 'taken' then -1 else 0 end
    or coalesce(e.entries, 0) <> case r.credit when 'taken' then 1 when 'refunded' then 2 else 0 end

  union all
  select 'credits are taken for runs that exist', e.organization_id, e.id, format('entry %s', e.number)
  from recruitment.credit_entry e
  where e.reason in ('search', 'scan')
    and not exists (
      select from recruitment.run r
      where r.organization_id = e.organization_id and r.id = coalesce(e.search_id, e.scan_id)
    )

  union all
  select 'the credit of a reveal is as the ledger says', v.organization_id, v.prospect_id,
    format('the credit is %s, the last entry %s', v.credit, coalesce(e.kind, 'is missing'))
  from recruitment.reveal v
  left join (
    select v.organization_id, v.prospect_id,
      (array_agg(x.kind order by x.number desc))[1] as kind
    from recruitment.reveal v
    join recruitment.credit_entry x
      on x.organization_id = v.organization_id and x.prospect_id = v.prospect_id
    where x.reason = 'reveal' and x.created_at >= v.created_at
    group by v.organization_id, v.prospect_id
  ) as e on e.organization_id = v.organization_id and e.prospect_id = v.prospect_id
  where e.kind is distinct from case v.credit when 'taken' then 'spend' when 'refunded' then 'refund' end

  union all
  select 'a run that ended waits for no page', r.organization_id, r.id, format('page %s is reserved', p.number)
  from recruitment.run r
  join recruitment.run_page p on p.organization_id = r.organization_id and p.run_id = r.id
  where r.state in ('done', 'stopped_at_ceiling', 'failed') and p.state = 'reserved'

  union all
  select 'a scan knows how many visits are left', r.organization_id, r.id, format('%s of %s, there are %s', r.visits_left, r.visits, v.open)
  from recruitment.run r
  join (
    select x.organization_id, x.run_id, count(*) as open
    from recruitment.visit x
    where x.done_at is null
    group by x.organization_id, x.run_id
  ) as v on v.organization_id = r.organization_id and v.run_id = r.id
  where r.state = 'running' and r.visits > 0 and r.visits_left < v.open
$$;
comment on function recruitment.run_audit() is 'The invariants of searches, scans and reveals; a clean database gives no row.';
