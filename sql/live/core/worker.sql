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
