import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { resource } from '../../core/resource/resource.ts';
import { documentedEnum, enumOf, id, meaningsOf, objectName, text, timestamp } from '../../core/values/fields.ts';
import { base_path } from '../events/base_path.ts';
import { refusals } from './sequence.ts';

export const message_states = {
  planned: 'it waits to be sent, or to be sent again because the server asked to wait',
  sending: 'it is being sent',
  sent: 'the server accepted it',
  failed: 'the server refused it: `failed_reason` says why',
  unknown: 'the connection was lost at the end: it may have been sent, and is sent again by request alone',
  bounced: 'it was sent, and returned',
  cancelled: 'it was stopped before it was sent',
  received: 'it came in',
} as const;

/** The reasons why an email bounced. */
export const bounce_reasons = {
  dead: 'the address or its domain does not exist or takes no email; the address is barred',
  blocked: 'the server refused what it says or who sends it',
  undelivered: 'the mailbox is full, the server did not answer in time, or another reason that may pass',
} as const;
export type BounceReason = keyof typeof bounce_reasons;

const purposes = {
  sequence: 'an email of a campaign',
  invitation: 'an invitation to the affiliate program',
  answer: 'a person of your team answered the prospect',
  test: 'a test of a campaign, sent to your team',
  reply: 'the prospect replied',
  auto_reply: 'an automatic reply',
  unsubscribe: 'the prospect asked for no more emails',
  bounce: 'an email was returned',
  complaint: 'the provider reports that an email was marked as spam',
} as const;
export type Purpose = keyof typeof purposes;

export const reply_kinds = {
  positive: 'they want to go on',
  question: 'they ask before they decide',
  not_now: 'they are open to it, but later',
  negative: 'they decline',
  wrong_person: 'they are not in charge, or name somebody else',
  angry: 'they complain or insult',
} as const;
export type ReplyKind = keyof typeof reply_kinds;

const auto_reply_kinds = {
  absence: 'the prospect is away',
  receipt: 'a program confirms that the email came in, or was displayed',
  challenge: 'the email is held back until its sender proves to be a person',
  invitation: 'a calendar sent an invitation, or the answer to one',
  reaction: 'the prospect reacted with an emoji',
  other: 'anything else that a program sent',
} as const;
export type AutoReplyKind = keyof typeof auto_reply_kinds;
export const reply_kind = documentedEnum(reply_kinds);

export const messages = resource({
  object: 'message',
  plural: 'messages',
  base_path,
  table: 'recruitment.message',
  unique: { message_step_unique: null, message_rfc_message_id_unique: null, message_sending_unique: null },
  doc: 'An email to a prospect, or one that answers it.',
  fields: {
    id: id('fms'),
    object: objectName('message'),
    brand_id: id('fbr').describe('The brand.'),
    prospect_id: id('fdi').nullable().describe('The prospect. Null once the prospect was erased.'),
    thread_id: id('fth').nullable().describe('The thread that it belongs to. Null for a test.'),
    campaign_id: id('fca').nullable().describe('The campaign. Null for an email outside of campaigns.'),
    sequence_id: id('fsq').nullable().describe('The sequence. Null for an email outside of campaigns.'),
    inbox_id: id('fin').describe('The inbox that sends or received it.'),
    direction: documentedEnum({ outbound: 'it is sent from the inbox', inbound: 'it was received by the inbox' }),
    purpose: documentedEnum(purposes),
    state: documentedEnum(message_states),
    step_index: z
      .int()
      .nullable()
      .describe('The step of the campaign: 0 is the first. Null for an email outside of campaigns.'),
    variant: z
      .int()
      .nullable()
      .describe(
        "The text of the step: 0 is the step's own, 1 its first variant. Null for an email outside of campaigns.",
      ),
    subject: text.nullable().describe('The subject. Null once the prospect was erased.'),
    body_text: text
      .nullable()
      .describe('The text. Of a reply: the new text, without quotes and signature. Null once the prospect was erased.'),
    body_html: text
      .nullable()
      .describe('The HTML that was sent. Null if there is none, or once the prospect was erased.'),
    reply_kind: reply_kind.nullable().describe(`${meaningsOf(reply_kinds)} Null if it is not a reply.`),
    auto_reply_kind: documentedEnum(auto_reply_kinds)
      .nullable()
      .describe(`${meaningsOf(auto_reply_kinds)} Null if it is not an automatic reply.`),
    confidence: z
      .number()
      .nullable()
      .describe(
        'How certain the service was of what the text means, from 0 to 1. Below 0.55 `reply_kind` is `question`. Null if no text was classified: it is neither a reply nor a request to unsubscribe in words.',
      ),
    needs_review: z.boolean().describe('Whether a person should check how the service classified it.'),
    language_code: text.nullable().describe('ISO 639-1 language code of a reply. Null if not known.'),
    named: z
      .object({
        name: text.nullable().describe('The name. Null if not given.'),
        email: text.nullable().describe('The email address. Null if not given.'),
      })
      .nullable()
      .describe('Whom the prospect named instead. Nobody is emailed for it. Null if nobody was named.'),
    failed_reason: enumOf(refusals)
      .nullable()
      .describe(`${meaningsOf(refusals)} Null if it has not failed.`),
    server_answer: text
      .nullable()
      .describe('The last answer of the mail server. Null if the server accepted the email, or has not answered.'),
    sent_at: timestamp.nullable().describe('When the server accepted it. Null if it has not.'),
    bounced_at: timestamp.nullable().describe('When it bounced. Null if it has not.'),
    bounce_reason: enumOf(bounce_reasons)
      .nullable()
      .describe(`${meaningsOf(bounce_reasons)} Null if it has not bounced.`),
    received_at: timestamp.nullable().describe('When it came in. Null for an outbound email.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});
export type Message = z.infer<typeof messages.record>;

/** Servers that keep a copy themselves have done so by then. */
const copy_after_s = 30;
/** A copy that could not be made in a day is not made any more. */
const copy_within_s = 86_400;

/** The condition that the copy of an email, called `t`, is to be looked for, or made. */
export const isToCopy = (now: string): Sql => sql`
  t.sent_at between ${now}::timestamptz - make_interval(secs => ${copy_within_s})
    and ${now}::timestamptz - make_interval(secs => ${copy_after_s})`;
