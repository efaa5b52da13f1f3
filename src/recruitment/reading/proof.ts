/** Proof that an email was sent of which nobody could tell: its copy, or an answer to it. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { recordEnds } from '../sending/record_sent.ts';
import type { Answered } from './answer.ts';

/** To be called before other rows are locked. Tells `message.sent` before all that the answer tells. */
export async function proveSent(tx: Tx, { id: message_id, state }: Pick<Answered, 'id' | 'state'>): Promise<void> {
  if (state === 'unknown') await recordEnds(tx, [{ message_id, as: 'sent' }]);
}

/** A copy of a mail of ours came in. */
export async function takeOwnCopy(tx: Tx, rfc_message_id: string | null): Promise<void> {
  const own = await tx.maybe<{ id: string }>(sql`
    select t.id from recruitment.message t
    where ${tenant(tx)} and t.rfc_message_id = ${rfc_message_id} and t.direction = 'outbound' and t.state = 'unknown'`);
  if (own) await proveSent(tx, { id: own.id, state: 'unknown' });
}
