import { z } from 'zod';
import { timestamp } from '../../core/values/fields.ts';
import { minor } from '../../core/values/money.ts';
import { eventTypes, whole } from './examples.ts';
import {
  amount_minor,
  commission_id,
  commission_status,
  currency,
  customer_id,
  partner_id,
  payout_id,
  rule_id,
  sale_id,
  text,
} from './fields.ts';

export const saleEvents = eventTypes({
  'sale.created': {
    doc: 'An attributed charge was recorded. Always precedes the `commission.created` that follows from it.',
    data: {
      sale_id,
      customer_id: customer_id.nullable(),
      partner_id,
      amount_minor,
      currency,
      is_first_sale: z.boolean().describe("Whether this is the customer's first sale."),
      external_charge_id: text.describe("The processor's id of the charge."),
      occurred_at: timestamp.describe('When the customer was charged.'),
    },
  },
  'sale.updated': {
    doc: 'The amount or the attribution of a sale was corrected, or a refund of it was reversed: then the amounts are the same. Its commissions are recalculated, and changes to them have their own events.',
    data: {
      sale_id,
      partner_id,
      amount_minor,
      currency,
      previous_amount_minor: minor.describe('The amount before the correction, in minor units of the currency.'),
    },
  },
  'sale.refunded': {
    doc: 'A charge was refunded, in whole or in part. `amount_minor` is the amount of this refund.',
    data: {
      sale_id,
      customer_id: customer_id.nullable(),
      partner_id,
      amount_minor,
      currency,
      refunded_at: timestamp.describe('When the charge was refunded.'),
    },
  },
  'sale.deleted': {
    doc: 'A sale was deleted, for example because an import was rolled back.',
    data: { sale_id, partner_id },
  },
});

export const commissionEvents = eventTypes({
  'commission.created': {
    doc: 'A commission was created, with the status `pending` or `due`. A clawback also has the kind `clawback` and a negative amount.',
    data: {
      commission_id,
      sale_id: sale_id.nullable(),
      partner_id,
      amount_minor,
      currency,
      status: text.describe('`pending`: in the holding period. `due`: past it.'),
      rule_id: rule_id.nullable(),
      mature_at: timestamp.describe('When the holding period ends.'),
      kind: z.literal('clawback').optional().describe('Present on clawbacks only.'),
    },
    postback: whole,
  },
  'commission.updated': {
    doc: 'A commission matured, was approved, rejected, put on hold or released, or was edited.',
    data: {
      commission_id,
      partner_id,
      amount_minor,
      currency,
      status: commission_status,
      previous_status: text.describe(
        'The status before the change. The same as `status` if the amount or the note was edited.',
      ),
    },
    postback: whole,
  },
  'commission.paid': {
    doc: 'A commission was paid in a settled payout.',
    data: {
      commission_id,
      partner_id,
      payout_id,
      amount_minor,
      currency,
      paid_at: timestamp.describe('When the payout settled.'),
    },
    postback: whole,
  },
  'commission.voided': {
    doc: 'An unpaid commission was cancelled.',
    data: {
      commission_id,
      sale_id: sale_id.nullable(),
      partner_id,
      amount_minor,
      currency,
      reason: text.describe(
        '`sale_refunded`, `sale_corrected`, `partner_deleted`, `voided_by_hand`, or the reason that the request gave.',
      ),
    },
    postback: whole,
  },
  'commission.deleted': {
    doc: 'A commission was deleted.',
    data: { commission_id, partner_id },
    postback: whole,
  },
});
