import sql from 'sql-template-tag';
import { ticksBetween } from './core/jobs/schedule.ts';
import type { Backlog } from './core/metrics/metrics.ts';
import { type Database, run } from './core/postgres/database.ts';
import { schedules } from './products.ts';

/** No statement counts further: what is longer is too long. */
const most_counted = 100_000;
/** Lanes that wait are counted to here, and their first deliveries looked at. */
const most_lanes = 1_000;

/** What waits in the database and who works on it, one cheap statement after the other. */
export async function readBacklog(database: Database): Promise<Backlog> {
  const [pending] = await run<Waiting>(database, pendingEvents);
  const [lanes] = await run<Lanes>(database, waitingLanes);
  const [retrying] = await run<Waiting>(database, retryingDeliveries);
  const jobs = await run<Backlog['jobs'][0]>(database, jobsByState);
  const [{ workers } = { workers: 0 }] = await run<{ workers: number }>(
    database,
    sql`select count(*) as workers from core.worker`,
  );
  const { waiting = 0, leased = 0, expired = 0, deliveries = 0, oldest = 0 } = lanes ?? {};
  return {
    queues: [
      { queue: 'pending_events', ...(pending ?? nothing) },
      { queue: 'waiting_deliveries', size: deliveries, oldest },
      { queue: 'retrying_deliveries', ...(retrying ?? nothing) },
    ],
    jobs,
    lanes: Object.entries({ waiting, leased, expired }).map(([state, size]) => ({ state, size })),
    workers,
    schedules: await scheduleLags(database),
  };
}

interface Waiting {
  size: number;
  oldest: number;
}

interface Lanes {
  waiting: number;
  leased: number;
  expired: number;
  deliveries: number;
  oldest: number;
}

const nothing: Waiting = { size: 0, oldest: 0 };

const pendingEvents = sql`
  select
    (select count(*) from (select from webhooks.pending_event limit ${most_counted}) as counted) as size,
    coalesce(
      (
        select extract(epoch from clock_timestamp() - e.created_at)::float8
        from (select p.organization_id, p.event_id from webhooks.pending_event p order by p.position limit 1) as first
        join webhooks.event e on e.organization_id = first.organization_id and e.id = first.event_id
      ),
      0
    ) as oldest`;

/** A delivery stands in its lane since it was last written: when it was made, or when its retry was placed. */
const waitingLanes = sql`
  with recursive waiting as (
    (select s.endpoint_id, s.organization_id, s.delivery_id, 1 as nth from webhooks.standing s order by s.endpoint_id, s.place limit 1)
    union all
    select next.endpoint_id, next.organization_id, next.delivery_id, w.nth + 1
    from waiting w
    cross join lateral (
      select s.endpoint_id, s.organization_id, s.delivery_id
      from webhooks.standing s
      where s.endpoint_id > w.endpoint_id
      order by s.endpoint_id, s.place
      limit 1
    ) as next
    where w.nth < ${most_lanes}
  )
  select
    (select count(*) from waiting) as waiting,
    (select count(*) from (select from webhooks.standing limit ${most_counted}) as counted) as deliveries,
    (
      select coalesce(extract(epoch from clock_timestamp() - min(d.updated_at)), 0)::float8
      from waiting w
      join webhooks.delivery d on d.organization_id = w.organization_id and d.id = w.delivery_id
    ) as oldest,
    (select count(*) from webhooks.lane l where l.lease_until > clock_timestamp()) as leased,
    (select count(*) from webhooks.lane l where l.lease_until <= clock_timestamp() and l.leased_by is not null) as expired`;

const retryingDeliveries = sql`
  select count(*) as size, greatest(coalesce(extract(epoch from clock_timestamp() - min(r.next_attempt_at)), 0), 0)::float8 as oldest
  from (
    select d.next_attempt_at
    from webhooks.delivery d
    where d.next_attempt_at is not null
    order by d.next_attempt_at
    limit ${most_counted}
  ) as r`;

/** All tasks in all states, so that what is not there is told as 0. */
const jobsByState = sql`
  with job as (
    select
      j.task_identifier,
      case
        when j.locked_at is not null then 'taken'
        when j.attempts >= j.max_attempts then 'failed'
        when j.run_at > now() then 'later'
        else 'ready'
      end as state,
      coalesce(j.locked_at, j.run_at) as since
    from graphile_worker.jobs j
    limit ${most_counted}
  )
  select
    t.identifier as task, s.state, count(job.since) as size,
    greatest(coalesce(extract(epoch from clock_timestamp() - min(job.since)), 0), 0)::float8 as oldest
  from graphile_worker._private_tasks t
  cross join unnest(array['ready', 'taken', 'later', 'failed']) as s (state)
  left join job on job.task_identifier = t.identifier and job.state = s.state
  group by t.identifier, s.state`;

async function scheduleLags(database: Database): Promise<Backlog['schedules']> {
  const known = await run<{ name: string; last: string; now: string }>(
    database,
    sql`select
        s.name, clock_timestamp() as now,
        coalesce((select max(r.tick) from core.scheduled_run r where r.name = s.name and r.tick <= now()), s.since) as last
      from core.schedule s`,
  );
  return schedules.map((schedule) => {
    const row = known.find(({ name }) => name === schedule.name);
    const [missed] = row
      ? ticksBetween({ ...schedule, missed: 'each' }, Date.parse(row.last), Date.parse(row.now))
      : [];
    return { schedule: schedule.name, lag: row && missed ? (Date.parse(row.now) - Date.parse(missed)) / 1_000 : 0 };
  });
}
