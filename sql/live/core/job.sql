-- The job queue as operators see it: how a job stands, what it is about and whose it is. A function, because views would stand in the way of
-- graphile-worker's own migrations. Of a keyed job that another has replaced there is nothing to see: it is deleted once nobody runs it.
--   ready: it runs as soon as a worker is free. later: at its time. running. retrying: it failed, and runs again at its time.
--   failed: it failed every attempt. cancelled: by 'rail jobs cancel'.
create or replace function core.jobs()
returns table (
  id bigint,
  task text,
  state text,
  since timestamptz,
  attempts integer,
  max_attempts integer,
  run_at timestamptz,
  locked_by text,
  last_error text,
  key text,
  payload json,
  created_at timestamptz,
  organization_id text,
  object_id text,
  run_id text
)
language sql stable
as $$
  select
    j.id, t.identifier,
    case
      when j.locked_at is not null then 'running'
      when j.attempts >= j.max_attempts and j.last_error like 'Cancelled by an operator%' then 'cancelled'
      when j.attempts >= j.max_attempts then 'failed'
      when j.run_at <= now() then 'ready'
      when j.last_error is not null then 'retrying'
      else 'later'
    end,
    case
      when j.locked_at is not null then j.locked_at
      when j.attempts >= j.max_attempts then j.updated_at
      else j.run_at
    end,
    j.attempts::integer, j.max_attempts::integer, j.run_at, j.locked_by, j.last_error, j.key, j.payload, j.created_at,
    j.payload ->> 'organization_id',
    coalesce(
      j.payload ->> 'id', j.payload ->> 'endpoint_id', j.payload ->> 'inbox_id', j.payload ->> 'campaign_id', j.payload ->> 'prospect_id',
      j.payload ->> 'customer_id', j.payload ->> 'brand_id', j.payload ->> 'program_id', j.payload ->> 'run_id'
    ),
    j.payload ->> 'run_id'
  from graphile_worker._private_jobs j
  join graphile_worker._private_tasks t on t.id = j.task_id
  where j.flags is null or not j.flags ? 'superseded'
$$;
comment on function core.jobs() is 'Jobs that wait, run or have failed. Those that are done are gone.';
