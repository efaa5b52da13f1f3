/** What a request can set of a campaign. */
import { z } from 'zod';
import { id, oneLine } from '../../core/values/fields.ts';
import { scheduleSchema } from './schedule.ts';
import { most_steps, StepBody } from './step.ts';

export const settings = {
  name: oneLine(200).describe('The name of the campaign. Prospects never see it.'),
  inbox_ids: z
    .array(id('fin'))
    .max(100)
    .refine((ids) => new Set(ids).size === ids.length, 'must not name an inbox twice')
    .describe('Up to 100 inboxes that it sends from. Each prospect is written to from one of them.'),
  steps: z.array(StepBody).min(1).max(most_steps).describe(`1 to ${most_steps} emails, in their order.`),
  schedule: scheduleSchema,
  daily_new_limit: z
    .int()
    .min(1)
    .max(100_000)
    .nullable()
    .describe(
      'The most first emails in a day, in the time zone of the schedule (with `recipient`: of the brand). Null: no limit.',
    ),
  max_per_domain_day: z
    .int()
    .min(1)
    .max(1000)
    .describe(
      'The most emails of the campaign to one company (domain) in a day, in the same time zone. The limit does not apply to providers of free mailboxes, such as gmail.com.',
    ),
  bounce_pause_bps: z
    .int()
    .min(0)
    .max(10_000)
    .describe(
      'The service pauses the campaign if a larger share of its emails bounces, in basis points: 300 is 3 %. Emails are counted from the launch or the last pause, and at least 20 must be sent and 2 must bounce.',
    ),
  reply_wait_days: z
    .int()
    .min(0)
    .max(90)
    .describe('How many days a sequence waits for a reply after its last email, before it is completed.'),
  allow_risky: z
    .boolean()
    .describe('Whether it writes to disposable addresses, and to addresses at domains that accept every address.'),
  stop_for_company: z.boolean().describe('Whether a reply stops the sequences to others of the same company.'),
};

export const defaults = {
  inbox_ids: [] as string[],
  schedule: { timezone: 'recipient', days: [1, 2, 3, 4, 5], from: '09:00', to: '17:00' },
  ...{ daily_new_limit: null, max_per_domain_day: 3, bounce_pause_bps: 300, reply_wait_days: 5 },
  ...{ allow_risky: false, stop_for_company: true },
};
