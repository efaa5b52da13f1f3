import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { event } from '../../events/event.ts';
import { type HeldReason, held_texts, reason_texts } from '../eligibility.ts';
import { type Payout, payouts } from '../payout.ts';

/** The time for which a payout that was not sent is skipped when payouts are sent automatically. */
const held_ms = 3_600_000;

/** Notes why a payout is not sent. Emits `payout.not_eligible` where that is a matter of the partner, once for each reason. */
export async function hold(tx: Tx, payout: Payout, reason: HeldReason): Promise<Payout> {
  const { held_reason } = await tx.one<{ held_reason: string | null }>(sql`
    select t.held_reason from program.payout t where ${tenant(tx)} and t.id = ${payout.id}`);
  const held_until = new Date(Date.parse(tx.now) + held_ms).toISOString();
  const after = await payouts.update(tx, payout.id, { held_reason: reason, held_until });
  if (held_reason !== reason && reason in reason_texts) {
    tx.emit(event('payout.not_eligible', after, { reason, reason_text: held_texts[reason] }));
  }
  return after;
}
