-- Who says by itself which transaction changes a commission, as a batch does for thousands at a time, is spared the call of the function.
create or replace trigger change_noted before update on program.commission
for each row when (new.changed_in is distinct from pg_current_xact_id()) execute function core.note_change();
