/** One mail: what it is, which of ours it answers, and what that changes, in one transaction with the cursor. */
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { databaseTime } from '../../core/values/clock.ts';
import type { OwnServer } from '../../mail/incoming/message/authserv.ts';
import type { Answer } from './answer.ts';
import type { Judges } from './classifier.ts';
import type { ReadInbox } from './cursor.ts';
import { takeAnswer } from './effects.ts';
import type { Moves, StoredMail } from './folder.ts';
import { findAnswered } from './match.ts';
import { mailRead, replyRead, type Verdict } from './metrics.ts';
import { takeOwnCopy } from './proof.ts';
import { meaningOf } from './reply.ts';

export interface Reader {
  inbox: ReadInbox;
  own_addresses: string[];
  own_server: OwnServer;
  judges: Judges;
  context: Pick<WorkerContext, 'store' | 'services' | 'log'>;
}

/** Reads a mail. What answers none of ours changes nothing but the cursor. */
export async function readMail(
  mail: StoredMail,
  { begin, advance }: Moves,
  reader: Reader,
): Promise<'taken' | 'incomplete'> {
  const { inbox, context } = reader;
  const answer = await judge(mail, reader);
  const opening = { organization_id: inbox.organization_id, request_id: null };
  const verdict = await transaction(context.store, opening, async (tx) => {
    const is_over = begin && !(await begin(tx));
    const made = is_over ? 'known' : await takeMail(tx, answer, mail, reader);
    if (made !== 'incomplete') await advance(tx);
    return made;
  });
  if (verdict === 'incomplete') return verdict;
  const is_told = !['own', 'unrelated', 'known', 'forged'].includes(verdict);
  mailRead(verdict, is_told ? databaseTime() - mail.arrived_at.getTime() : undefined);
  if (verdict === 'reply') replyRead(meaningOf(answer).kind);
  return 'taken';
}

export type Answering = Omit<Answer, 'answered' | 'is_proven'>;

/** What a mail is. @param is_judged false: it is read alone @throws TookTooLong, or whatever it could not be judged for */
export async function judge({ source, arrived_at }: StoredMail, reader: Reader, is_judged = true): Promise<Answering> {
  const { inbox, own_addresses, own_server, judges } = reader;
  const judged = await judges.ask({ mail: source, arrived_at, own_addresses, own_server, is_judged });
  // Of a mail without a Message-ID, or with one that another has.
  const spare_message_id = `${judged.content_hash}@message-id.invalid`;
  const rfc_message_id = judged.message.message_id ?? spare_message_id;
  const content_hash = Buffer.from(judged.content_hash, 'hex');
  return {
    ...judged,
    rfc_message_id,
    spare_message_id,
    content_hash,
    arrived_at,
    inbox_id: inbox.inbox_id,
    own_domains: own_server.hosts,
  };
}

async function takeMail(
  tx: Tx,
  judged: Answering,
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
