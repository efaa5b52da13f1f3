import { keptInWeeks } from '../core/jobs/retention.ts';
import type { Part } from '../core/part.ts';
import { webhookBacklog } from './queue/backlog.ts';
import { sweeps } from './terms.ts';

/** Deliveries at a time, for each job of other kinds. */
const deliveries = 10;

/** The schedules, encrypted columns and audits of webhooks, which all products share. */
export const webhooks: Part = {
  schedules: [...sweeps, { name: 'webhooks/keep_partitions', cron: '7 3 * * *', missed: 'latest' }],
  encrypted: [{ table: 'webhooks.endpoint', id: 'id', columns: ['secret', 'previous_secret'] }],
  checks: async () => (await import('./checks.ts')).checks,
  audits: ['webhooks.audit'],
  kept: [
    keptInWeeks('events', 'webhooks.event', 'EVENT_RETENTION_DAYS', ({ event_days }) => event_days),
    keptInWeeks('deliveries', 'webhooks.delivery', 'EVENT_RETENTION_DAYS', ({ event_days }) => event_days),
  ],
  backlog: webhookBacklog,
  extension: {
    // They wait for receivers and hardly compute, and no other job is to wait for those; so have deliveries to slow receivers.
    slots: { 'webhooks/deliver': deliveries, 'webhooks/deliver_slow': 2 },
    // Loaded in workers only: it sends.
    open: async (context, concurrency) =>
      (await import('./queue/worker_extension.ts')).extendWorker(context, concurrency * deliveries),
  },
};
