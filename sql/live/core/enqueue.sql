-- The one door to the job queue for the API's role: all jobs of a transaction in one call.
-- `jobs` is an array of {identifier, payload, job_key?, run_at?, priority?, max_attempts?, queue_name?}.
create or replace function core.enqueue(jobs json) returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select from graphile_worker.add_jobs(
    array(select spec from json_populate_recordset(null::graphile_worker.job_spec, jobs) as spec)
  )
$$;
revoke execute on function core.enqueue(json) from public;
grant execute on function core.enqueue(json) to rail_api;
