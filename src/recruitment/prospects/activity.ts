import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { nestedListOperation } from '../../core/resource/nested_list.ts';
import type { Operation } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { documentedEnum, id, objectName, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import type { Actor } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { prospects } from './prospect.ts';

const kinds = {
  added: 'it was added or found (`source`)',
  saved: 'it was saved (`list_id`)',
  unsaved: 'it was removed from a list (`list_id`), or is no longer saved',
  hidden: 'it was hidden (`reason`)',
  unhidden: 'it is shown again',
  stage_changed: 'it was moved (`from`, `to`, `reason`, and `text`: the reason given in the request)',
  assigned: 'its assignee changed (`assignee_member_id`, `previous_member_id`)',
  note_added: 'a note was added (`note_id`)',
  email_added: 'addresses were added (`source`, `addresses`)',
  email_deleted: 'an address was deleted',
  do_not_contact_added: 'it was marked Do not contact (`reason`, `do_not_contact_id`)',
  do_not_contact_lifted: 'the mark was lifted (`reason`)',
  campaign_added: 'it was added to a campaign (`campaign_id`, `sequence_id`)',
  message_sent: 'an email was sent (`message_id`, `purpose`, `campaign_id`, `step_index`)',
  message_failed: 'an email could not be sent (`message_id`, `reason`)',
  message_bounced: 'an email bounced (`message_id`)',
  replied: 'it replied (`message_id`, `reply_kind`)',
  reply_reclassified:
    'the kind of a reply was corrected (`message_id`, `from`, `to`; `from` is the purpose of what was no reply before)',
  auto_replied: 'an automatic reply came (`message_id`, `auto_reply_kind`, `paused_until`)',
  complained: 'an email was reported as spam (`message_id`)',
  sequence_paused: 'its sequence was paused (`sequence_id`)',
  sequence_resumed: 'its sequence was resumed (`sequence_id`)',
  sequence_stopped: 'its sequence was stopped (`sequence_id`)',
  unsubscribed: 'it unsubscribed',
  invited: 'it was invited, or marked as invited',
  signed_up: 'it signed up (`source`)',
  deal_created: 'a deal was created (`deal_id`)',
  deal_agreed: 'a deal was agreed (`deal_id`, `version`, `agreed_by`)',
  activated: 'the prospect became a partner of the program by a deal (`deal_id`, `version`, `partner_id`)',
  deal_cancelled: 'a deal was cancelled (`deal_id`)',
  deal_reopened: 'a deal was reopened (`deal_id`)',
} as const;
export type ActivityKind = keyof typeof kinds;

export const activities = resource({
  object: 'activity',
  plural: 'activities',
  scoped_as: 'prospects',
  table: 'recruitment.activity',
  doc: 'What happened with a prospect, and who did it.',
  fields: {
    id: id('fac'),
    object: objectName('activity'),
    prospect_id: id('fdi').describe('The prospect.'),
    kind: documentedEnum(kinds),
    by_user_id: id('usr').nullable().describe('Who did it. Null: the API or the system.'),
    by_member_id: id('tm').nullable().describe('The team member who did it. Null: the API or the system.'),
    data: z.record(z.string(), z.json()).describe('The fields named at the kind.'),
    created_at: timestamp,
  },
});

interface Entry {
  prospect_id: string;
  data?: object;
}

/** Records what happened with prospects, with the commit. */
export function recordActivity(tx: Tx, kind: ActivityKind, by: Actor, entries: Entry[]): void {
  if (entries.length > 0) tx.atCommit(insertion(tx, kind, by, entries));
}

/** The same of prospects that the transaction has created: nobody else locks them, so that Postgres may begin at once. */
export function recordOfNew(tx: Tx, kind: ActivityKind, by: Actor, entries: Entry[]): void {
  if (entries.length > 0) tx.send(insertion(tx, kind, by, entries));
}

function insertion(tx: Tx, kind: ActivityKind, by: Actor, entries: Entry[]): Sql {
  const rows = entries.map(({ prospect_id, data = {} }) => ({ id: newId('fac'), prospect_id, data }));
  return sql`
    insert into recruitment.activity (organization_id, id, prospect_id, kind, by_user_id, by_member_id, data, created_at)
    select ${tx.organization_id}, r.id, r.prospect_id, ${kind}, ${by.user_id}, ${by.member_id}, r.data, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(rows)}::json) as r (id text, prospect_id text, data jsonb)`;
}

export const activityOperations: Operation[] = [
  nestedListOperation(
    {
      name: 'prospects.activity',
      title: 'List what happened with a prospect',
      path: `${base_path}/prospects/{id}/activity`,
      scope: 'prospects:read',
      summary: 'Lists what happened with a prospect, newest first.',
      errors: ['sample_prospect'],
    },
    {
      of: { resource: activities, by: ['kind'] },
      parent: ({ tx }, id) => prospects.get(tx, id),
      where: (prospect_id) => sql`t.prospect_id = ${prospect_id}`,
    },
  ),
];
