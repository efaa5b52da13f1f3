/** Keeps a mail that came in, in the thread of the one that it answers. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { storable } from '../../core/values/texts/stored_text.ts';
import { hashesOf } from '../contact/address.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { type AutoReplyKind, messages, type Purpose, type ReplyKind } from '../sequences/message.ts';
import type { Answer } from './answer.ts';

const longest_text = 100_000;
const longest_subject = 1_000;
const most_references = 50;

/** Another transaction keeps the same mail: what this one changed is rolled back. */
export class ReadTwice extends Error {
  override readonly name = 'ReadTwice';
}

/**
 * Whether the mail was read before: in this inbox, or in another that it was sent to as well. Programs give one Message-ID to many mails: one
 * that says something else, or comes from somebody else, is another mail.
 */
export async function isKnown(
  tx: Tx,
  vault: Vault,
  { rfc_message_id, spare_message_id, content_hash, answered, message }: Answer,
): Promise<boolean> {
  const { address_hmac } = hashesOf(await keyedHash(tx, vault), message.from);
  const known = await tx.maybe(sql`
    select from recruitment.message t
    where ${tenant(tx)} and t.rfc_message_id in (${rfc_message_id}, ${spare_message_id}) and t.direction = 'inbound'
      and (t.content_hash is null or t.content_hash = ${content_hash})
      and (t.prospect_id is not distinct from ${answered.prospect_id} or t.address_hmac = ${address_hmac})`);
  return known !== undefined;
}

interface Kept {
  purpose: Purpose;
  reply_kind?: ReplyKind;
  auto_reply_kind?: AutoReplyKind | null;
  confidence?: number | null;
  needs_review?: boolean;
  named?: object | null;
  /** False for what no person wrote: its text is not kept. */
  has_text: boolean;
}

/** @returns its id @throws ReadTwice */
export async function keepInbound(tx: Tx, vault: Vault, answer: Answer, kept: Kept): Promise<string> {
  const { answered, message, judgement, arrived_at, inbox_id, content_hash } = answer;
  const { has_text, ...values } = kept;
  const thread_id = answered.thread_id ?? (await openThread(tx, answer));
  const id = newId('fms');
  const received_at = arrived_at.toISOString() < tx.now ? arrived_at.toISOString() : tx.now;
  const row = {
    ...{ id, thread_id, inbox_id, direction: 'inbound', state: 'received', received_at, content_hash },
    ...{ brand_id: answered.brand_id, prospect_id: answered.prospect_id },
    ...{ campaign_id: answered.campaign_id, sequence_id: answered.sequence_id },
    subject: storable(message.subject, longest_subject),
    body_text: has_text ? storable(judgement.text, longest_text) : '',
    language_code: judgement.language,
    in_reply_to: message.answers[0] ?? null,
    reference_ids: message.answers.slice(0, most_references),
    ...(has_text && message.from !== '' ? hashesOf(await keyedHash(tx, vault), message.from) : {}),
    needs_review: judgement.needs_review,
    ...values,
  };
  const inserted =
    (await insertOnce(tx, row, answer.rfc_message_id)) ?? (await insertOnce(tx, row, answer.spare_message_id));
  if (!inserted) throw new ReadTwice();
  await tellThread(tx, thread_id, row, kept.purpose === 'reply' ? (kept.reply_kind ?? null) : null);
  return id;
}

const insertOnce = (tx: Tx, row: object, rfc_message_id: string) =>
  messages.insert(
    tx,
    { ...row, rfc_message_id: storable(rfc_message_id, longest_subject) },
    sql`on conflict do nothing`,
  );

async function openThread(tx: Tx, { answered, inbox_id }: Answer): Promise<string> {
  const { thread_id } = await tx.one<{ thread_id: string }>(sql`
    insert into recruitment.thread (organization_id, id, brand_id, prospect_id, inbox_id, campaign_id, sequence_id, subject, messages, last_message_at)
    values (${tx.organization_id}, ${newId('fth')}, ${answered.brand_id}, ${answered.prospect_id}, ${inbox_id}, ${answered.campaign_id},
      ${answered.sequence_id}, ${answered.subject}, 1, ${tx.now}::timestamptz)
    returning id as thread_id`);
  await tx.all(sql`
    update recruitment.message t set thread_id = ${thread_id} where ${tenant(tx)} and t.id = ${answered.id} and t.thread_id is null`);
  await tx.all(sql`
    update recruitment.sequence t set thread_id = ${thread_id}
    where ${tenant(tx)} and t.id = ${answered.sequence_id} and t.thread_id is null`);
  return thread_id;
}

function tellThread(
  tx: Tx,
  thread_id: string,
  { received_at, needs_review }: { received_at: string; needs_review: boolean },
  reply_kind: ReplyKind | null,
): Promise<object[]> {
  return tx.all(sql`
    update recruitment.thread t set
      messages = t.messages + 1,
      needs_review = t.needs_review or ${needs_review},
      reply_kind = coalesce(${reply_kind}, t.reply_kind),
      last_message_at = greatest(t.last_message_at, ${received_at}::timestamptz),
      last_reply_at = case when ${reply_kind !== null} then ${received_at}::timestamptz else t.last_reply_at end,
      updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${thread_id}`);
}
