import type { Part } from './part.ts';

/** What core itself schedules and encrypts. */
export const core: Part = {
  schedules: [{ name: 'core/purge_expired', cron: '17 * * * *', missed: 'latest' }],
  encrypted: [{ table: 'core.idempotency_key', id: 'key', columns: ['reply'] }],
  audits: ['core.audit', 'core.audit_partitions'],
};
