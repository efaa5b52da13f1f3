import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { newId } from '../../core/values/id.ts';
import { event } from '../events/catalogue.ts';

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
] as const;
export const severities = ['low', 'medium', 'high'] as const;

export interface RiskFlagDraft {
  program_id: string;
  partner_id: string;
  customer_id: string | null;
  kind: (typeof kinds)[number];
  severity: (typeof severities)[number];
  evidence: Record<string, string | number>;
}

/** Raises a flag and tells `risk_flag.created`, unless one of this kind is open on the subject. */
export async function raiseFlag(tx: Tx, noticed: RiskFlagDraft): Promise<void> {
  const risk_flag_id = newId('rsk');
  const times = { created_at: tx.now, updated_at: tx.now };
  const row = { ...noticed, ...times, id: risk_flag_id };
  if (!(await insert(tx, 'program.risk_flag', row, { on_conflict: sql`on conflict do nothing` }))) return;
  const { program_id, ...data } = noticed;
  tx.emit(event('risk_flag.created', program_id, { risk_flag_id, ...data }));
}
