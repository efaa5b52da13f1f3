/** The checks of `rail doctor` on events and their delivery. */
import sql from 'sql-template-tag';
import { ago, counted, named } from '../core/doctor/amounts.ts';
import { check, error, ok, rowOf, rowsOf, warning } from '../core/doctor/check.ts';
import { lateness } from '../core/doctor/queue.ts';

/** The newest deliveries of an endpoint that are read, and the number of tried ones, none of which arrived, that makes it a failing one. */
const looked_at = 20;
const least_failed = 3;
/** Some retries are sent each half hour. */
const late_retry_s = 35 * 60;

const look = "See service/workers, and 'npx --no rail jobs list --task webhooks/deliver'.";

export const checks = [
  check({
    name: 'webhooks/events',
    read: rowOf<{ seconds: number | null }>(sql`
      select extract(epoch from clock_timestamp() - e.created_at)::float8 as seconds
      from (values (1)) as one
      left join lateral (select p.organization_id, p.event_id from webhooks.pending_event p order by p.position limit 1) as first on true
      left join webhooks.event e on e.organization_id = first.organization_id and e.id = first.event_id`),
    assess: ({ seconds }) =>
      lateness(
        seconds,
        'No event waits for its deliveries.',
        (age) => `The oldest event without its deliveries is ${age} old.`,
        'See service/workers, and postgres/transactions: an open transaction that has written an event holds up all after it.',
      ),
  }),
  check({
    name: 'webhooks/deliveries',
    // An endpoint that takes long to answer has itself to blame.
    read: rowOf<{ endpoints: number; seconds: number | null }>(sql`
      select count(*) as endpoints, extract(epoch from clock_timestamp() - min(d.updated_at))::float8 as seconds
      from webhooks.endpoint_queue e
      cross join lateral (
        select q.organization_id, q.delivery_id from webhooks.queued_delivery q where q.endpoint_id = e.endpoint_id order by q.queue_position limit 1
      ) as first
      join webhooks.delivery d on d.organization_id = first.organization_id and d.id = first.delivery_id
      where not e.slow`),
    assess: ({ endpoints, seconds }) =>
      lateness(
        seconds,
        'No delivery waits.',
        (age) => `Deliveries wait at ${counted(endpoints, 'endpoint')} that answer in time, the oldest for ${age}.`,
        look,
      ),
  }),
  check({
    name: 'webhooks/retries',
    read: rowOf<{ seconds: number | null }>(sql`
      select extract(epoch from now() - min(d.next_attempt_at))::float8 as seconds
      from webhooks.delivery d
      where d.next_attempt_at < now()`),
    assess({ seconds }) {
      if (seconds === null) return ok('No retry is overdue.');
      const text = `The oldest retry of a delivery was due ${ago(seconds)} ago.`;
      return seconds > late_retry_s ? warning(text, "See jobs/schedules, and 'npx --no rail runs'.") : ok(text);
    },
  }),
  check({
    name: 'webhooks/endpoints',
    read: rowsOf<{ id: string; organization_id: string; failed: number }>(sql`
      select e.id, e.organization_id, newest.failed
      from webhooks.endpoint e
      cross join lateral (
        with seen as (
          select x.id, x.status, x.next_attempt_at
          from webhooks.delivery x
          where x.organization_id = e.organization_id and x.endpoint_id = e.id
          order by x.id desc
          limit ${looked_at}
        )
        select count(*)::int as failed
        from seen d
        where (d.status = 'failed' or d.next_attempt_at is not null)
          and d.id > coalesce((select max(x.id) from seen x where x.status = 'delivered'), '')
      ) as newest
      where e.status = 'enabled' and e.deleted_at is null and newest.failed >= ${least_failed}
      order by newest.failed desc, e.id`),
    assess: (found) =>
      found.length === 0
        ? ok('No endpoint fails.')
        : warning(
            `${counted(found.length, 'endpoint takes none of its', 'endpoints take none of their')} newest deliveries: ${named(found.map(({ id, organization_id }) => `${id} of ${organization_id}`))}.`,
            "'npx --no rail deliveries list --endpoint ID' shows what it answers. It is disabled after five days of failures, and its owner is emailed.",
          ),
  }),
  check({
    name: 'webhooks/disabled',
    read: rowsOf<{ id: string; organization_id: string }>(sql`
      select e.id, e.organization_id
      from webhooks.endpoint e
      where e.status = 'disabled' and e.deleted_at is null and e.disabled_reason like 'Disabled: the last%' and e.updated_at > now() - interval '7 days'
      order by e.updated_at desc`),
    assess: (found) =>
      found.length === 0
        ? ok('No endpoint was disabled within 7 days because it failed.')
        : warning(
            `Disabled within 7 days because they failed: ${named(found.map(({ id, organization_id }) => `${id} of ${organization_id}`))}.`,
            'Their owners enable them again, and replay what they missed.',
          ),
  }),
  check({
    name: 'webhooks/leases',
    read: rowOf<{ expired: number }>(sql`
      select count(*)::int as expired
      from webhooks.endpoint_queue e
      where e.leased_by is not null and e.lease_until < clock_timestamp() - interval '1 minute'`),
    assess: ({ expired }) =>
      expired === 0
        ? ok('All endpoints that are sent to have a worker that lives.')
        : error(`${counted(expired, 'endpoint is', 'endpoints are')} held by a worker that is gone.`, look),
  }),
];
