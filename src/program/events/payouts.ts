import { id, timestamp } from '../../core/values/fields.ts';
import { eventTypes, whole } from './examples.ts';
import { amount_minor, currency, due_at, method, partner_id, payout_id, payout_status, text } from './fields.ts';

const money = { payout_id, partner_id, amount_minor, currency };

export const payoutEvents = eventTypes({
  'payout.created': {
    doc: 'A payout was created in a batch. Nothing has been sent yet.',
    data: { payout_id, batch_id: id('batch'), partner_id, amount_minor, currency, status: payout_status, due_at },
    postback: whole,
  },
  'payout.updated': {
    doc: "A payout's status changed to one other than `paid` or `failed`.",
    data: {
      payout_id,
      partner_id,
      status: payout_status,
      previous_status: text.describe('The status before the change.'),
    },
    postback: whole,
  },
  'payout.due': {
    doc: 'A payout is due: its batch is ready, and its amount is above the minimum.',
    data: { ...money, due_at },
    postback: whole,
  },
  'payout.paid': {
    doc: 'The rail confirmed the settlement, or the payout was marked as paid by hand.',
    data: {
      ...money,
      method,
      external_id: text.nullable().describe("The rail's id of the payment. Null: none."),
      paid_at: timestamp.describe('When the payout settled.'),
    },
    postback: whole,
  },
  'payout.failed': {
    doc: 'The rail rejected or returned a payout.',
    data: {
      ...money,
      method,
      error_code: text
        .nullable()
        .describe(
          '`recipient_invalid`, `recipient_unclaimed`, `account_closed`, `returned`, `compliance_hold`, `limit_exceeded`, `insufficient_funds`, `currency_not_supported`, `provider_rejected` or `provider_unavailable`. Null: not known.',
        ),
      error_message: text.nullable().describe('The error in words. Null: not known.'),
    },
    postback: whole,
  },
  'payout.not_eligible': {
    doc: 'An amount is due but cannot be paid: no payout method, a missing tax form, or a balance under the minimum. `reason` is machine-readable.',
    data: {
      ...money,
      payout_id: payout_id
        .nullable()
        .describe('The payout, when it was about to be sent. Null: a batch did not create one for the balance.'),
      reason: text.describe(
        '`no_payout_method`, `payout_method_unavailable`, `missing_tax_form`, `partner_suspended`, `below_minimum`, `negative_balance` or `currency_not_supported`.',
      ),
      reason_text: text.describe('The reason in words.'),
    },
    postback: whole,
  },
  'payout.deleted': {
    doc: 'A pending payout was deleted. Its commissions are `due` again.',
    data: { payout_id, partner_id },
    postback: whole,
  },
});
