import { inboundSigningOperations } from '../core/inbound_signing.ts';
import type { Operation } from '../core/operation.ts';
import { deliveryOperations } from '../webhooks/delivery_log.ts';
import { endpointOperations } from '../webhooks/endpoint.ts';
import type { EventPolicy } from '../webhooks/event.ts';
import { eventOperations } from '../webhooks/event_log.ts';
import { applicationOperations } from './application.ts';
import { clickOperations } from './click.ts';
import { commissionOperations } from './commission.ts';
import { commissionChangeOperations } from './commission_change.ts';
import { couponOperations } from './coupon.ts';
import { customerOperations } from './customer.ts';
import { catalogue } from './event.ts';
import { linkOperations } from './link.ts';
import { magicLinkOperations } from './magic_link.ts';
import { partner, partnerOperations } from './partner.ts';
import { partnerGroupOperations } from './partner_group.ts';
import { payoutMethodOperations } from './payout_method.ts';
import { program, programOperations } from './program.ts';
import { referralOperations } from './referral.ts';
import { riskFlagOperations } from './risk_flag.ts';
import { ruleOperations } from './rule.ts';
import { saleOperations } from './sale.ts';
import { tagOperations } from './tag.ts';
import { taxFormOperations } from './tax_form.ts';

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
  ...partnerGroupOperations,
  ...tagOperations,
  ...partnerOperations,
  ...magicLinkOperations,
  ...payoutMethodOperations,
  ...taxFormOperations,
  ...applicationOperations,
  ...linkOperations,
  ...couponOperations,
  ...clickOperations,
  ...referralOperations,
  ...customerOperations,
  ...ruleOperations,
  ...saleOperations,
  ...commissionOperations,
  ...commissionChangeOperations,
  ...riskFlagOperations,
  ...inboundSigningOperations,
  ...eventOperations({ catalogue, program }),
  ...endpointOperations({ policy: events, program, partner }),
  ...deliveryOperations({ policy: events, program }),
];
