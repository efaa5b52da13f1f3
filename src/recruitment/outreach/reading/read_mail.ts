/** One mail: what it is, which of ours it answers, and what that changes, in one transaction with the cursor. */
import { createHash } from 'node:crypto';
import type { WorkerContext } from '../../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../../core/postgres/transaction.ts';
import { databaseTime } from '../../../core/values/clock.ts';
import { judgeMessage } from '../../../mail/incoming/judge.ts';
import { readAuthentication } from '../../../mail/incoming/message/authentication_results.ts';
import { type Message, readMessage } from '../../../mail/incoming/message/message.ts';
import { judgeReply, type Judgement as Meaning } from '../../replies/judge.ts';
import type { ReadInbox } from './cursor.ts';
import type { Answer } from './effects/answer.ts';
import { takeAnswer } from './effects/effects.ts';
import { findAnswered } from './effects/match.ts';
import { takeOwnCopy } from './effects/proof.ts';
import { meaningOf } from './effects/reply.ts';
import type { Moves, StoredMail } from './folder.ts';
import { mailRead, replyRead, type Verdict } from './metrics.ts';

export interface Reader {
  inbox: ReadInbox;
  own_addresses: string[];
  own_domains: string[];
  context: Pick<WorkerContext, 'store' | 'services' | 'log'>;
}

/** Reads a mail. What answers none of ours changes nothing but the cursor. */
export async function readMail(
  mail: StoredMail,
  { begin, advance }: Moves,
  reader: Reader,
): Promise<'taken' | 'incomplete'> {
  const { inbox, context } = reader;
  const message = await readMessage(mail.source);
  const answer = judge(message, mail, reader);
  const opening = { organization_id: inbox.organization_id, request_id: null };
  const verdict = await transaction(context.store, opening, async (tx) => {
    const is_over = begin && !(await begin(tx));
    const made = is_over ? 'known' : await takeMail(tx, answer, mail, reader);
    if (made !== 'incomplete') await advance(tx);
    return made;
  });
  if (verdict === 'incomplete') return verdict;
  const is_told = !['own', 'unrelated', 'known'].includes(verdict);
  mailRead(verdict, is_told ? databaseTime() - mail.arrived_at.getTime() : undefined);
  if (verdict === 'reply') replyRead(meaningOf(answer).kind);
  return 'taken';
}

export type Judged = Omit<Answer, 'answered' | 'is_proven'>;

/** Judges a mail, by `judgeIt` where that is given, and keeps of what a person means what the judgement does not say. */
export function judge(
  message: Message,
  { arrived_at }: StoredMail,
  { inbox, own_addresses, own_domains }: Reader,
  judgeIt: typeof judgeMessage = judgeMessage,
): Judged {
  let meaning: Meaning | undefined;
  const judgement = judgeIt(message, {
    own_addresses,
    readMeaning: (text, subject) => {
      meaning = judgeReply(text, subject);
      return meaning;
    },
    now: arrived_at,
  });
  const content_hash = hashOf(message, judgement.original_message_id);
  // Of a mail without a Message-ID, or with one that another has.
  const spare_message_id = `${content_hash.toString('hex')}@message-id.invalid`;
  const ids = { rfc_message_id: message.message_id ?? spare_message_id, spare_message_id, content_hash };
  const authentication = readAuthentication(message, own_domains);
  return { message, judgement, meaning, authentication, ...ids, arrived_at, inbox_id: inbox.inbox_id, own_domains };
}

/** The same each time that a mail is read. Reports on several mails may have the same text. */
function hashOf({ from, subject, date, text, html, answers }: Message, original: string | null): Buffer {
  const about = original ?? answers.join(' ');
  const parts = [from, subject, date?.toISOString() ?? '', text, html, about];
  return createHash('sha256').update(JSON.stringify(parts)).digest();
}

async function takeMail(
  tx: Tx,
  judged: Judged,
  { whole }: StoredMail,
  { context: { services } }: Reader,
): Promise<Verdict | 'incomplete'> {
  if (judged.judgement.kind === 'own') {
    await takeOwnCopy(tx, judged.message.message_id);
    return 'own';
  }
  const match = await findAnswered(tx, services.vault, judged);
  if (!match) return 'unrelated';
  return whole ? takeAnswer(tx, services.vault, { ...judged, ...match }) : 'incomplete';
}
