-- Frees what dead workers held: a worker is dead when nobody holds its session lock. Jobs that are locked by a pool which no living
-- worker owns are freed too, after a while: their worker died before it could say that the pool was its own.
-- Gives the ids of the workers that it reaped.
create or replace function core.reap_dead_workers() returns setof text
language plpgsql volatile
as $$
declare
  suspect record;
begin
  for suspect in select w.id, w.lock_key, w.pool_ids from core.worker w order by w.id loop
    if pg_try_advisory_xact_lock(1, suspect.lock_key) then
      perform graphile_worker.force_unlock_workers(suspect.pool_ids);
      delete from core.worker w where w.id = suspect.id;
      return next suspect.id;
    end if;
  end loop;
  perform graphile_worker.force_unlock_workers(
    array(
      select distinct j.locked_by
      from graphile_worker.jobs j
      where j.locked_at < now() - interval '15 seconds'
        and not exists (select from core.worker w where j.locked_by = any (w.pool_ids))
    )
  );
end
$$;

-- A keyed job that another replaces loses its key and all its attempts. If it then fails, or its worker dies, it would stay among the failed
-- jobs for good, although its successor does its work: it is marked, and deleted once nobody runs it.
create or replace function core.mark_superseded_job() returns trigger
language plpgsql
as $$
begin
  new.flags := coalesce(new.flags, '{}'::jsonb) || '{"superseded": true}'::jsonb;
  return new;
end
$$;
create or replace trigger mark_superseded_job
before update of key on graphile_worker._private_jobs
for each row when (old.key is not null and new.key is null)
execute function core.mark_superseded_job();

-- So are those that an operator cancelled, after a month.
create or replace function core.forget_superseded_jobs() returns void
language sql volatile
as $$
  select graphile_worker.complete_jobs(
    array(
      select j.id
      from graphile_worker._private_jobs j
      where j.locked_at is null and j.attempts >= j.max_attempts
        and (j.flags ? 'superseded' or (j.last_error like 'Cancelled by an operator%' and j.updated_at < now() - interval '30 days'))
    )
  )
$$;
