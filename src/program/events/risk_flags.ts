import { z } from 'zod';
import { eventTypes } from './examples.ts';
import { customer_id, partner_id, risk_flag_id, text } from './fields.ts';

const flag = {
  risk_flag_id,
  partner_id: partner_id.nullable(),
  customer_id: customer_id.nullable(),
  kind: text.describe('What was detected: see `kind` of RiskFlag.'),
  severity: text.describe('`low`, `medium` or `high`.'),
};

export const riskFlagEvents = eventTypes({
  'risk_flag.created': {
    doc: 'A monitoring rule raised a flag.',
    data: {
      ...flag,
      evidence: z.record(z.string(), z.json()).describe('What was detected. The keys depend on the kind.'),
    },
    personal: ['evidence'],
  },
  'risk_flag.resolved': {
    doc: 'A flag was closed, with the required note.',
    data: {
      ...flag,
      status: text.describe('`confirmed` or `dismissed`.'),
      note: text.describe('The note with which the flag was closed.'),
      resolved_by: text.nullable().describe('Who closed the flag: a user (`usr_…`) or an API key (`key_…`).'),
    },
    personal: ['note'],
  },
});
