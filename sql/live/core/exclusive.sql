-- Claims a kind of work for one transaction at a time; one more waits until the first has ended. False where another one waits already: it finds
-- everything that is committed by now, because it looks only then.
create or replace function core.claim_exclusive(work text) returns boolean
language plpgsql volatile
as $$
declare
  key constant integer := hashtext(work);
begin
  if pg_try_advisory_xact_lock(3, key) then
    return true;
  end if;
  if exists (
    select from pg_locks l
    where l.locktype = 'advisory' and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and l.classid = 3 and l.objid = key::oid and l.objsubid = 2 and not l.granted
  ) then
    return false;
  end if;
  perform pg_advisory_xact_lock(3, key);
  return true;
end
$$;
