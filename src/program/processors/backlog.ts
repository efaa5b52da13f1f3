/** The events that wait in the inbox of billing processors, and how long all are kept. */
import sql from 'sql-template-tag';
import type { Kept } from '../../core/jobs/retention.ts';
import { type Backlog, most_counted } from '../../core/metrics/backlog.ts';
import { SharedGauge } from '../../core/metrics/registry.ts';
import { run } from '../../core/postgres/database.ts';

/** Days that an event is kept. */
export const kept_days = 90;

/** The key of the job of a queue: one waits at most. */
export const queueKey = (program_id: string, queue: string): string => `processor_events:${program_id}:${queue}`;

/** Days for which one that differs from the processor is compared again: what was missing may have come. */
export const compared_again_days = 7;

export const keptEvents: Kept = {
  ...{ kind: 'processor_events', setting: null, days: () => kept_days, late_days: 1 },
  oldest: sql`select min(t.created_at) as at from program.processor_event t`,
};

const events = new SharedGauge(
  'rail_processor_events',
  {
    help: 'Events of billing processors that had no effect yet: pending (to be worked on); waiting (for another event); unresolved (waited for 72 hours in vain); failed (their effect is refused: look at GET /v1/processor_events). Counted up to 100,000.',
    row: 'Jobs',
    title: 'Events of billing processors without effect',
  },
  ['status'],
);
const oldest = new SharedGauge('rail_processor_events_oldest_seconds', {
  help: 'How long the oldest event of a billing processor has been pending, without those of connections whose key is refused.',
  row: 'Jobs',
  title: 'Oldest pending event of billing processors',
  alerts: [
    {
      name: 'RailProcessorEventsLate',
      expr: 'max(rail_processor_events_oldest_seconds) > 1800',
      for: '5m',
      severity: 'critical',
      summary: 'A payment at a billing processor has not become a sale for more than half an hour.',
      remedy: 'Look for jobs of program/work_processor_events that fail, and whether workers reach the processor.',
    },
  ],
});

const differences = new SharedGauge(
  'rail_processor_difference',
  {
    help: 'The sum of what differs, by currency in its minor units, between what billing processors say that they moved on the last seven days and what is recorded of it: compared each night. `npx --no rail doctor` names the programs.',
    row: 'Jobs',
    title: 'Difference from billing processors',
    alerts: [
      {
        name: 'RailProcessorDifference',
        expr: 'max(rail_processor_difference) > 0',
        for: '1h',
        severity: 'warning',
        summary: 'What a billing processor moved on a day is not what is recorded of it.',
        remedy:
          "'npx --no rail doctor' names the program and the day. Look for events that failed, and take in what never arrived with 'npx --no rail processor backfill'.",
      },
    ],
  },
  ['processor', 'currency'],
);

const statuses = ['pending', 'waiting', 'unresolved', 'failed'];

export const processorBacklog: Backlog = {
  gauges: [events, oldest, differences],
  async read(database) {
    const counted = await run<{ status: string; size: number }>(database, sizes);
    const differing = await run<Differing>(database, differingTotals);
    const [late] = await run<{ age: number }>(database, age);
    return [
      { gauge: oldest, labels: {}, value: late?.age ?? 0 },
      ...differing.map(({ value, ...labels }) => ({ gauge: differences, labels, value })),
      ...statuses.map((status) => ({
        gauge: events,
        labels: { status },
        value: counted.find((one) => one.status === status)?.size ?? 0,
      })),
    ];
  },
};

const sizes = sql`
  select 'pending' as status, (
    select count(*) from (select from program.processor_event e where e.status = 'pending' limit ${most_counted}) as c
  ) as size
  union all
  select 'waiting', (select count(*) from (select from program.processor_event e where e.status = 'waiting' limit ${most_counted}) as c)
  union all
  select w.status, count(*)
  from (
    select e.status from program.processor_event e where e.status in ('failed', 'unresolved') limit ${most_counted}
  ) as w
  group by w.status`;

interface Differing {
  processor: string;
  currency: string;
  value: number;
}

const differingTotals = sql`
  select t.processor, t.currency, sum(abs(t.difference_minor))::float8 as value
  from program.processor_total t
  where t.day >= current_date - ${compared_again_days}::integer and t.difference_minor <> 0
  group by t.processor, t.currency`;

const age = sql`
  select greatest(coalesce(extract(epoch from clock_timestamp() - min(e.created_at)), 0), 0)::float8 as age
  from program.processor_event e
  join program.processor p on p.organization_id = e.organization_id and p.program_id = e.program_id
    and p.processor = e.processor and p.deleted_at is null and p.status = 'connected'
  where e.status = 'pending'`;
