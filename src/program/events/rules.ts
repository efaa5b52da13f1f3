import { z } from 'zod';
import { eventTypes } from './examples.ts';
import { rule_id, rule_name, rule_status, text } from './fields.ts';

const rate = (when: string) =>
  z
    .strictObject({
      rate_type: text.describe('`percent` or `fixed`.'),
      rate_value: z.int().describe("`percent`: basis points. `fixed`: minor units of the program's currency."),
      priority: z.int().describe('Of rules that match equally closely, the one with the highest priority pays.'),
      status: rule_status,
    })
    .describe(when);

export const ruleEvents = eventTypes({
  'rule.updated': {
    doc: 'A rule was edited. The change applies to every later payment, renewals included.',
    data: {
      rule_id,
      name: rule_name,
      before: rate('The rate before the change.'),
      after: rate('The rate after the change.'),
    },
  },
  'rule.deleted': {
    doc: 'A rule was deleted. If it was the last rule that applied, the next renewal earns no commission.',
    data: { rule_id, name: rule_name },
  },
  'rule.status_changed': {
    doc: 'A rule was activated or deactivated.',
    data: { rule_id, name: rule_name, status: rule_status },
  },
});
