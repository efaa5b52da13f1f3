/** Measures what waits in the database: by it an operator sees that payouts are not sent, or that nobody knows what became of them. */
import sql from 'sql-template-tag';
import { type Backlog, most_counted } from '../../../core/metrics/backlog.ts';
import { SharedGauge } from '../../../core/metrics/registry.ts';
import { run } from '../../../core/postgres/database.ts';

const payouts = new SharedGauge('rail_payouts_due', {
  help: 'Payouts that are due and were not sent, also those that wait for a person. Counted up to 100,000.',
  row: 'Payouts',
  title: 'Payouts that are due',
});
const attempts = new SharedGauge(
  'rail_payout_attempts',
  {
    help: 'Payouts that were handed to a rail and have no final outcome: prepared; in_doubt (the answer was lost; the rail is asked what became of it); processing. Counted up to 100,000.',
    row: 'Payouts',
    title: 'Payouts on their way',
  },
  ['status'],
);
const oldest = new SharedGauge(
  'rail_payout_attempts_oldest_seconds',
  {
    help: 'How long the oldest of these has been on its way.',
    row: 'Payouts',
    title: 'Longest on its way',
    alerts: [
      {
        name: 'RailPayoutInDoubt',
        expr: 'max(rail_payout_attempts_oldest_seconds{status="in_doubt"}) > 3600',
        for: '10m',
        severity: 'critical',
        summary: 'For more than an hour it has not been known whether a payout arrived.',
        remedy:
          "Look for the payout at the provider, by the attempt's id. It is neither sent again nor counted as paid until that is known.",
      },
    ],
  },
  ['status'],
);
const poll_lag = new SharedGauge('rail_payout_poll_lag_seconds', {
  help: 'How long the oldest question to a rail about a payout is overdue.',
  row: 'Payouts',
  title: 'Overdue questions to rails',
  alerts: [
    {
      name: 'RailPayoutPollsLate',
      expr: 'max(rail_payout_poll_lag_seconds) > 900',
      for: '5m',
      severity: 'warning',
      summary: 'A rail was to be asked about a payout more than 15 minutes ago.',
      remedy: 'Look for jobs of program/poll_payout that fail, and whether workers reach the provider.',
    },
  ],
});

const statuses = ['prepared', 'in_doubt', 'processing'];

/** Payouts that are due, and those that rails have not answered for. */
export const payoutBacklog: Backlog = {
  gauges: [payouts, attempts, oldest, poll_lag],
  async read(database) {
    const [due] = await run<{ size: number; poll_lag: number }>(database, waiting);
    const known = await run<{ status: string; size: number; age: number }>(database, onTheirWay);
    const of = (status: string) => known.find((one) => one.status === status) ?? { size: 0, age: 0 };
    return [
      { gauge: payouts, labels: {}, value: due?.size ?? 0 },
      { gauge: poll_lag, labels: {}, value: due?.poll_lag ?? 0 },
      ...statuses.flatMap((status) => [
        { gauge: attempts, labels: { status }, value: of(status).size },
        { gauge: oldest, labels: { status }, value: of(status).age },
      ]),
    ];
  },
};

const waiting = sql`
  select
    (
      select count(*)
      from (
        select from program.payout p
        where p.status = 'pending' and p.deleted_at is null and p.due_at <= now()
        limit ${most_counted}
      ) as counted
    ) as size,
    (
      select greatest(coalesce(extract(epoch from clock_timestamp() - min(a.next_poll_at)), 0), 0)::float8
      from program.payout_attempt a
      where a.next_poll_at is not null
    ) as poll_lag`;

const onTheirWay = sql`
  select a.status, count(*) as size, extract(epoch from clock_timestamp() - min(a.began_at))::float8 as age
  from (
    select a.status, a.began_at
    from program.payout_attempt a
    where a.status in ('prepared', 'in_doubt', 'processing')
    limit ${most_counted}
  ) as a
  group by a.status`;
