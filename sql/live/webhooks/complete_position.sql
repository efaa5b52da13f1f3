-- Up to where the event log is complete. A transaction draws its positions just before it commits, so that one with a higher position may
-- commit first: who then went on from the highest position that is visible would miss the lower one.
--
-- Before it draws positions, a transaction takes an advisory lock in shared mode, whose key holds the last position drawn so far: all of its
-- own are above that. It lets go of the lock once its events are visible, or rolled back. So every position up to the lowest of these keys
-- has come to its end; up to the last position drawn, where nobody holds one. Writers and readers never wait for each other.

-- The upper bits are the organization's, so that its events wait for no other one's; two that share them merely wait for each other.
create or replace function webhooks.writer_lock_key(organization text, last_position bigint) returns bigint
language sql immutable
return ((hashtext(organization) & 32767)::bigint << 48) | last_position;

create or replace function webhooks.last_position() returns bigint
language sql volatile
begin atomic
  select case when p.is_called then p.last_value else p.last_value - 1 end from webhooks.event_position p;
end;

-- The transactions that may still draw positions: the upper bits of their organization, and the position that all of theirs are above.
create or replace function webhooks.open_writers() returns table (organization_bits bigint, last_position bigint)
language sql volatile
as $$
  select writer.key >> 48, writer.key & ((1::bigint << 48) - 1)
  from pg_locks l
  cross join lateral (select (l.classid::bigint << 32) | l.objid::bigint) as writer (key)
  where l.locktype = 'advisory'
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.objsubid = 1 -- the key is one bigint
    and l.mode = 'ShareLock'
$$;

-- Must be asked in a statement before the one that reads events: what is complete now is visible to that one.
create or replace function webhooks.complete_position(organization text) returns bigint
language plpgsql volatile
as $$
declare
  -- Before the locks are looked at: a transaction that takes one later draws higher positions.
  last_drawn constant bigint := webhooks.last_position();
begin
  return least(
    last_drawn,
    (select min(w.last_position) from webhooks.open_writers() w where w.organization_bits = hashtext(organization) & 32767)
  );
end
$$;
