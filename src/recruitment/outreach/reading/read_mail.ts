/** One mail: what it is, which of ours it answers, and what that changes, in one transaction with the cursor. */
import { createHash } from 'node:crypto';
import type { WorkerContext } from '../../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../../core/postgres/transaction.ts';
import { judgeMessage } from '../../../mail/incoming/judge.ts';
import { type Message, readMessage } from '../../../mail/incoming/message/message.ts';
import { judgeReply, type Judgement as Meaning } from '../../replies/judge.ts';
import type { ReadInbox } from './cursor.ts';
import type { Answer } from './effects/answer.ts';
import { takeAnswer } from './effects/effects.ts';
import { findAnswered } from './effects/match.ts';
import { takeOwnCopy } from './effects/proof.ts';
import type { StoredMail } from './folder.ts';
import { mailRead, type Verdict } from './metrics.ts';

export interface Reader {
  inbox: ReadInbox;
  own_addresses: string[];
  context: Pick<WorkerContext, 'store' | 'services'>;
}

/** Reads a mail. What answers none of ours changes nothing but the cursor. */
export async function readMail(
  mail: StoredMail,
  advance: (tx: Tx) => Promise<void>,
  reader: Reader,
): Promise<'taken' | 'incomplete'> {
  const { inbox, context } = reader;
  const message = await readMessage(mail.source);
  const answer = judge(message, mail, reader);
  const opening = { organization_id: inbox.organization_id, request_id: null };
  const verdict = await transaction(context.store, opening, async (tx) => {
    const made = await takeMail(tx, answer, mail, reader);
    if (made !== 'incomplete') await advance(tx);
    return made;
  });
  if (verdict === 'incomplete') return verdict;
  const is_told = !['own', 'unrelated', 'known'].includes(verdict);
  mailRead(verdict, is_told ? Date.now() - mail.arrived_at.getTime() : undefined);
  return 'taken';
}

type Judged = Omit<Answer, 'answered'>;

/** Judges a mail, and keeps of what a person means what the judgement does not say. */
function judge(message: Message, { arrived_at }: StoredMail, { inbox, own_addresses }: Reader): Judged {
  let meaning: Meaning | undefined;
  const judgement = judgeMessage(message, {
    own_addresses,
    readMeaning: (text, subject) => {
      meaning = judgeReply(text, subject);
      return meaning;
    },
    now: arrived_at,
  });
  const spare_message_id = madeId(message, judgement.original_message_id);
  const ids = { rfc_message_id: message.message_id ?? spare_message_id, spare_message_id };
  return { message, judgement, meaning, ...ids, arrived_at, inbox_id: inbox.inbox_id };
}

/** Of a mail without a Message-ID, or with one of ours: the same each time that it is read. Reports on several mails may have the same text. */
function madeId({ from, subject, date, text, html, answers }: Message, original: string | null): string {
  const about = original ?? answers.join(' ');
  const parts = [from, subject, date?.toISOString() ?? '', text.slice(0, 10_000), html.slice(0, 10_000), about];
  return `${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}@message-id.invalid`;
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
  const answered = await findAnswered(tx, services.vault, judged);
  if (!answered) return 'unrelated';
  return whole ? takeAnswer(tx, services.vault, { ...judged, answered }) : 'incomplete';
}
