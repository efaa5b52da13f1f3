/**
 * Reads one mail: classifies it, finds the one of ours that it answers, and applies what it changes, in one transaction with the cursor.
 *
 * It answers what it names: by the id in a mail to List-Unsubscribe, the id that a bounce returns, In-Reply-To and References; else it is found by its sender (of a
 * report: whom it is about), where a sequence of the inbox wrote to them before it came. Tests of campaigns are answered by nobody. What answers none is private:
 * it is never stored and never logged.
 */

import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { databaseTime } from '../../core/values/clock.ts';
import type { OwnServer } from '../../mail/incoming/message/authserv.ts';
import { namesOf } from '../composing/message_ids.ts';
import { hashesOf } from '../contact/address.ts';
import type { InboxKey } from '../inboxes/inbox.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { applyBounce } from './bounce.ts';
import type { Classifier } from './classifier.ts';
import type { Moves, StoredMail } from './folder.ts';
import { type Answer, type Answered, answered_columns, applyOwnCopy } from './inbound.ts';
import { mailRead, replyRead, type Verdict } from './metrics.ts';
import { applyComplaint, applyUnsubscribe } from './opt_outs.ts';
import { applyAutoReply, applyReply, isForgery, isUncertainWish, keepForged, meaningOf } from './reply.ts';

export interface Reader {
  inbox: InboxKey;
  own_addresses: string[];
  own_server: OwnServer;
  classifier: Classifier;
  context: Pick<WorkerContext, 'store' | 'services' | 'log'>;
}

/** Reads a mail. What answers none of ours changes nothing but the cursor. */
export async function readMail(
  mail: StoredMail,
  { begin, advance }: Moves,
  reader: Reader,
): Promise<'applied' | 'incomplete'> {
  const { inbox, context } = reader;
  const answer = await classify(mail, reader);
  const opening = { organization_id: inbox.organization_id, request_id: null };
  const verdict = await transaction(context.store, opening, async (tx) => {
    const is_over = begin && !(await begin(tx));
    const made = is_over ? 'known' : await applyMail(tx, answer, mail, reader);
    if (made !== 'incomplete') await advance(tx);
    return made;
  });
  if (verdict === 'incomplete') return verdict;
  const is_new_answer = !['own', 'unrelated', 'known', 'forged'].includes(verdict);
  mailRead(verdict, is_new_answer ? databaseTime() - mail.arrived_at.getTime() : undefined);
  if (verdict === 'reply') replyRead(meaningOf(answer).kind);
  return 'applied';
}

export type Answering = Omit<Answer, 'answered' | 'is_proven'>;

/** Classifies a mail. @param is_classified false: it is read alone @throws TookTooLong, or whatever it could not be classified for */
export async function classify(
  { source, arrived_at }: StoredMail,
  reader: Reader,
  is_classified = true,
): Promise<Answering> {
  const { inbox, own_addresses, own_server, classifier } = reader;
  const classified = await classifier.ask({ mail: source, arrived_at, own_addresses, own_server, is_classified });
  // Replaces a Message-ID that is missing or that another mail has.
  const spare_message_id = `${classified.content_hash}@message-id.invalid`;
  const rfc_message_id = classified.message.message_id ?? spare_message_id;
  const content_hash = Buffer.from(classified.content_hash, 'hex');
  return {
    ...classified,
    rfc_message_id,
    spare_message_id,
    content_hash,
    arrived_at,
    inbox_id: inbox.inbox_id,
    own_domains: own_server.hosts,
  };
}

async function applyMail(
  tx: Tx,
  classified: Answering,
  { whole }: StoredMail,
  { context: { services } }: Reader,
): Promise<Verdict | 'incomplete'> {
  if (classified.classification.kind === 'own') {
    await applyOwnCopy(tx, classified.message.message_id);
    return 'own';
  }
  const match = await findAnswered(tx, services.vault, classified);
  if (!match) return 'unrelated';
  return whole ? applyAnswer(tx, services.vault, { ...classified, ...match }) : 'incomplete';
}

type Effect = 'reply' | 'auto_reply' | 'unsubscribe' | 'bounce' | 'complaint' | 'forged' | 'known' | 'unrelated';

const effects: Record<string, (tx: Tx, vault: Vault, answer: Answer) => Promise<Effect>> = {
  reply: applyReply,
  auto_reply: applyAutoReply,
  unsubscribe: applyUnsubscribe,
  bounce: applyBounce,
  complaint: applyComplaint,
};

/** Applies what a mail changes that answers one of ours. Once: a mail that was read before changes nothing. */
async function applyAnswer(tx: Tx, vault: Vault, answer: Answer): Promise<Effect> {
  if (isForgery(answer)) return keepForged(tx, vault, answer);
  const apply = isUncertainWish(answer) ? applyReply : effects[answer.classification.kind];
  return apply ? apply(tx, vault, answer) : 'unrelated';
}

