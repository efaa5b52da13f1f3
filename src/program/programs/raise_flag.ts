import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { newId } from '../../core/values/id.ts';
import { event } from '../events/event.ts';

export const kinds = [
  'self_referral',
  'same_ip',
  'click_velocity',
  'conversion_velocity',
  'disposable_email',
  'blocked_country',
  'paid_ad_traffic',
  'refund_rate',
  'duplicate_partner',
  'double_payout',
] as const;
export const severities = ['low', 'medium', 'high'] as const;

/** A risk flag as a monitoring rule raises it. */
export interface RiskFlagDraft {
  program_id: string;
  partner_id: string;
  customer_id: string | null;
  kind: (typeof kinds)[number];
  severity: (typeof severities)[number];
  evidence: Record<string, string | number>;
}

/** Raises a flag and emits `risk_flag.created`, unless a flag of this kind is open for the same partner or customer. */
export async function raiseFlag(tx: Tx, draft: RiskFlagDraft): Promise<void> {
  const risk_flag_id = newId('rsk');
  const row = { ...draft, id: risk_flag_id, created_at: tx.now, updated_at: tx.now };
  if (!(await insert(tx, 'program.risk_flag', row, { on_conflict: sql`on conflict do nothing` }))) return;
  tx.emit(event('risk_flag.created', draft, { risk_flag_id }));
}
