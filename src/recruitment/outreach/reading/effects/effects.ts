import type { Vault } from '../../../../core/encryption/vault.ts';
import type { Tx } from '../../../../core/postgres/transaction.ts';
import type { Answer } from './answer.ts';
import { takeAutoReply } from './auto_reply.ts';
import { takeComplaint } from './complaint.ts';
import { takeReply } from './reply.ts';
import { takeUnsubscribe } from './unsubscribe.ts';

export type Effect = 'reply' | 'auto_reply' | 'unsubscribe' | 'complaint' | 'known' | 'unrelated';

/** What a mail changes that answers one of ours. Once: a mail that was read before changes nothing. */
export async function takeAnswer(tx: Tx, vault: Vault, answer: Answer): Promise<Effect> {
  const { kind } = answer.judgement;
  if (kind === 'reply') return takeReply(tx, vault, answer);
  if (kind === 'auto_reply') return takeAutoReply(tx, vault, answer);
  if (kind === 'unsubscribe') return takeUnsubscribe(tx, vault, answer);
  if (kind === 'complaint') return takeComplaint(tx, vault, answer);
  return 'unrelated';
}
