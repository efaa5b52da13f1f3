import type { Product } from '../webhooks/product.ts';
import { kept } from './kept.ts';
import { outreachBacklog } from './sending/backlog.ts';
import { events } from './webhooks.ts';

/** Jobs that wait for providers and websites share slots of their own, and so do those that wait for mail servers: no other job waits for them. */
const of_discovery = [
  'recruitment/run_search',
  'recruitment/run_scan',
  'recruitment/visit_prospect',
  'recruitment/reveal_addresses',
];
const of_mail = ['recruitment/send_from_inbox', 'recruitment/read_mailbox'];

const slots = { [of_discovery.join(' ')]: 5, [of_mail.join(' ')]: 5 };

/** The recruitment service. */
export const recruitment: Product = {
  name: 'recruitment',
  title: 'Rail Recruitment',
  events,
  loadApi: async () => (await import('./api.ts')).api,
  schedules: [
    { name: 'recruitment/sweep_campaigns', cron: '* * * * *', missed: 'latest' },
    { name: 'recruitment/purge_expired', cron: '43 * * * *', missed: 'latest' },
    { name: 'recruitment/follow_programs', cron: '* * * * *', missed: 'latest' },
    { name: 'recruitment/start_weekly_scans', cron: '5 * * * *', missed: 'latest' },
    { name: 'recruitment/send_due', cron: '* * * * *', missed: 'latest' },
    { name: 'recruitment/fold_tallies', cron: '* * * * *', missed: 'latest' },
  ],
  encrypted: [
    { table: 'recruitment.provider_credential', id: 'id', columns: ['credentials'] },
    { table: 'recruitment.hmac_key', id: 'id', columns: ['key'] },
    { table: 'recruitment.email_address', id: 'id', columns: ['address'] },
    { table: 'recruitment.suppression', id: 'id', columns: ['value'] },
    { table: 'recruitment.import_chunk', id: 'id', columns: ['content'] },
    { table: 'recruitment.inbox', id: 'id', columns: ['secrets'] },
    { table: 'recruitment.message', id: 'id', columns: ['recipient'] },
  ],
  checks: async () => (await import('./checks.ts')).checks,
  audits: [
    'recruitment.audit',
    'recruitment.run_audit',
    'recruitment.prospect_audit',
    'recruitment.prospect_tally_audit',
    'recruitment.outreach_audit',
    'recruitment.deal_audit',
  ],
  kept,
  backlog: outreachBacklog,
  extension: {
    slots,
    // Loaded in workers only: it visits, sends and reads.
    open: async (context) => (await import('./worker_extension.ts')).extendWorker(context),
  },
};
