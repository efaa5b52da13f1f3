import { z } from 'zod';
import { enumOf, sampleId } from '../../core/values/fields.ts';
import { eventType } from '../../webhooks/events/catalogue.ts';
import {
  brand_id,
  campaign_id,
  count,
  inbox_id,
  inbox_reason,
  occurred_at,
  prospect_id,
  sequence_id,
} from './fields.ts';

const of_campaign = { brand_id, campaign_id, occurred_at };
const named = {
  ...{ brand_id: sampleId('fbr'), campaign_id: sampleId('fca') },
  occurred_at: '2026-11-21T09:30:00.000Z',
};

/** The reasons why the service pauses a campaign, and its advice. */
export const fixes = {
  bounce_rate:
    'Remove the addresses that bounced and verify the others, and where servers blocked the emails change the texts or send less, before you resume.',
  spam_complaint: 'Write to fewer and better matching prospects, and check the text of the emails before you resume.',
  not_entitled: 'Choose a plan that includes outreach, then resume.',
  no_inbox: 'Connect an inbox to the campaign, then resume.',
} as const;

const sentences = Object.values(fixes) as [string, ...string[]];

export const campaignEvents = {
  'campaign.launched': eventType('A campaign started sending.', of_campaign, named),
  'campaign.paused': eventType(
    'A campaign stopped sending.',
    {
      ...of_campaign,
      reason: enumOf(fixes).nullable().describe('Why the service paused it. Null: a person paused it.'),
      fix: z.enum(sentences).nullable().describe('What to do, in one sentence. Null: a person paused it.'),
      sent: count('Emails sent since the last pause.')
        .nullable()
        .describe('With `bounce_rate`: emails sent since the launch or the last pause. Null for other reasons.'),
      bounced: count('Of those, how many bounced.')
        .nullable()
        .describe('With `bounce_rate`: how many of them bounced. Null for other reasons.'),
    },
    { ...named, reason: 'bounce_rate', fix: fixes.bounce_rate, sent: 40, bounced: 3 },
  ),
  'campaign.inbox_dropped': eventType(
    'An inbox of a campaign was disconnected. Only the sequences that send from it are paused.',
    { ...of_campaign, inbox_id, reason: inbox_reason },
    { ...named, inbox_id: sampleId('fin'), reason: 'auth_failed' },
  ),
  'campaign.resumed': eventType('A paused campaign sends again.', of_campaign, named),
  'campaign.stopped': eventType('A campaign was stopped for good.', of_campaign, named),
  'campaign.finished': eventType('Every prospect of a campaign finished their sequence.', of_campaign, named),
  'campaign.send_failed': eventType(
    'A campaign could not send to one prospect. The campaign continues with the others.',
    {
      ...of_campaign,
      prospect_id,
      sequence_id,
      reason: z
        .enum([
          'no_address',
          'do_not_contact',
          'suppressed',
          'invalid_address',
          'risky_address',
          'in_another_campaign',
          'inbox_removed',
          'template_error',
        ])
        .describe('Why: see `failed_reason` of the sequence.'),
    },
    { ...named, prospect_id: sampleId('fdi'), sequence_id: sampleId('fsq'), reason: 'no_address' },
  ),
};
