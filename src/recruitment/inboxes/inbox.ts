import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { resource } from '../../core/resource/resource.ts';
import { enumOf, id, meaningsOf, objectName, text, timestamp } from '../../core/values/fields.ts';
import { base_path } from '../events/base_path.ts';
import { oauth_provider, Server } from './settings.ts';

const disconnected_reasons = {
  auth_failed: 'the server refused the login three times as wrong, or for 15 minutes without saying that it is wrong',
  connection_failed: 'the server could not be reached for 15 minutes',
  removed: 'the inbox was deleted',
  disabled: 'the inbox was disconnected by request',
} as const;

export const inboxes = resource({
  object: 'inbox',
  plural: 'inboxes',
  base_path,
  table: 'recruitment.inbox',
  unique: { inbox_email_unique: 'email' },
  doc: 'A mailbox that outreach is sent from and replies are read in. Passwords and tokens are never returned.',
  soft_delete: true,
  fields: {
    id: id('fin'),
    object: objectName('inbox'),
    email: text.describe('The email address that emails are sent from.'),
    from_name: text.describe('The name that emails are sent from.'),
    smtp: Server.describe('The server that sends.'),
    imap: Server.describe('The server that receives.'),
    oauth: z
      .object({ provider: oauth_provider, client_id: text.describe('The id of your client at the provider.') })
      .nullable()
      .describe('The provider whose tokens the inbox logs in with. Null: it logs in with passwords.'),
    daily_limit: z.int().describe('The most emails that are sent in a day, in `timezone`.'),
    ramp: z
      .object({
        start: z.int().describe('The most emails on the first day.'),
        step: z.int().describe('How many more emails a day after each day on which the inbox sent.'),
      })
      .nullable()
      .describe('How the number of emails per day grows up to `daily_limit`. Null: no ramp.'),
    min_gap_s: z.int().describe('The least time between two emails, in seconds. Not more than `max_gap_s`.'),
    max_gap_s: z
      .int()
      .describe('The most time between two emails that are due, in seconds. Not less than `min_gap_s`.'),
    reply_to: text.nullable().describe('Where replies go. Null: to the inbox itself, where they are read.'),
    signature: text.nullable().describe('Text at the end of each email. Null: none.'),
    timezone: text.describe('The IANA time zone of the days that `daily_limit` counts.'),
    authserv_id: text
      .nullable()
      .describe(
        'The name that its mail server signs `Authentication-Results` with. Null: known for large providers; of other servers a pass proves nothing, and a failure counts.',
      ),
    status: z
      .enum(['connected', 'disconnected'])
      .describe('`disconnected`: nothing is sent from it or read in it, until it is reconnected.'),
    disconnected_reason: enumOf(disconnected_reasons)
      .nullable()
      .describe(`${meaningsOf(disconnected_reasons)} Null if connected.`),
    connected_at: timestamp.describe('When it was last connected.'),
    disconnected_at: timestamp.nullable().describe('When it was disconnected. Null if connected.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Inbox = z.infer<typeof inboxes.record>;
export type DisconnectedReason = NonNullable<Inbox['disconnected_reason']>;

/** An inbox of any organization. */
export interface InboxKey {
  organization_id: string;
  inbox_id: string;
}

/**
 * The days before `day` on which an inbox `t` sent. Days behind those in which its ramp has reached its limit are not counted.
 */
export const daysThatSent = (day: Sql): Sql => sql`
  case when t.ramp is null then 0 else (
    select count(*)::integer
    from (
      select from recruitment.inbox_day e
      where e.organization_id = t.organization_id and e.inbox_id = t.id and e.day < ${day} and e.sent > 0
      limit greatest(0, ceil((t.daily_limit - (t.ramp ->> 'start')::numeric) / (t.ramp ->> 'step')::numeric))
    ) as counted
  ) end`;

/**
 * The most emails of an inbox on a day: a ramp begins with `start`, and each day that sent adds `step`, up to the inbox's limit.
 * @param days_that_sent_before before this day
 */
export function dailyLimit(
  { daily_limit, ramp }: { daily_limit: number; ramp: { start: number; step: number } | null },
  days_that_sent_before: number,
): number {
  return ramp ? Math.min(daily_limit, ramp.start + ramp.step * days_that_sent_before) : daily_limit;
}

/**
 * The time between an email and the next one, in whole seconds: each value of the range is equally likely.
 * @param random from 0 to less than 1
 */
export function gapSeconds({ min_gap_s, max_gap_s }: { min_gap_s: number; max_gap_s: number }, random: number): number {
  return min_gap_s + Math.floor(random * (max_gap_s - min_gap_s + 1));
}
