-- The entries of each commission sum to what it is.
create or replace function program.audit_commission_entries()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  with entered as (
    select
      e.organization_id, e.commission_id,
      coalesce(sum(e.amount_minor) filter (where e.kind <> 'paid'), 0) as counted_minor,
      coalesce(-sum(e.amount_minor) filter (where e.kind = 'paid'), 0) as paid_minor
    from program.commission_entry e
    group by e.organization_id, e.commission_id
  ),
  counted as (
    select
      c.organization_id, c.id as commission_id,
      program.counted_minor(c.amount_minor, c.status, c.deleted_at) as counted_minor,
      case when c.status = 'paid' then program.counted_minor(c.amount_minor, c.status, c.deleted_at) else 0 end as paid_minor
    from program.commission c
  )
  select
    'the entries of a commission sum to what it counts and what was paid',
    coalesce(c.organization_id, e.organization_id), coalesce(c.commission_id, e.commission_id),
    format(
      'it counts %s, of which %s is paid, and its entries sum to %s and %s',
      coalesce(c.counted_minor, 0), coalesce(c.paid_minor, 0), coalesce(e.counted_minor, 0), coalesce(e.paid_minor, 0)
    )
  from counted c
  full join entered e on e.organization_id = c.organization_id and e.commission_id = c.commission_id
  where coalesce(c.counted_minor, 0) <> coalesce(e.counted_minor, 0) or coalesce(c.paid_minor, 0) <> coalesce(e.paid_minor, 0)
$$;
