import sql from 'sql-template-tag';
import { type Backlog, type Measured, most_counted } from '../../core/metrics/backlog.ts';
import { SharedGauge } from '../../core/metrics/registry.ts';
import { type Database, run } from '../../core/postgres/database.ts';

/** Endpoints with waiting deliveries are counted to here, and their first deliveries looked at. */
const most_endpoints = 1_000;

const queue_size = new SharedGauge(
  'rail_queue_size',
  {
    help: 'What waits: events to fan out, deliveries in the queues of endpoints, and failed deliveries to retry. Counted up to 100,000.',
    row: 'Webhooks',
    title: 'What waits',
  },
  ['queue'],
);
const queue_oldest = new SharedGauge(
  'rail_queue_oldest_seconds',
  {
    help: 'How long the oldest entry of a queue has waited; for failed deliveries, how long the oldest retry is overdue.',
    row: 'Webhooks',
    title: 'Oldest that waits',
    alerts: [
      {
        name: 'RailEventsLate',
        expr: 'max(rail_queue_oldest_seconds{queue="pending_events"}) > 120',
        for: '2m',
        severity: 'critical',
        summary: 'Events have waited for more than two minutes for their deliveries.',
        remedy:
          'Look whether workers run, and for a transaction that has been open for long: events wait for those before them.',
      },
      {
        name: 'RailDeliveriesLate',
        expr: 'max(rail_queue_oldest_seconds{queue="waiting_deliveries"}) > 120',
        for: '10m',
        severity: 'warning',
        summary: 'A delivery has waited for more than two minutes in the queue of its endpoint.',
        remedy: 'One slow endpoint delays itself alone. If rail_endpoint_queues shows many that wait, add workers.',
      },
      {
        name: 'RailRetriesLate',
        expr: 'max(rail_queue_oldest_seconds{queue="retrying_deliveries"}) > 2100',
        for: '5m',
        severity: 'warning',
        summary: 'A failed delivery that is due was not enqueued at 1 or 31 minutes past.',
        remedy: 'Look for jobs of webhooks/enqueue_due_retries that fail, and into the logs of the workers.',
      },
    ],
  },
  ['queue'],
);
const endpoint_queues = new SharedGauge(
  'rail_endpoint_queues',
  {
    help: 'Queues of endpoints: with deliveries waiting, leased by a worker that sends now, or with an expired lease.',
    row: 'Webhooks',
    title: 'Queues of endpoints',
    alerts: [
      {
        name: 'RailLeasesExpired',
        expr: 'max(rail_endpoint_queues{state="expired"}) > 0',
        for: '5m',
        severity: 'warning',
        summary: 'Queues of endpoints have a lease that ran out, and no worker takes them over.',
        remedy:
          'Look whether workers run and reach Postgres: the sweep of a worker takes over such queues within seconds.',
      },
    ],
  },
  ['state'],
);
/** Events and deliveries that wait, and the leases of the queues that they wait in. */
export const webhookBacklog: Backlog = {
  gauges: [queue_size, queue_oldest, endpoint_queues],
  async read(database) {
    const [pending] = await run<Waiting>(database, pendingEvents);
    const queues = await readEndpointQueues(database);
    const [retrying] = await run<Waiting>(database, retryingDeliveries);
    return [
      ...waiting('pending_events', pending ?? nothing),
      ...waiting('waiting_deliveries', { size: queues.deliveries, oldest: queues.oldest }),
      ...waiting('retrying_deliveries', retrying ?? nothing),
      ...(['waiting', 'leased', 'expired'] as const).map((state) => ({
        ...{ gauge: endpoint_queues, labels: { state }, value: queues[state] },
      })),
    ];
  },
};

interface Waiting {
  size: number;
  oldest: number;
}

const nothing: Waiting = { size: 0, oldest: 0 };

const waiting = (queue: string, { size, oldest }: Waiting): Measured[] => [
  { gauge: queue_size, labels: { queue }, value: size },
  { gauge: queue_oldest, labels: { queue }, value: oldest },
];

interface EndpointQueues {
  waiting: number;
  leased: number;
  expired: number;
  deliveries: number;
  oldest: number;
}

async function readEndpointQueues(database: Database): Promise<EndpointQueues> {
  const [queues] = await run<EndpointQueues>(database, endpointQueues);
  return queues ?? { waiting: 0, leased: 0, expired: 0, deliveries: 0, oldest: 0 };
}

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

/** A delivery waits since its row was last written: when it was made, or when its retry was enqueued. */
const endpointQueues = sql`
  with recursive waiting as (
    (select q.endpoint_id, q.organization_id, q.delivery_id, 1 as nth from webhooks.queued_delivery q order by q.endpoint_id, q.queue_position limit 1)
    union all
    select next.endpoint_id, next.organization_id, next.delivery_id, w.nth + 1
    from waiting w
    cross join lateral (
      select q.endpoint_id, q.organization_id, q.delivery_id
      from webhooks.queued_delivery q
      where q.endpoint_id > w.endpoint_id
      order by q.endpoint_id, q.queue_position
      limit 1
    ) as next
    where w.nth < ${most_endpoints}
  )
  select
    (select count(*) from waiting) as waiting,
    (select count(*) from (select from webhooks.queued_delivery limit ${most_counted}) as counted) as deliveries,
    (
      select coalesce(extract(epoch from clock_timestamp() - min(d.updated_at)), 0)::float8
      from waiting w
      join webhooks.delivery d on d.organization_id = w.organization_id and d.id = w.delivery_id
    ) as oldest,
    (select count(*) from webhooks.endpoint_queue e where e.lease_until > clock_timestamp()) as leased,
    (select count(*) from webhooks.endpoint_queue e where e.lease_until <= clock_timestamp() and e.leased_by is not null) as expired`;

const retryingDeliveries = sql`
  select count(*) as size, greatest(coalesce(extract(epoch from clock_timestamp() - min(r.next_attempt_at)), 0), 0)::float8 as oldest
  from (
    select d.next_attempt_at
    from webhooks.delivery d
    where d.next_attempt_at is not null
    order by d.next_attempt_at
    limit ${most_counted}
  ) as r`;
