/** What a wish to be taken off changes: the same as the link of an email. */
import type { Vault } from '../../../../core/encryption/vault.ts';
import type { Tx } from '../../../../core/postgres/transaction.ts';
import { lockSuppressions } from '../../../prospects/barred_site.ts';
import { unsubscribe } from '../../unsubscribing/unsubscribe.ts';
import type { Answer } from './answer.ts';
import { isKnown, keepInbound } from './inbound.ts';
import { proveSent } from './proof.ts';
import { lockedProspect } from './prospect.ts';

/** The sender's address is barred beside the one that was written to. Of a prospect who was erased nothing is kept. */
export async function takeUnsubscribe(tx: Tx, vault: Vault, answer: Answer): Promise<'unsubscribe' | 'known'> {
  await lockSuppressions(tx);
  if (await isKnown(tx, vault, answer)) return 'known';
  await proveSent(tx, answer.answered);
  const prospect = await lockedProspect(tx, answer.answered);
  const id = prospect
    ? await keepInbound(tx, vault, answer, { purpose: 'unsubscribe', has_text: true })
    : answer.answered.id;
  await unsubscribe(tx, vault, { id });
  return 'unsubscribe';
}
