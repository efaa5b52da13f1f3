-- What a program, partner, link, coupon, group or organization has, without counting it: each write notes what it changes in
-- program.tally_change, and a job folds the notes into one row a subject in program.tally. The triggers that note are in migration 0022, one
-- function a table in tally_change.sql, and what the audit recounts in tally_audit.sql.

-- What belongs to a subject up to now: tallies and notes together. One statement sees a note, or the tally that holds it.
create or replace view program.total with (security_invoker = true) as
select t.organization_id, t.subject_id, t.noun, t.kind, t.rows, t.amount_minor
from program.tally t
union all
select c.organization_id, c.subject_id, c.noun, c.kind, c.rows, c.amount_minor::numeric
from program.tally_change c;
comment on view program.total is
  'How many rows of a noun belong to a program, partner, link, coupon or group, and what they come to: the sum of its rows here.';
grant select on program.total to rail_api;

-- The totals of some subjects. Always by the indexes: a statement that was planned while there were no notes would read all of them for
-- each subject when there are many.
create or replace function program.totals_of(organization_id text, subjects text[]) returns setof program.total
language sql stable
set enable_seqscan = off
as $$
  select t.* from program.total t where t.organization_id = totals_of.organization_id and t.subject_id = any(totals_of.subjects)
$$;

-- Folds up to so many notes into their tallies, and gives how many there were.
create or replace function program.fold_tallies(most integer) returns bigint
language sql volatile
as $$
  with taken as (
    delete from program.tally_change
    where ctid = any(array(select c.ctid from program.tally_change c limit most for update skip locked))
    returning organization_id, subject_id, noun, kind, rows, amount_minor
  ),
  folded as (
    insert into program.tally as f (organization_id, subject_id, noun, kind, rows, amount_minor)
    select t.organization_id, t.subject_id, t.noun, t.kind, sum(t.rows), sum(t.amount_minor)
    from taken t
    group by t.organization_id, t.subject_id, t.noun, t.kind
    order by 1, 2, 3, 4
    on conflict (organization_id, subject_id, noun, kind) do update
    set rows = f.rows + excluded.rows, amount_minor = f.amount_minor + excluded.amount_minor
  )
  select count(*) from taken
$$;
