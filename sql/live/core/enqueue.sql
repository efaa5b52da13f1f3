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
      where w.name = given.job ->> 'unless_watched' and w.until > clock_timestamp() + interval '50 milliseconds'
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

-- Makes `worker` the one who watches, for so long from now on; false while another one does.
create or replace function core.keep_watch(name text, worker text, span interval) returns boolean
language sql volatile
as $$
  with kept as (
    insert into core.watch as w (name, watched_by, until)
    values (keep_watch.name, worker, clock_timestamp() + span)
    on conflict (name) do update set watched_by = excluded.watched_by, until = excluded.until
    where w.watched_by = worker or w.until < clock_timestamp()
    returning 1
  )
  select exists (select from kept)
$$;
