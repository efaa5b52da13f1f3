import type { Vault } from '../../../../core/encryption/vault.ts';
import type { Tx } from '../../../../core/postgres/transaction.ts';
import { least_confidence } from '../../../../mail/incoming/judge.ts';
import type { Answer } from './answer.ts';
import { takeAutoReply } from './auto_reply.ts';
import { takeBounce } from './bounce.ts';
import { takeComplaint } from './complaint.ts';
import { takeReply } from './reply.ts';
import { takeUnsubscribe } from './unsubscribe.ts';

export type Effect = 'reply' | 'auto_reply' | 'unsubscribe' | 'bounce' | 'complaint' | 'known' | 'unrelated';

const effects: Record<string, (tx: Tx, vault: Vault, answer: Answer) => Promise<Effect>> = {
  reply: takeReply,
  auto_reply: takeAutoReply,
  unsubscribe: takeUnsubscribe,
  bounce: takeBounce,
  complaint: takeComplaint,
};

/** What a mail changes that answers one of ours. Once: a mail that was read before changes nothing. */
export async function takeAnswer(tx: Tx, vault: Vault, answer: Answer): Promise<Effect> {
  const take = isUncertainWish(answer) ? takeReply : effects[answer.judgement.kind];
  return take ? take(tx, vault, answer) : 'unrelated';
}

/** An unsubscribe cannot be lifted: a text that only may ask for it is a reply that somebody should look at. */
const isUncertainWish = ({ judgement: { kind, confidence } }: Answer): boolean =>
  kind === 'unsubscribe' && confidence !== null && confidence < least_confidence;
