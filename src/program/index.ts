import { z } from 'zod';
import { inboundSigningOperations } from '../core/access/inbound_signing.ts';
import { exportOperations } from '../core/exports/export_operation.ts';
import type { EventPolicy } from '../webhooks/events/policy.ts';
import { webhooksOf } from '../webhooks/operations.ts';
import type { Product } from '../webhooks/product.ts';
import { commissionOperations } from './commissions/commission.ts';
import { commissionChangeOperations } from './commissions/commission_change.ts';
import { ruleOperations } from './commissions/rule.ts';
import { customerOperations } from './customers/customer.ts';
import { signUpOperations } from './customers/sign_up.ts';
import { deletePartnerOperations } from './delete_partner.ts';
import { openDemoProgram } from './demo.ts';
import { catalogue, prefixes } from './events/catalogue.ts';
import { examples } from './examples.ts';
import { feed } from './exported.ts';
import { guide } from './guide.ts';
import { applicationOperations } from './partners/application.ts';
import { createPartnerOperations } from './partners/create_partner.ts';
import { groupOperations } from './partners/group.ts';
import { magicLinkOperations, mountSignIn } from './partners/magic_link.ts';
import { partnerOperations, partners } from './partners/partner.ts';
import { payoutMethodOperations } from './partners/payout_method.ts';
import { tagOperations } from './partners/tag.ts';
import { taxFormOperations } from './partners/tax_form.ts';
import { updatePartnerOperations } from './partners/update_partner.ts';
import { paying_partners } from './paying_partners.ts';
import { payoutBatchOperations } from './payouts/batches/batch.ts';
import { latestMonthly } from './payouts/batches/monthly.ts';
import { payoutChangeOperations } from './payouts/by_hand/payout_change.ts';
import { railOperations } from './payouts/credentials/rail.ts';
import { mountRailWebhooks } from './payouts/credentials/rail_webhook.ts';
import { payoutFileOperations } from './payouts/files/export.ts';
import { payoutReportOperations } from './payouts/files/report.ts';
import { payoutOperations } from './payouts/payout.ts';
import { payoutStatementOperations } from './payouts/payout_statement.ts';
import { sendOperations } from './payouts/sending/send.ts';
import { personalDataOperations } from './personal_data.ts';
import { createProgramOperations } from './programs/create_program.ts';
import { programOperations, programs } from './programs/program.ts';
import { saleOperations } from './record_sale.ts';
import { saleBulkOperations } from './record_sales.ts';
import { reportOperations } from './reports/report.ts';
import { riskFlagOperations } from './risk/risk_flag.ts';
import { refundReadOperations } from './sales/refund.ts';
import { clickOperations } from './tracking/click.ts';
import { couponOperations } from './tracking/coupon.ts';
import { linkOperations } from './tracking/link.ts';
import { referralOperations } from './tracking/referral.ts';
import { mountShortLinks } from './tracking/short_link.ts';
import { updateProgramOperations } from './update_program.ts';

const events: EventPolicy = {
  product: 'program',
  path: '/v1',
  namespace: '',
  catalogue,
  ...prefixes,
  endpoint_prefix: 'whe',
  subject: { field: 'program_id', prefix: 'prg', resource: programs },
  owner: { field: 'partner_id', prefix: 'part', resource: partners },
  envelope: ({ id, type, created_at, data, request_id }) => ({
    ...{ id, type, created_at, data },
    ...(request_id === undefined ? {} : { request: { id: request_id } }),
  }),
  envelope_fields: {
    request: z
      .object({ id: z.string().nullable().describe('Equals the header Rail-Request-Id. Null: nothing caused it.') })
      .optional()
      .describe('What caused it; not on test events.'),
  },
  envelope_doc:
    '`request.id` is the id of the API request or scheduled run that caused the event, null where nothing did, and a test event (`id` begins with `evt_test_`) has no `request`.',
  https_only: false,
  endpoint_types: null,
  chatText: null,
  retries: 'half_hourly',
  names_requests: true,
  lists_all: true,
  requireIncluded: null,
  most_in_log: null,
};

