import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Answer } from './answer.ts';
import { takeAutoReply } from './auto_reply.ts';
import { takeBounce } from './bounce.ts';
import { takeComplaint } from './complaint.ts';
import { isUncertainWish, takeReply } from './reply.ts';
import { isSetAside, keepForged } from './unproven.ts';
import { takeUnsubscribe } from './unsubscribe.ts';

export type Effect = 'reply' | 'auto_reply' | 'unsubscribe' | 'bounce' | 'complaint' | 'forged' | 'known' | 'unrelated';

const effects: Record<string, (tx: Tx, vault: Vault, answer: Answer) => Promise<Effect>> = {
  reply: takeReply,
  auto_reply: takeAutoReply,
  unsubscribe: takeUnsubscribe,
  bounce: takeBounce,
  complaint: takeComplaint,
};

/** What a mail changes that answers one of ours. Once: a mail that was read before changes nothing. */
export async function takeAnswer(tx: Tx, vault: Vault, answer: Answer): Promise<Effect> {
  if (isSetAside(answer)) return keepForged(tx, vault, answer);
  const take = isUncertainWish(answer) ? takeReply : effects[answer.judgement.kind];
  return take ? take(tx, vault, answer) : 'unrelated';
}
