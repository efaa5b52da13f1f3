-- The one door to the job queue for the API's role: all jobs of a transaction in one call. `jobs` is an array of
-- {identifier, payload, job_key?, queue_name?, run_at?, max_attempts?, patience_ms?}, the last if a job of the key that waits may go on waiting for
-- so long. It does what add_jobs of graphile-worker 0.18 does, which looks five times for tasks, queues and keys, in one insert; what that cannot do
-- is left to add_jobs: jobs of a queue, of tasks that no worker has had yet, and those whose key a job holds that runs or has failed for good.
-- `notifies`: workers are notified with the commit; else the caller notifies them after it.
-- Always by the indexes: a session that planned this while few jobs waited would read all that wait for each job that has a key.
create or replace function core.enqueue(jobs json, notifies boolean default true) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  count integer;
  tasks json;
  remaining graphile_worker.job_spec[];
  added text[];
begin
  with given as materialized (
    select j.nth, j.identifier, t.id as task_id, j.payload, j.job_key, j.queue_name, j.run_at, j.max_attempts, j.patience_ms
    from rows from (
      json_to_recordset(jobs) as (
        identifier text, payload json, job_key text, queue_name text, run_at timestamptz, max_attempts smallint, patience_ms integer
      )
    ) with ordinality as j (identifier, payload, job_key, queue_name, run_at, max_attempts, patience_ms, nth)
    left join graphile_worker._private_tasks t on t.identifier = j.identifier and j.queue_name is null
  ),
  inserted as (
    insert into graphile_worker._private_jobs as waiting (task_id, payload, key, run_at, max_attempts)
    select g.task_id, coalesce(g.payload, '{}'), g.job_key, coalesce(g.run_at, now()), coalesce(g.max_attempts, 25)
    from given g
    where g.task_id is not null
    order by g.nth
    on conflict (key) do update
    set
      job_queue_id = excluded.job_queue_id,
      task_id = excluded.task_id,
      payload = excluded.payload,
      run_at = (
        select case when g.patience_ms is null then excluded.run_at else least(waiting.run_at, excluded.run_at + g.patience_ms * interval '1 millisecond') end
        from given g
        where g.job_key = waiting.key
      ),
      max_attempts = excluded.max_attempts,
      priority = excluded.priority,
      flags = excluded.flags,
      revision = waiting.revision + 1,
      attempts = 0,
      last_error = null,
      updated_at = now()
    where waiting.is_available
    returning waiting.key
  )
  select
    count(*), json_agg(distinct g.identifier),
    array_agg((g.identifier, g.payload, g.queue_name, g.run_at, g.max_attempts, g.job_key, null, null)::graphile_worker.job_spec order by g.nth)
      filter (where g.task_id is null or (g.job_key is not null and g.job_key not in (select i.key from inserted i where i.key is not null)))
  from given g
  into count, tasks, remaining;

  while cardinality(remaining) > 0 loop
    added := array(select j.key from graphile_worker.add_jobs(remaining) j where j.key is not null);
    -- A job that a worker took between two looks at it was neither replaced nor changed, and may not see what this transaction writes: again.
    remaining := array(select row (r.*)::graphile_worker.job_spec from unnest(remaining) r where r.job_key is not null and r.job_key <> all (added));
  end loop;
  if notifies and count > 0 then
    perform pg_notify('jobs:insert', json_build_object('count', count, 'tasks', tasks)::text);
  end if;
end
$$;
revoke execute on function core.enqueue(json, boolean) from public;
grant execute on function core.enqueue(json, boolean) to rail_api;
