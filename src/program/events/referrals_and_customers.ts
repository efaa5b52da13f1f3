import { timestamp } from '../../core/values/fields.ts';
import { eventTypes, whole } from './examples.ts';
import {
  customer_id,
  email,
  group_id,
  handle,
  link_id,
  partner_id,
  referral_id,
  sale_id,
  text,
  tracked_by,
} from './fields.ts';

export const referralEvents = eventTypes({
  'referral.created': {
    doc: 'A new visitor came by a link. Repeat visits by the same browser send no event.',
    data: {
      referral_id,
      partner_id,
      link_id: link_id.nullable(),
      landing_url: text.nullable().describe('The URL on which the visitor arrived. Null: not known.'),
      tracked_by,
      expires_at: timestamp.describe('Until when a sign-up counts for the partner.'),
    },
    postback: whole,
    personal: ['landing_url'],
  },
  'referral.lead': {
    doc: 'The visitor signed up. Postbacks receive the event without `email`.',
    data: {
      referral_id,
      customer_id,
      partner_id,
      email: text.nullable().describe("The customer's email address. Null: not known."),
      tracked_by,
    },
    postback: { omit: ['email'] },
    personal: ['email'],
  },
  'referral.converted': {
    doc: 'The customer paid for the first time. Sent once per referral, with the first `sale.created`.',
    data: { referral_id, customer_id, partner_id, sale_id },
    postback: whole,
  },
  'referral.deleted': {
    doc: 'A referral was deleted, usually as a self-referral or as fraud.',
    data: {
      referral_id,
      partner_id,
      reason: text.describe(
        '`self_referral`, `reattributed` (the referral is attributed to another partner now), `deleted_by_hand`, or the reason that the request gave.',
      ),
    },
    postback: whole,
  },
});

export const customerEvents = eventTypes({
  'customer.enrolled_as_partner': {
    doc: 'A paying customer became a partner on the first sale, because the program enrols customers (`auto_enrol_customers`). `affiliate.created` for the same partner precedes it.',
    data: {
      customer_id,
      partner_id,
      handle,
      email,
      group_id,
      source: text.describe('How the customer was enrolled: `auto_enrol`.'),
    },
    personal: ['email', 'handle'],
  },
});
