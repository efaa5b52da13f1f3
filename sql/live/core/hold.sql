-- Detects that this database is an older state of itself: a dump that was restored, a base backup that was recovered to a moment, or a replica that
-- was promoted without the last commits. It has forgotten what the world has seen: emails and payouts are held until `rail resume`.

-- The identity that a restore changes: a dump gets another cluster, database or table, a recovery or promotion another timeline.
create or replace function core.here(out system_identifier bigint, out timeline integer, out database_oid bigint, out table_oid bigint)
language sql stable
as $$
  select
    c.system_identifier,
    case when not pg_is_in_recovery() then ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer end,
    (select d.oid from pg_database d where d.datname = current_database())::bigint,
    'core.cluster'::regclass::oid::bigint
  from pg_control_system() c
$$;

-- Asked by whoever sends or pays, in the transaction that claims: no process has to have noticed before. `restored_at`: what is older may have been
-- sent or paid before. `is_compared`: whether an operator has seen to payouts that are lost as a whole.
create or replace function core.hold(out is_held boolean, out restored_at timestamptz, out is_compared boolean)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce(
      bool_or(
        c.held_since is not null or c.system_identifier <> h.system_identifier or c.timeline is distinct from h.timeline
          or coalesce(c.database_oid, h.database_oid) <> h.database_oid or c.table_oid <> h.table_oid
      ),
      true
    ),
    max(coalesce(c.held_since, c.restored_at)),
    coalesce(bool_and(c.payouts_compared), false)
  from core.here() h
  left join core.cluster c on true
$$;
revoke execute on function core.hold() from public;

-- Holds emails and payouts from now on: the database is an older state of itself.
create or replace function core.hold_for(cause text) returns void
language sql
as $$
  update core.cluster c set
    system_identifier = h.system_identifier, timeline = h.timeline, database_oid = h.database_oid, table_oid = h.table_oid,
    held_for = cause, held_since = now(), payouts_compared = false,
    state_at = case when c.held_since is null then c.beat_at else c.state_at end
  from core.here() h
$$;

-- Notes that a process lives, and what Postgres is now. Each process remembers the beat that it gets and passes it as `known`.
-- Where that is more than is here, the state is an older one: a copy of the files or a disk that was put back shows nothing else.
-- A replica that was promoted has lost nothing where commits waited for a replica, and where a process that lived through it finds its last beat.
-- In another cluster nothing is noted before `rail migrate` (core.adopt()).
create or replace function core.beat(known bigint)
returns table (beat bigint, held_since timestamptz, state_at timestamptz, reason text)
language plpgsql
as $$
#variable_conflict use_column
declare
  here record;
  noted core.cluster;
begin
  select h.* into here from core.here() h;
  select c.* into noted from core.cluster c for update;
  if not found or here.timeline is null or noted.system_identifier <> here.system_identifier then
    return;
  end if;
  if noted.database_oid <> here.database_oid or noted.table_oid <> here.table_oid then
    perform core.hold_for('a dump');
  elsif noted.timeline <> here.timeline and not (noted.is_synchronous and coalesce(known <= noted.beat, false)) then
    perform core.hold_for('another timeline');
  elsif known > noted.beat then
    perform core.hold_for('an earlier beat');
  end if;
  return query
    update core.cluster c set
      timeline = here.timeline, database_oid = here.database_oid, beat = c.beat + 1, beat_at = clock_timestamp(),
      is_synchronous = current_setting('synchronous_standby_names') <> '' and current_setting('synchronous_commit') in ('on', 'remote_apply')
    returning c.beat, c.held_since, c.state_at, c.held_for;
end
$$;

-- Lets emails and payouts go on. What is older than `restored_at` is looked up before it is sent, unless nothing was lost.
create or replace function core.resume(nothing_lost boolean, compared boolean) returns void
language sql
as $$
  update core.cluster c set
    held_since = null, held_for = null,
    restored_at = case when nothing_lost then c.restored_at else coalesce(c.held_since, c.restored_at) end,
    payouts_compared = c.payouts_compared or nothing_lost or compared
$$;
