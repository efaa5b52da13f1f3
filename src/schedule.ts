import type { Schedule } from './core/jobs/schedule.ts';

/** Everything that runs by the clock. Time lives in rows: a tick looks for what is due by then. */
export const schedules: Schedule[] = [
  { name: 'program/mature_commissions', cron: '* * * * *', missed: 'latest' },
  { name: 'program/fold_tallies', cron: '* * * * *', missed: 'latest' },
  { name: 'webhooks/place_due_retries', cron: '1,31 * * * *', missed: 'latest' },
  { name: 'webhooks/keep_partitions', cron: '7 3 * * *', missed: 'latest' },
  { name: 'program/keep_partitions', cron: '8 3 * * *', missed: 'latest' },
  { name: 'core/forget_idempotency_keys', cron: '17 * * * *', missed: 'latest' },
];
