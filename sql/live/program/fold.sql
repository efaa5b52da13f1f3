-- Counts for lists, statistics and reports are kept in sums as of a snapshot (program.fold), which a worker advances. A row is its own note: a reader
-- adds the rows that the snapshot does not see, found by the transaction that inserted them, so that an insert writes nothing besides. An update or
-- delete of a counted row notes its counts before and after. A note counts if its row is in the sums, because else the reader finds the row as it is.
-- One statement sees one snapshot, the rows beyond it and the notes about those within it: its count is exact at every moment. The worker that folds
-- has written none of the rows: its own transaction is not in its snapshot.

-- Each organization's sums begin empty.
create or replace function program.begin_folds() returns trigger
language plpgsql
as $$
begin
  insert into program.fold (organization_id, sums) values (new.id, 'tallies'), (new.id, 'reports'), (new.id, 'mails');
  return null;
end
$$;
create or replace trigger begin_folds after insert on core.organization for each row execute function program.begin_folds();

-- Adopts a dump that was restored: see core.adopt().
create or replace procedure program.adopt_restored()
language sql
as $$
  select program.fold_counts_of(f.organization_id), program.fold_facts_of(f.organization_id) from program.fold f where f.sums = 'reports';
  update program.fold set seen = pg_current_snapshot();
$$;
