import { keptInWeeks } from '../core/jobs/retention.ts';
import type { Product } from '../webhooks/product.ts';
import { latestMonthly } from './payouts/batches/month.ts';
import { payoutBacklog } from './payouts/sending/backlog.ts';
import { keptEvents, processorBacklog } from './processors/backlog.ts';
import { events } from './webhooks.ts';

/** The affiliate program service. */
export const program: Product = {
  name: 'program',
  title: 'Rail',
  events,
  loadApi: async () => (await import('./api.ts')).api,
  schedules: [
    { name: 'program/mature_commissions', cron: '* * * * *', missed: 'latest', latest: 'any' },
    { name: 'program/find_due_payouts', cron: '* * * * *', missed: 'latest' },
    { name: 'program/send_due_payouts', cron: '* * * * *', missed: 'latest' },
    { name: 'program/poll_payouts', cron: '* * * * *', missed: 'latest' },
    { name: 'program/give_up_payout_changes', cron: '*/5 * * * *', missed: 'latest' },
    { name: 'program/create_monthly_batches', cron: '0 0 1 * *', missed: 'each', latest: latestMonthly },
    { name: 'program/fold_tallies', cron: '* * * * *', missed: 'latest' },
    { name: 'program/fold_reports', cron: '* * * * *', missed: 'latest' },
    { name: 'program/rebuild_reports', cron: '*/5 * * * *', missed: 'latest' },
    { name: 'program/find_referrals_to_mail', cron: '* * * * *', missed: 'latest' },
    { name: 'program/send_weekly_summaries', cron: '0 6 * * 1', missed: 'latest' },
    { name: 'program/sweep_processor_events', cron: '*/5 * * * *', missed: 'latest' },
    { name: 'program/reconcile_processors', cron: '23 * * * *', missed: 'latest' },
    { name: 'program/compare_processors', cron: '47 4 * * *', missed: 'each' },
    { name: 'program/purge_processor_events', cron: '41 3 * * *', missed: 'latest' },
    { name: 'program/keep_partitions', cron: '8 3 * * *', missed: 'latest' },
    { name: 'program/purge_clicks', cron: '17 3 * * *', missed: 'latest' },
  ],
  encrypted: [
    { table: 'program.payout_method', id: 'partner_id', columns: ['details'] },
    { table: 'program.tax_form', id: 'partner_id', columns: ['content'], most_rows: 10 },
    { table: 'program.payout_attempt', id: 'id', columns: ['request'] },
    { table: 'program.payout_file', id: 'id', columns: ['debtor'] },
    { table: 'program.rail', id: 'id', columns: ['credentials'] },
    { table: 'program.processor', id: 'id', columns: ['credentials'] },
    { table: 'program.publishable_key', id: 'id', columns: ['signing_secret'] },
  ],
  checks: async () => (await import('./checks.ts')).checks,
  audits: [
    'program.audit',
    'program.audit_tallies',
    'program.audit_reports',
    'program.audit_commission_entries',
    'program.audit_tracking_values',
    'program.audit_payouts',
    'program.audit_processors',
  ],
  kept: [
    // Some clicks stay, however old.
    {
      ...keptInWeeks('clicks', 'program.click', 'CLICK_RETENTION_DAYS', ({ click_days }) => click_days),
      late_days: Number.POSITIVE_INFINITY,
    },
    keptEvents,
  ],
  backlog: {
    gauges: [...payoutBacklog.gauges, ...processorBacklog.gauges],
    read: async (database) => [...(await payoutBacklog.read(database)), ...(await processorBacklog.read(database))],
  },
  demo: {
    noun: 'program',
    path: '/v1/programs',
    open: async (...given) => (await import('./programs/demo.ts')).openDemoProgram(...given),
    fields: async (...given) => ({
      ...(await (await import('./snippet/demo_page.ts')).demoKey(...given)),
      ...(await (await import('./processors/demo.ts')).demoStripe(...given)),
    }),
  },
};