/** Resources whose scopes a key may have before an operation needs them. */
const resources =
  'programs partners groups tags applications links coupons clicks referrals customers sales commissions payouts rules risk_flags webhooks events';

/** The affiliate program service. */
export const program: Product = {
  name: 'program',
  title: 'Rail',
  summary: 'Affiliate programs: partners, links, clicks, sales, commissions, payouts and signed webhooks.',
  guide,
  chapters: [{ title: 'Paying partners', text: paying_partners }],
  moves_money: true,
  test_keys:
    'A test key reads and writes the same data as a live key: it only labels the responses with `X-Rail-Livemode: false`.',
  examples,
  events,
  operations: [
    ...programOperations,
    ...createProgramOperations,
    ...updateProgramOperations,
    ...groupOperations,
    ...tagOperations,
    ...partnerOperations,
    ...createPartnerOperations,
    ...updatePartnerOperations,
    ...deletePartnerOperations,
    ...magicLinkOperations,
    ...payoutMethodOperations,
    ...taxFormOperations,
    ...applicationOperations,
    ...linkOperations,
    ...couponOperations,
    ...clickOperations,
    ...referralOperations,
    ...customerOperations,
    ...signUpOperations,
    ...personalDataOperations,
    ...ruleOperations,
    ...saleOperations,
    ...saleBulkOperations,
    ...refundReadOperations,
    ...commissionOperations,
    ...commissionChangeOperations,
    ...payoutBatchOperations,
    ...payoutFileOperations,
    ...payoutReportOperations,
    ...payoutOperations,
    ...payoutChangeOperations,
    ...sendOperations,
    ...railOperations,
    ...payoutStatementOperations,
    ...riskFlagOperations,
    ...reportOperations,
    ...exportOperations(feed),
    ...inboundSigningOperations,
    ...webhooksOf(events),
  ],
  scopes: [
    ...resources.split(' ').flatMap((resource) => [`${resource}:read`, `${resource}:write`]),
    ...['reports:read', 'payouts:send', 'data:read', 'data:personal'],
  ],
  schedules: [
    { name: 'program/mature_commissions', cron: '* * * * *', missed: 'latest', latest: 'any' },
    { name: 'program/tell_due_payouts', cron: '* * * * *', missed: 'latest' },
    { name: 'program/send_due_payouts', cron: '* * * * *', missed: 'latest' },
    { name: 'program/poll_payouts', cron: '* * * * *', missed: 'latest' },
    { name: 'program/give_up_payout_changes', cron: '*/5 * * * *', missed: 'latest' },
    { name: 'program/create_monthly_batches', cron: '0 0 1 * *', missed: 'each', latest: latestMonthly },
    { name: 'program/fold_tallies', cron: '* * * * *', missed: 'latest' },
    { name: 'program/fold_reports', cron: '* * * * *', missed: 'latest' },
    { name: 'program/rebuild_reports', cron: '*/5 * * * *', missed: 'latest' },
    { name: 'program/send_weekly_summaries', cron: '0 6 * * 1', missed: 'latest' },
    { name: 'program/keep_partitions', cron: '8 3 * * *', missed: 'latest' },
  ],
  encrypted: [
    { table: 'program.payout_method', id: 'partner_id', columns: ['details'] },
    { table: 'program.payout_attempt', id: 'id', columns: ['request'] },
    { table: 'program.payout_file', id: 'id', columns: ['debtor'] },
    { table: 'program.rail', id: 'id', columns: ['credentials'] },
  ],
  audits: [
    'program.audit',
    'program.audit_tallies',
    'program.audit_reports',
    'program.audit_commission_entries',
    'program.audit_tracking_values',
    'program.audit_payouts',
  ],
  demo: { noun: 'program', path: '/v1/programs', open: openDemoProgram },
  mountRoutes(...given) {
    mountShortLinks(...given);
    mountSignIn(given[0]);
    mountRailWebhooks(...given);
  },
};
