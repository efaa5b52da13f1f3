-- The tenth of a second that `at` is in.
create or replace function core.slot_of(at timestamptz) returns bigint
language sql stable parallel safe
return floor(extract(epoch from at) * 10)::bigint;

-- The one door to the job queue for the API's role: all jobs of a transaction in one call.
-- `jobs` is an array of {identifier, payload, job_key?, run_at?, priority?, max_attempts?, queue_name?, unless_watched?}. A job is left out
-- while a worker watches for its work until well after this transaction's commit. Always by the indexes: a session that planned this while few
-- jobs waited would read all that wait for each job that has a key.
create or replace function core.enqueue(jobs json) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  wanted graphile_worker.job_spec[] := array(
    select json_populate_record(null::graphile_worker.job_spec, job)
    from json_array_elements(jobs) with ordinality as given (job, nth)
    where not exists (
      select from core.watch w
      where w.name = given.job ->> 'unless_watched' and w.slot = (select core.slot_of(clock_timestamp() + interval '50 milliseconds'))
    )
    order by given.nth
  );
begin
  if cardinality(wanted) > 0 then
    perform graphile_worker.add_jobs(wanted);
  end if;
end
$$;
revoke execute on function core.enqueue(json) from public;
grant execute on function core.enqueue(json) to rail_api;

-- Makes `worker` the one who watches, for so long from now on; false while another one does, of which nothing is changed then. A row for each
-- tenth of a second that it watches to its end, so that nobody walks past the versions of earlier ones.
create or replace function core.keep_watch(name text, worker text, span interval) returns boolean
language sql volatile
as $$
  select pg_advisory_xact_lock(hashtextextended('core.watch ' || name, 0));

  with wanted as materialized (
    select generate_series(core.slot_of(c.now), core.slot_of(c.now + span) - 1) as slot
    from (select clock_timestamp() as now) c
  ),
  taken as materialized (
    select exists (
      select from core.watch w
      join wanted s on s.slot = w.slot
      where w.name = keep_watch.name and w.watched_by <> worker
    ) as by_another
  ),
  kept as (
    insert into core.watch (name, slot, watched_by)
    select keep_watch.name, s.slot, worker
    from wanted s
    cross join taken t
    where not t.by_another
    on conflict on constraint watch_pkey do nothing
  )
  select not t.by_another from taken t
$$;
