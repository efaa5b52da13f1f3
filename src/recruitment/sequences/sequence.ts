import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { resource } from '../../core/resource/resource.ts';
import { documentedEnum, enumOf, id, meaningsOf, objectName, timestamp } from '../../core/values/fields.ts';
import { base_path } from '../events/base_path.ts';

export const sequence_states = {
  waiting: 'its first email was not sent yet',
  active: 'at least one email was sent',
  paused: 'nothing is sent: `pause_causes` says why',
  completed: 'all emails were sent, or may have been, and the prospect did not reply',
  replied: 'the prospect replied',
  bounced: 'an email bounced',
  unsubscribed: 'the prospect unsubscribed',
  stopped: 'it was stopped, or somebody else of the company replied',
  failed: 'it could not be sent: `failed_reason` says why',
} as const;

/** The reasons why nothing can be sent to a prospect, before an inbox tries. */
export const send_failures = {
  no_address: 'no usable address is known',
  do_not_contact: 'the prospect is marked Do not contact',
  suppressed: 'the address or its domain is barred, or the prospect unsubscribed',
  invalid_address: 'the address cannot receive email',
  risky_address: 'the address is disposable, or its domain accepts every address, and the campaign does not allow that',
  in_another_campaign: 'another sequence to the address is open',
  inbox_removed: 'its inbox was deleted after the first email',
  template_error: 'a template could not be rendered for the prospect',
} as const;
export type SendFailure = keyof typeof send_failures;

/** The reasons for which a provider refused an email. */
export const refusals = {
  recipient_refused: 'the server refused the recipient',
  sender_refused: 'the server refused the inbox as the sender',
  content_refused: 'the server refused the content',
  too_large: 'the email was too large',
  quota: 'the provider accepted no more emails of the inbox for 24 hours',
  timeout: 'the server did not accept it within 24 hours',
} as const;
export type Refusal = keyof typeof refusals;

export const pause_causes = {
  campaign: 'the campaign is paused',
  inbox: 'the inbox is disconnected',
  auto_reply: 'an automatic reply came: the sequence continues at `paused_until`',
  user: 'the sequence was paused by request',
  unknown_email: 'its first email may not have been sent: resend the email, or resume the sequence',
} as const;

/**
 * Returns the condition that nothing pauses a sequence: no person, no automatic reply, and no first email that may not have been sent.
 * @param row its name in the statement
 * @param at ISO 8601
 */
export const isUnpaused = (row: Sql, at: string): Sql =>
  sql`(not ${row}.paused_by_user and not ${row}.is_held and (${row}.paused_until is null or ${row}.paused_until <= ${at}::timestamptz))`;

const is_paused_campaign = sql`exists (
  select from recruitment.campaign c
  where c.organization_id = t.organization_id and c.id = t.campaign_id and c.state = 'paused')`;
const is_disconnected = sql`exists (
  select from recruitment.inbox i
  where i.organization_id = t.organization_id and i.id = t.inbox_id and i.status = 'disconnected')`;
const causes = sql`array_remove(array[
  case when ${is_paused_campaign} then 'campaign' end,
  case when ${is_disconnected} then 'inbox' end,
  case when t.paused_until > now() then 'auto_reply' end,
  case when t.paused_by_user then 'user' end,
  case when t.is_held then 'unknown_email' end
], null)`;

export const sequences = resource({
  object: 'sequence',
  plural: 'sequences',
  base_path,
  table: 'recruitment.sequence',
  unique: { sequence_prospect_unique: 'prospect_id', sequence_address_unique: null },
  doc: 'A sequence: the emails of a campaign to one prospect.',
  fields: {
    id: id('fsq'),
    object: objectName('sequence'),
    brand_id: id('fbr').describe('The brand.'),
    campaign_id: id('fca').describe('The campaign.'),
    prospect_id: id('fdi').nullable().describe('The prospect. Null once the prospect was erased.'),
    inbox_id: id('fin')
      .nullable()
      .describe('The inbox that it sends from, which stays the same. Null until it is scheduled.'),
    thread_id: id('fth').nullable().describe('The thread of its emails. Null until the first was sent.'),
    state: documentedEnum(sequence_states),
    pause_causes: z.array(documentedEnum(pause_causes)).describe('Why it is paused. Empty if it is not.'),
    next_step: z.int().describe('The index of the step that it sends next; the number of steps once all were sent.'),
    due_at: timestamp
      .nullable()
      .describe(
        'The earliest time of its next email, as the schedule, the daily limits and the gaps of the inbox stand now; after the last email, that of its end. Null if it has none.',
      ),
    paused_until: timestamp
      .nullable()
      .describe('Until when it is paused because of an automatic reply. Null if it is not.'),
    failed_reason: enumOf({ ...send_failures, ...refusals })
      .nullable()
      .describe(`${meaningsOf({ ...send_failures, ...refusals })} Null if it has not failed.`),
    last_sent_at: timestamp.nullable().describe('When its last email was sent. Null if none was.'),
    ended_at: timestamp.nullable().describe('When it ended. Null if it has not ended.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  computed: {
    pause_causes: sql`case when t.open then ${causes} else '{}' end`,
    state: sql`case when t.open and cardinality(${causes}) > 0 then 'paused' else t.state end`,
    due_at: sql`recruitment.goes_at(t)`,
  },
});
export type Sequence = z.infer<typeof sequences.record>;
