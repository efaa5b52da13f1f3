import { z } from 'zod';
import { sampleId } from '../../core/values/fields.ts';
import { eventType } from '../../webhooks/events/catalogue.ts';
import { count, message_id, outreach } from './fields.ts';

const step_index = count('Which email of the sequence: 0 is the first, 1 the first follow-up.');

const named = {
  ...{ brand_id: sampleId('fbr'), prospect_id: sampleId('fdi'), campaign_id: sampleId('fca') },
  ...{ sequence_id: sampleId('fsq'), inbox_id: sampleId('fin'), occurred_at: '2026-11-21T09:30:00.000Z' },
};

export const unsubscribeEvents = {
  'affiliate.unsubscribed': eventType(
    'A prospect unsubscribed. Every sequence to them stopped.',
    {
      ...outreach,
      campaign_id: outreach.campaign_id.nullable().describe('The campaign. Null: an email outside of campaigns.'),
      sequence_id: outreach.sequence_id.nullable().describe('The sequence. Null: an email outside of campaigns.'),
    },
    named,
  ),
};

/** Emails that leave and arrive. */
export const outreachEvents = {
  'message.sent': eventType(
    'An outreach email left the inbox.',
    { ...outreach, message_id, step_index },
    { ...named, message_id: sampleId('fms'), step_index: 0 },
  ),
  'message.bounced': eventType(
    'An outreach email bounced. The sequence to that address stopped.',
    { ...outreach, message_id },
    { ...named, message_id: sampleId('fms') },
  ),
  'message.failed': eventType(
    'The mail provider refused an outreach email.',
    {
      ...outreach,
      step_index,
      reason: z
        .enum(['recipient_refused', 'sender_refused', 'content_refused', 'too_large', 'quota', 'timeout'])
        .describe('Why: see `failed_reason` of the message.'),
    },
    { ...named, step_index: 0, reason: 'recipient_refused' },
  ),
  'reply.received': eventType(
    'A prospect replied: interested if it is `positive` or a `question`. Automatic replies, bounces and unsubscribes are not replies.',
    {
      ...outreach,
      campaign_id: outreach.campaign_id
        .nullable()
        .describe('The campaign. Null: a reply to an email outside of campaigns.'),
      sequence_id: outreach.sequence_id
        .nullable()
        .describe('The sequence. Null: a reply to an email outside of campaigns.'),
      message_id,
      reply_kind: z
        .enum(['positive', 'question', 'not_now', 'negative', 'wrong_person', 'angry'])
        .describe('The kind of the reply: see `reply_kind` of the message.'),
    },
    { ...named, message_id: sampleId('fms'), reply_kind: 'positive' },
  ),
  'sequence.completed': eventType(
    'A sequence has no more emails to send, and the prospect never replied.',
    {
      ...outreach,
      outcome: z
        .enum(['no_reply', 'unknown'])
        .describe('`no_reply`: every email was sent. `unknown`: at least one of them may not have been sent.'),
    },
    { ...named, outcome: 'no_reply' },
  ),
};
