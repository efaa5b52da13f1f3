import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { base_path } from '../events/base_path.ts';
import { reply_kind } from './message.ts';

export const threads = resource({
  object: 'thread',
  plural: 'threads',
  base_path,
  scoped_as: 'messages',
  table: 'recruitment.thread',
  doc: 'Emails between an inbox and a prospect that answer each other.',
  fields: {
    id: id('fth'),
    object: objectName('thread'),
    brand_id: id('fbr').describe('The brand.'),
    prospect_id: id('fdi').nullable().describe('The prospect. Null once the prospect was erased.'),
    inbox_id: id('fin').describe('The inbox.'),
    campaign_id: id('fca').nullable().describe('The campaign. Null for a thread outside of campaigns.'),
    sequence_id: id('fsq').nullable().describe('The sequence. Null for a thread outside of campaigns.'),
    subject: text.nullable().describe('The subject of its first email. Null once the prospect was erased.'),
    messages: z.int().describe('How many messages it has.'),
    reply_kind: reply_kind.nullable().describe('The kind of the last reply. Null if there is none.'),
    needs_review: z.boolean().describe('Whether it has a message that a person should check.'),
    last_message_at: timestamp.describe('When its last message was sent or came in.'),
    last_reply_at: timestamp.nullable().describe('When the prospect last replied. Null if not yet.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});
export type Thread = z.infer<typeof threads.record>;

/** Writes what follows from a thread's messages: its kind is that of its last reply. @param removed messages that it has less */
export const refreshThread = (tx: Tx, thread_id: string, removed = 0): Promise<object[]> =>
  tx.all(sql`
    with locked as materialized (
      select t.id from recruitment.thread t where ${tenant(tx)} and t.id = ${thread_id} for no key update
    )
    update recruitment.thread t
    set
      messages = t.messages - ${removed}::integer,
      (reply_kind, last_reply_at) = (
        select m.reply_kind, m.received_at from recruitment.message m
        where m.organization_id = t.organization_id and m.thread_id = t.id and m.purpose = 'reply'
        order by m.received_at desc, m.id desc
        limit 1
      ),
      needs_review = exists (
        select from recruitment.message m
        where m.organization_id = t.organization_id and m.thread_id = t.id and m.needs_review
      ),
      updated_at = ${tx.now}::timestamptz
    from locked where ${tenant(tx)} and t.id = locked.id`);
