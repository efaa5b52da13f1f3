/** A person's own answer in a thread: no outreach, so it has no footer, and nothing is emitted. */
import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { id, notBlank, requireState } from '../../core/values/fields.ts';
import { notFound } from '../../core/values/problem.ts';
import { replySubject, storedThreadHeaders } from '../composing/message_ids.ts';
import { base_path } from '../events/base_path.ts';
import { inboxes } from '../inboxes/inbox.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { prospects } from '../prospects/prospect.ts';
import { bestAddressOf, sendMessage } from '../sending/send_message.ts';
import { type Message, messages } from '../sequences/message.ts';
import { type Thread, threads } from '../sequences/thread.ts';

const Answer = z.strictObject({
  text: notBlank(100_000).describe('The text. The signature of the inbox follows it.'),
  html: notBlank(200_000)
    .optional()
    .describe(
      'The text as HTML. Scripts, forms and `style` elements are removed. Without it, the email is plain text.',
    ),
  thread_id: id('fth').optional().describe('The thread to answer in. By default, the one with the last message.'),
});

export const answerOperations: Operation[] = [
  operation({
    name: 'prospects.reply',
    title: 'Answer a prospect',
    method: 'POST',
    path: `${base_path}/prospects/{id}/reply`,
    scope: 'messages:write',
    summary: 'Sends your own answer to a prospect, in the thread.',
    doc: 'The email is queued, and is sent from the inbox of the thread as soon as that is free. It has no unsubscribe link. It counts toward the limits of the inbox, but is also sent when they are reached. No event is emitted. It goes to the address that the prospect last wrote from, if the prospect has this address, else to the one that was written to. If the prospect or the address is barred, or the prospect unsubscribed, the response is 409 `suppressed`. If there is no thread, no usable address, or the inbox is disconnected or deleted, it is 409 `invalid_state_transition`.',
    params: idParams,
    body: Answer,
    reply: messages.schema,
    status: 202,
    errors: ['sample_prospect', 'suppressed', 'invalid_state_transition'],
    run: ({ tx, params, body, services: { vault } }) => answer(tx, vault, params.id, body),
  }),
];

async function answer(
  tx: Tx,
  vault: Vault,
  prospect_id: string,
  { text, html, thread_id }: z.infer<typeof Answer>,
): Promise<Message> {
  await holdSuppressions(tx);
  const prospect = await prospects.get(tx, prospect_id, { lock: true });
  const thread = await threadOf(tx, prospect_id, thread_id);
  await requireInbox(tx, thread);
  const before = await messagesBefore(tx, thread.id);
  const known = before.find(({ state }) => state !== 'unknown');
  const written = before.flatMap(({ address_hmac }) => (address_hmac === null ? [] : [address_hmac]));
  return sendMessage(tx, vault, {
    ...{ purpose: 'answer', inbox_id: thread.inbox_id, brand_id: thread.brand_id, prospect_id, thread_id: thread.id },
    subject: known ? replySubject(thread.subject ?? '') : (thread.subject ?? ''),
    ...{ body_text: text, body_html: html ?? null, ...storedThreadHeaders(known ?? null) },
    email_address_id: await bestAddressOf(tx, prospect, written),
  });
}

/** Messages that are looked at for the last one: a mail can be read, and an email sent once more, after others that are later. */
const most_recent = 100;

/** @throws Problem resource_not_found for a thread of somebody else; invalid_state_transition where there is none */
async function threadOf(tx: Tx, prospect_id: string, thread_id: string | undefined): Promise<Thread> {
  const recent = sql`array(
    select m.thread_id from recruitment.message m
    where m.organization_id = ${tx.organization_id} and m.prospect_id = ${prospect_id} and m.thread_id is not null
      and m.state in ('received', 'sent', 'bounced', 'unknown')
    order by m.id desc
    limit ${most_recent})`;
  const found = await tx.maybe<Thread>(sql`
    select ${threads.columns} from ${threads.from}
    where ${tenant(tx)} and t.prospect_id = ${prospect_id} and t.id = any(${thread_id === undefined ? recent : [thread_id]})
    order by t.last_message_at desc, t.id desc
    limit 1`);
  if (!found && thread_id !== undefined) throw notFound('thread', thread_id, 'thread_id');
  requireState(found !== undefined, 'The prospect has no thread to answer in. Add them to a campaign, or invite them.');
  return found as Thread;
}

/** @throws Problem invalid_state_transition */
async function requireInbox(tx: Tx, { inbox_id }: Thread): Promise<void> {
  const [inbox] = await inboxes.byIds(tx, [inbox_id]);
  requireState(
    inbox !== undefined,
    'The inbox of the thread was deleted. Answer from your own mail program, or send the `thread_id` of another thread.',
  );
}

interface Before {
  /** Nobody knows of an `unknown` one whether the prospect has it. */
  state: string;
  rfc_message_id: string;
  reference_ids: string[];
  other_message_ids: string[];
  address_hmac: Buffer | null;
}

/** Reads the last replies, the last one first, then what was sent last. */
async function messagesBefore(tx: Tx, thread_id: string): Promise<Before[]> {
  const newest = (those: Sql) =>
    tx.all<Before>(sql`
      select t.state, t.rfc_message_id, t.reference_ids, t.other_message_ids, t.address_hmac
      from recruitment.message t
      where ${tenant(tx)} and t.thread_id = ${thread_id} and ${those}
      limit 20`);
  const [replies, sent] = await Promise.all([
    newest(sql`t.purpose = 'reply' order by t.received_at desc, t.id desc`),
    newest(sql`t.direction = 'outbound' and t.state in ('sent', 'unknown') order by t.id desc`),
  ]);
  return [...replies, ...sent];
}
