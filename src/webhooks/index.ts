import type { Part } from '../core/part.ts';
import { webhookBacklog } from './queue/backlog.ts';
import { sweeps } from './terms.ts';

/** What webhooks schedule, encrypt and promise, whatever the product. */
export const webhooks: Part = {
  schedules: [...sweeps, { name: 'webhooks/keep_partitions', cron: '7 3 * * *', missed: 'latest' }],
  encrypted: [{ table: 'webhooks.endpoint', id: 'id', columns: ['secret', 'previous_secret'] }],
  audits: ['webhooks.audit'],
  backlog: webhookBacklog,
  // Loaded in workers only: it sends.
  extendWorker: async (...given) => (await import('./queue/worker_extension.ts')).extendWorker(...given),
};
