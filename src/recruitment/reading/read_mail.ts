/** Reads one mail: classifies it, finds the one of ours that it answers, and applies what it changes, in one transaction with the cursor. */
import type { Vault } from '../../core/encryption/vault.ts';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { databaseTime } from '../../core/values/clock.ts';
import type { OwnServer } from '../../mail/incoming/message/authserv.ts';
import { applyAutoReply } from './auto_reply.ts';
import { applyBounce } from './bounce.ts';
import type { Classifier } from './classifier.ts';
import type { ReadInbox } from './cursor.ts';
import type { Moves, StoredMail } from './folder.ts';
import { type Answer, applyOwnCopy } from './inbound.ts';
import { findAnswered } from './match.ts';
import { mailRead, replyRead, type Verdict } from './metrics.ts';
import { applyComplaint, applyUnsubscribe } from './opt_outs.ts';
import { applyReply, isUncertainWish, meaningOf } from './reply.ts';
import { isSetAside, keepForged } from './unproven.ts';

export interface Reader {
  inbox: ReadInbox;
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
  if (isSetAside(answer)) return keepForged(tx, vault, answer);
  const apply = isUncertainWish(answer) ? applyReply : effects[answer.classification.kind];
  return apply ? apply(tx, vault, answer) : 'unrelated';
}
