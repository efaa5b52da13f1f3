import { kept_by_core } from './jobs/retention.ts';
import type { Part } from './part.ts';

/** The schedules and encrypted columns of core itself. */
export const core: Part = {
  schedules: [{ name: 'core/purge_expired', cron: '17 * * * *', missed: 'latest' }],
  encrypted: [
    { table: 'core.idempotency_key', id: 'key', columns: ['reply'] },
    { table: 'core.user_account', id: 'id', columns: ['totp_secret'] },
  ],
  checks: async () => (await import('./doctor/checks.ts')).checks,
  kept: kept_by_core,
  audits: ['core.audit', 'core.audit_entries', 'core.audit_partitions'],
};