/** "Else From with a sequence of this inbox open or at most 180 days old." */
const most_age = '180 days';
/** Clocks differ by so much: a mail that came before ours answers something else. */
const clock_slack_ms = 600_000;
const most_ids = 50;

type Match = Pick<Answer, 'answered' | 'is_proven'>;

/**
 * Finds it by In-Reply-To, References, a bounce's original id or the id in the subject of a mail to List-Unsubscribe; else by the address that it is from,
 * or that a bounce or a complaint is about.
 */
export async function findAnswered(tx: Tx, vault: Vault, mail: Answering): Promise<Match | undefined> {
  const { classification, message, named_ids } = mail;
  if (classification.unsubscribe_id) {
    const named = await byId(tx, classification.unsubscribe_id);
    if (named) return { answered: named, is_proven: true };
  }
  const original = classification.original_message_id === null ? [] : [classification.original_message_id];
  const ids = [...new Set([...original, ...message.answers, ...named_ids].flatMap(namesOf))].slice(0, most_ids);
  const named = await byMessageIds(tx, ids);
  if (named) return named;
  const answered = await byAddresses(tx, vault, mail);
  return answered && { answered, is_proven: false };
}

const byId = (tx: Tx, id: string): Promise<Answered | undefined> =>
  tx.maybe<Answered>(sql`
    select ${answered_columns} from recruitment.message t
    where ${tenant(tx)} and t.id = ${id} and t.direction = 'outbound' and t.purpose <> 'test'`);

/** An answer to an answer is one to the last mail of ours in its thread; its id is known to whoever wrote it. */
async function byMessageIds(tx: Tx, ids: string[]): Promise<Match | undefined> {
  if (ids.length === 0) return undefined;
  const named = await tx.maybe<Answered & { is_proven: boolean }>(sql`
    with named as (
      select m.id, m.thread_id, m.direction, array_position(${ids}::text[], m.rfc_message_id) as place
      from recruitment.message m
      where m.organization_id = ${tx.organization_id} and m.rfc_message_id = any(${ids}) and m.purpose <> 'test'
      union all
      select m.id, m.thread_id, m.direction, (select min(array_position(${ids}::text[], o.id)) from unnest(m.other_message_ids) as o (id))
      from recruitment.messages_known_as(${ids}) as k (id)
      join recruitment.message m on m.organization_id = ${tx.organization_id} and m.id = k.id
      where m.purpose <> 'test'
    )
    select ${answered_columns}, n.direction = 'outbound' as is_proven
    from named n
    cross join lateral (
      select n.id where n.direction = 'outbound'
      union all
      (
        select o.id from recruitment.message o
        where o.organization_id = ${tx.organization_id} and o.thread_id = n.thread_id and o.direction = 'outbound' and n.direction = 'inbound'
        order by o.id desc
        limit 1
      )
    ) as answered
    join recruitment.message t on ${tenant(tx)} and t.id = answered.id
    order by n.place, t.id
    limit 1`);
  if (!named) return undefined;
  const { is_proven, ...answered } = named;
  return { answered, is_proven };
}

async function byAddresses(
  tx: Tx,
  vault: Vault,
  { classification, message, inbox_id, arrived_at }: Answering,
): Promise<Answered | undefined> {
  const is_report = classification.kind === 'bounce' || classification.kind === 'complaint';
  const addresses = is_report ? classification.recipients.flatMap(({ address }) => address ?? []) : [message.from];
  const known = addresses.filter((address) => address !== '').slice(0, most_ids);
  if (known.length === 0) return undefined;
  const hash = await keyedHash(tx, vault);
  const hashes = known.map((address) => hashesOf(hash, address).address_hmac);
  const latest = new Date(arrived_at.getTime() + clock_slack_ms).toISOString();
  return tx.maybe<Answered>(sql`
    select last.*
    from unnest(${hashes}::bytea[]) as known (address_hmac)
    cross join lateral (
      select ${answered_columns}
      from recruitment.message t
      join recruitment.sequence s on s.organization_id = t.organization_id and s.id = t.sequence_id
      where ${tenant(tx)} and t.inbox_id = ${inbox_id} and t.address_hmac = known.address_hmac
        and t.direction = 'outbound' and t.sequence_id is not null and (t.state in ('sending', 'sent', 'unknown', 'bounced') or t.resends > 0)
        and coalesce(t.sent_at, t.created_at) <= ${latest}::timestamptz
        and (s.open or coalesce(t.sent_at, t.created_at) >= ${tx.now}::timestamptz - ${most_age}::interval)
      order by t.id desc
      limit 1
    ) as last
    order by last.id desc
    limit 1`);
}
