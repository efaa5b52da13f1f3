-- The tallies counted anew: what the snapshot sees, less what is noted of it since. A clean database gives no row.
create or replace function program.audit_tallies()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  with difference as (
    select c.organization_id, c.subject_id, c.noun, c.kind, c.rows::numeric, c.amount_minor::numeric
    from program.counted c
    join program.fold f on f.organization_id = c.organization_id and f.sums = 'tallies' and pg_visible_in_snapshot(c.inserted_in, f.seen)
    union all
    select n.organization_id, n.subject_id, n.noun, n.kind, -n.rows, -n.amount_minor
    from program.tally_note n
    join program.fold f on f.organization_id = n.organization_id and f.sums = 'tallies' and pg_visible_in_snapshot(n.inserted_in, f.seen)
    union all
    select t.organization_id, t.subject_id, t.noun, t.kind, -t.rows, -t.amount_minor
    from program.tally t
  )
  select 'a tally is what its table holds', d.organization_id, d.subject_id, format('of %s %s', d.noun, d.kind)
  from difference d
  group by d.organization_id, d.subject_id, d.noun, d.kind
  having sum(d.rows) <> 0 or sum(d.amount_minor) <> 0
$$;
comment on function program.audit_tallies() is 'The tallies recounted; a clean database gives no row.';
