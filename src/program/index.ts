import { inboundSigningOperations } from '../core/access/inbound_signing.ts';
import type { Operation } from '../core/resource/operation.ts';
import { deliveryOperations } from '../webhooks/deliveries/delivery_log.ts';
import { endpointOperations } from '../webhooks/endpoints/endpoint.ts';
import type { EventPolicy } from '../webhooks/events/event.ts';
import { eventOperations } from '../webhooks/events/event_log.ts';
import { commissionOperations } from './commissions/commission.ts';
import { commissionChangeOperations } from './commissions/commission_change.ts';
import { ruleOperations } from './commissions/rule.ts';
import { customerOperations } from './customers/customer.ts';
import { signUpOperations } from './customers/sign_up.ts';
import { deletePartnerOperations } from './delete_partner.ts';
import { catalogue } from './events/catalogue.ts';
import { applicationOperations } from './partners/application.ts';
import { groupOperations } from './partners/group.ts';
import { magicLinkOperations } from './partners/magic_link.ts';
import { partnerOperations, partners } from './partners/partner.ts';
import { payoutMethodOperations } from './partners/payout_method.ts';
import { tagOperations } from './partners/tag.ts';
import { taxFormOperations } from './partners/tax_form.ts';
import { programOperations, programs } from './programs/program.ts';
import { saleOperations } from './record_sale.ts';
import { riskFlagOperations } from './risk/risk_flag.ts';
import { clickOperations } from './tracking/click.ts';
import { couponOperations } from './tracking/coupon.ts';
import { linkOperations } from './tracking/link.ts';
import { referralOperations } from './tracking/referral.ts';

/** The affiliate program service: its events, and every operation of its API. */
export const events: EventPolicy = {
  catalogue,
  id_prefix: 'evt',
  delivery_prefix: 'whd',
  envelope: ({ id, type, created_at, data, request_id }) => ({
    ...{ id, type, created_at, data },
    ...(request_id === undefined ? {} : { request: { id: request_id } }),
  }),
  https_only: false,
  most_in_log: null,
};

export const operations: Operation[] = [
  ...programOperations,
  ...groupOperations,
  ...tagOperations,
  ...partnerOperations,
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
  ...ruleOperations,
  ...saleOperations,
  ...commissionOperations,
  ...commissionChangeOperations,
  ...riskFlagOperations,
  ...inboundSigningOperations,
  ...eventOperations({ catalogue, program: programs }),
  ...endpointOperations({ policy: events, program: programs, partner: partners }),
  ...deliveryOperations({ policy: events, program: programs }),
];
