import { z } from 'zod';
import { eventTypes } from './examples.ts';
import { application_id, email, group_id, handle, partner_id, partner_status, reviewed_by, text } from './fields.ts';

export const partnerEvents = eventTypes({
  'affiliate.created': {
    doc: 'A partner was created (portal sign-up, invite, dashboard or import).',
    data: { partner_id, email, handle, status: partner_status, group_id },
    personal: ['email'],
  },
  'affiliate.updated': {
    doc: "A partner's profile, group or status changed. `status` is the new value, `reason` the optional note.",
    data: {
      partner_id,
      status: partner_status,
      reason: text.nullable().describe('Your note, for example why the partner is suspended. Null: none.'),
    },
  },
  'affiliate.confirmed': {
    doc: 'A partner was approved and is active. Follows `application.approved` where there is an application.',
    data: { partner_id, email, handle, group_id },
    personal: ['email'],
  },
  'affiliate.deleted': {
    doc: "A partner was deleted. The partner's links no longer attribute; open commissions are voided, each with its own event.",
    data: { partner_id },
  },
  'application.submitted': {
    doc: 'An application was submitted.',
    data: {
      application_id,
      partner_id,
      email,
      handle,
      answers: z.json().describe('The answers, as the applicant gave them.'),
    },
    personal: ['email', 'answers'],
  },
  'application.approved': {
    doc: 'An application was approved. `affiliate.confirmed` follows immediately.',
    data: {
      partner_id,
      application_id,
      email,
      handle,
      reviewed_by,
      reason: text.nullable().describe("The reviewer's note. Null: none."),
    },
    personal: ['email'],
  },
  'application.rejected': {
    doc: 'An application was rejected.',
    data: {
      partner_id,
      application_id,
      email,
      handle,
      reviewed_by,
      reason: text.describe('The reason that the applicant was given.'),
    },
    personal: ['email'],
  },
});
