import { apiKeyOperations } from '../core/access/api_key_operations.ts';
import { auditLogOperations } from '../core/access/audit_log.ts';
import { inboundSigningOperations } from '../core/access/inbound_signing.ts';
import { userOperations } from '../core/access/user_operations.ts';
import { exportOperations } from '../core/exports/export_operation.ts';
import { withoutEntries } from '../core/resource/operation.ts';
import { webhooksOf } from '../webhooks/operations.ts';
import type { ProductApi } from '../webhooks/product.ts';
import { claimOperations } from './claim_sale.ts';
import { commissionOperations } from './commissions/commission.ts';
import { commissionChangeOperations } from './commissions/commission_change.ts';
import { commissionHoldOperations } from './commissions/commission_hold.ts';
import { ruleOperations } from './commissions/rule.ts';
import { createCouponOperations } from './create_coupon.ts';
import { customerOperations } from './customers/customer.ts';
import { signUpOperation } from './customers/sign_up.ts';
import { deletePartnerOperations } from './delete_partner.ts';
import { disputeOperations } from './dispute_sale.ts';
import { examples } from './examples.ts';
import { feed } from './exported.ts';
import { guide, paying_partners } from './guide.ts';
import { applicationOperations } from './partners/application.ts';
import { createPartnerOperations } from './partners/create_partner.ts';
import { groupOperations } from './partners/group.ts';
import { groupInvitationOperations } from './partners/group_invitation.ts';
import { magicLinkOperations } from './partners/magic_link.ts';
import { partnerOperations } from './partners/partner.ts';
import { payoutMethodOperations } from './partners/payout_method.ts';
import { tagOperations } from './partners/tag.ts';
import { taxFormOperations } from './partners/tax_form.ts';
import { updatePartnerOperations } from './partners/update_partner.ts';
import { payoutBatchOperations } from './payouts/batches/batch.ts';
import { payoutChangeOperations } from './payouts/by_hand/payout_change.ts';
import { railOperations } from './payouts/credentials/rail.ts';
import { mountRailWebhooks } from './payouts/credentials/rail_webhook.ts';
import { payoutFileOperations } from './payouts/files/export.ts';
import { payoutReportOperations } from './payouts/files/report.ts';
import { payoutOperations } from './payouts/payout.ts';
import { payoutStatementOperations } from './payouts/payout_statement.ts';
import { sendOperations } from './payouts/sending/send.ts';
import { personalDataOperations } from './personal_data.ts';
import { processorOperations } from './processors/connect.ts';
import { mountDemoStripe } from './processors/demo.ts';
import { inboxOperations } from './processors/inbox.ts';
import { mountProcessorWebhooks } from './processors/intake.ts';
import { backfillOperations } from './processors/start_backfill.ts';
import { createProgramOperations } from './programs/create_program.ts';
import { programOperations } from './programs/program.ts';
import { saleOperations } from './record_sales.ts';
import { reportOperations } from './reports/report.ts';
import { riskFlagOperations } from './risk/risk_flag.ts';
import { disputeReadOperations } from './sales/dispute.ts';
import { refundReadOperations } from './sales/refund.ts';
import { publishableKeyOperations } from './snippet/publishable_key.ts';
import { mountTracking } from './snippet/track.ts';
import { couponOperations } from './tracking/coupon.ts';
import { linkOperations } from './tracking/link.ts';
import { linkQrOperations } from './tracking/link_qr.ts';
import { referralOperations } from './tracking/referral.ts';
import { clickOperations } from './tracking/sent_click.ts';
import { mountShortLinks } from './tracking/short_link.ts';
import { updateProgramOperations } from './update_program.ts';
import { events } from './webhooks.ts';

/** Resources whose scopes a key may have before an operation needs them. */
const resources =
  'programs partners groups tags applications links coupons clicks referrals customers sales commissions payouts rules risk_flags webhooks events';

/** The records that the merchant's systems send all day: of each there is the record itself, and an event. */
const streams = [
  ...['applications.create', 'clicks.create', 'clicks.create_in_bulk', 'customers.create', 'sales.create'],
  ...['sales.create_in_bulk', 'sales.refund', 'refunds.reverse', 'disputes.create', 'disputes.close'],
];

/** The API of affiliate programs. */
export const api: ProductApi = {
  summary: 'Affiliate programs: partners, links, clicks, sales, commissions, payouts and signed webhooks.',
  guide,
  chapters: [{ title: 'Paying partners', text: paying_partners }],
  moves_money: true,
  test_keys:
    'A test key reads and writes the same data as a live key: it only labels the responses with `X-Rail-Livemode: false`.',
  examples,
  operations: withoutEntries(
    [
      ...programOperations,
      ...createProgramOperations,
      ...updateProgramOperations,
      ...groupOperations,
      ...groupInvitationOperations,
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
      ...linkQrOperations,
      ...couponOperations,
      ...createCouponOperations,
      ...clickOperations,
      ...publishableKeyOperations,
      ...referralOperations,
      ...customerOperations,
      signUpOperation,
      ...personalDataOperations,
      ...ruleOperations,
      ...saleOperations,
      ...refundReadOperations,
      ...disputeReadOperations,
      ...disputeOperations,
      ...claimOperations,
      ...commissionOperations,
      ...commissionChangeOperations,
      ...commissionHoldOperations,
      ...payoutBatchOperations,
      ...payoutFileOperations,
      ...payoutReportOperations,
      ...payoutOperations,
      ...payoutChangeOperations,
      ...sendOperations,
      ...railOperations,
      ...payoutStatementOperations,
      ...processorOperations,
      ...backfillOperations,
      ...inboxOperations,
      ...riskFlagOperations,
      ...reportOperations,
      ...exportOperations(feed),
      ...apiKeyOperations,
      ...userOperations,
      ...auditLogOperations(streams),
      ...inboundSigningOperations,
      ...webhooksOf(events),
    ],
    streams,
  ),
  scopes: [
    ...resources.split(' ').flatMap((resource) => [`${resource}:read`, `${resource}:write`]),
    ...['reports:read', 'payouts:send', 'data:read', 'data:personal'],
  ],
  mountRoutes(...given) {
    mountShortLinks(...given);
    mountTracking(...given);
    mountRailWebhooks(...given);
    mountProcessorWebhooks(...given);
    mountDemoStripe(given[0], given[2]);
  },
};
