/**
 * A mail that answers one of ours: keeps it, once, and proves that the one that it answers was sent.
 *
 * - A mail is known by its Message-ID and what it says in the whole organization: sent to two inboxes, it is kept once, and two mails under one Message-ID are
 *   two. Without a Message-ID, or with one that is taken, it gets one made from its sender, date, subject and text.
 * - What answers an answer of a person belongs to the campaign and the sequence of its thread.
 */
import sql, { raw, type Sql } from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { storable } from '../../core/values/texts/stored_text.ts';
import type { Classification } from '../../mail/incoming/classify.ts';
import type { Authentication } from '../../mail/incoming/message/authentication_results.ts';
import type { ReadMessage } from '../../mail/incoming/message/message.ts';
import { hashesOf } from '../contact/address.ts';
import { emailAddresses, opened } from '../contact/email_address.ts';
import type { Target } from '../contact/mark.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { type Prospect, prospects } from '../prospects/prospect.ts';
import type { Classification as Meaning } from '../replies/classify.ts';
import { recordEnds } from '../sending/record_sent.ts';
import { type AutoReplyKind, messages, type Purpose, type ReplyKind } from '../sequences/message.ts';

/** A mail of ours that somebody answers. */
export interface Answered {
  id: string;
  brand_id: string;
  /** Null once the prospect was erased. */
  prospect_id: string | null;
  thread_id: string | null;
  campaign_id: string | null;
  sequence_id: string | null;
  inbox_id: string;
  purpose: string;
  state: string;
  subject: string | null;
  address_hmac: Buffer | null;
  /** Null where nobody knows whether it was sent. */
  sent_at: string | null;
}

/** The columns of a message `t`. A person's answer is outside of campaigns; what answers it belongs to the campaign whose thread it is in. */
export const answered_columns = sql`
  t.id, t.brand_id, t.prospect_id, t.thread_id, coalesce(t.campaign_id, ${ofThread('campaign_id')}) as campaign_id,
  coalesce(t.sequence_id, ${ofThread('sequence_id')}) as sequence_id, t.inbox_id, t.purpose, t.state, t.subject, t.address_hmac, t.sent_at`;

function ofThread(column: 'campaign_id' | 'sequence_id'): Sql {
  return sql`(
    select ${raw(`h.${column}`)} from recruitment.thread h where h.organization_id = t.organization_id and h.id = t.thread_id
  )`;
}

/** A mail that came in, and the one that it answers. */
export interface Answer {
  message: ReadMessage;
  classification: Classification;
  /** The meaning of its words, where a person wrote them. */
  meaning: Meaning | undefined;
  answered: Answered;
  /** Ids that a bounce names anywhere. */
  named_ids: string[];
  /** The findings of the inbox's own server about its sender. */
  authentication: Authentication;
  /**
   * True if it names the Message-ID of `answered`, which only a receiver of that email knows. Otherwise anybody who knows an address can
   * have written it.
   */
  is_proven: boolean;
  /** The hash of what it says: the same for each copy of it. */
  content_hash: Buffer;
  /** Its Message-ID, without angle brackets, or one made of it where it has none. */
  rfc_message_id: string;
  /** The id in its place where that is the one of another mail. */
  spare_message_id: string;
  arrived_at: Date;
  /** The inbox that it came to. */
  inbox_id: string;
  /** The domains of the inbox's address, and of its servers. */
  own_domains: readonly string[];
}

const longest_text = 100_000;
const longest_subject = 1_000;
const most_references = 50;

/** Another transaction keeps the same mail: what this one changed is rolled back. */
class ReadTwice extends Error {
  override readonly name = 'ReadTwice';
}

/**
 * Returns whether the mail was read before: in this inbox, or in another that it was sent to as well. Programs give one Message-ID to many mails: one
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

/** Keeps a mail in the thread of the one that it answers. @returns its id @throws ReadTwice */
export async function keepInbound(tx: Tx, vault: Vault, answer: Answer, kept: Kept): Promise<string> {
  const { answered, message, classification, arrived_at, inbox_id, content_hash } = answer;
  const { has_text, ...values } = kept;
  const thread_id = answered.thread_id ?? (await openThread(tx, answer));
  const id = newId('fms');
  const received_at = arrived_at.toISOString() < tx.now ? arrived_at.toISOString() : tx.now;
  const row = {
    ...{ id, thread_id, inbox_id, direction: 'inbound', state: 'received', received_at, content_hash },
    ...{ brand_id: answered.brand_id, prospect_id: answered.prospect_id },
    ...{ campaign_id: answered.campaign_id, sequence_id: answered.sequence_id },
    subject: storable(message.subject, longest_subject),
    body_text: has_text ? storable(classification.text, longest_text) : '',
    language_code: classification.language,
    in_reply_to: message.answers[0] ?? null,
    reference_ids: message.answers.slice(0, most_references),
    ...(has_text && message.from !== '' ? hashesOf(await keyedHash(tx, vault), message.from) : {}),
    needs_review: classification.needs_review,
    ...values,
  };
  const inserted =
    (await insertOnce(tx, row, answer.rfc_message_id)) ?? (await insertOnce(tx, row, answer.spare_message_id));
  if (!inserted) throw new ReadTwice();
  await updateThread(tx, thread_id, row, kept.purpose === 'reply' ? (kept.reply_kind ?? null) : null);
  return id;
}

/**
 * Keeps a report that proves nothing for a person to look at: anybody who knows an address can write one. It changes nothing else: nobody is barred, nothing stops, and it
 * counts towards no guard.
 */
export async function keepUnproven<Kind extends 'bounce' | 'complaint'>(
  tx: Tx,
  vault: Vault,
  answer: Answer,
  kind: Kind,
): Promise<Kind | 'known' | 'unrelated'> {
  if (!(await lockedProspect(tx, answer.answered))) return 'unrelated';
  if (await isKnown(tx, vault, answer)) return 'known';
  await keepInbound(tx, vault, answer, { purpose: kind, has_text: false, needs_review: true });
  return kind;
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

function updateThread(
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

/** The prospect that was written to, locked until the transaction ends; undefined once erased, or its brand deleted. */
export async function lockedProspect(tx: Tx, { prospect_id }: Answered): Promise<Prospect | undefined> {
  if (prospect_id === null) return undefined;
  const [prospect] = await prospects.lockMany(tx, [prospect_id]);
  return prospect;
}

/** The targets of a bar: the address that was written to; where the prospect holds it no longer, the prospect as well. */
export async function targetsOf(
  tx: Tx,
  vault: Vault,
  { address_hmac }: Answered,
  prospect_id: string,
): Promise<Target[]> {
  const record = await emailAddresses.find(
    tx,
    sql`${tenant(tx)} and t.prospect_id = ${prospect_id} and t.address_hmac = ${address_hmac}`,
  );
  const email = record ? opened(vault, record).email : null;
  const address: Target[] = address_hmac === null ? [] : [{ kind: 'address', hmac: address_hmac, email }];
  return record ? address : [...address, { kind: 'prospect', prospect_id }];
}

/** Records that an email was sent of which nobody could tell: an answer proves it. To be called before other rows are locked. Emits `message.sent` before all that the answer emits. */
export async function proveSent(tx: Tx, { id: message_id, state }: Pick<Answered, 'id' | 'state'>): Promise<void> {
  if (state === 'unknown') await recordEnds(tx, [{ message_id, as: 'sent' }]);
}

/** Records that an email was sent whose copy came in. */
export async function applyOwnCopy(tx: Tx, rfc_message_id: string | null): Promise<void> {
  const own = await tx.maybe<{ id: string }>(sql`
    select t.id from recruitment.message t
    where ${tenant(tx)} and t.rfc_message_id = ${rfc_message_id} and t.direction = 'outbound' and t.state = 'unknown'`);
  if (own) await proveSent(tx, { id: own.id, state: 'unknown' });
}
