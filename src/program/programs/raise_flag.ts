import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insertion } from '../../core/postgres/write.ts';
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
  'dispute',
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
  /** The request that caused it, where that is not the one of the transaction. */
  request_id?: string | null;
}

/** Raises a flag and emits `risk_flag.created`, unless a flag of this kind is open for the same partner or customer. */
export const raiseFlag = (tx: Tx, draft: RiskFlagDraft): Promise<void> => raiseFlags(tx, [draft]);

/** The same for many flags, in one statement. */
export async function raiseFlags(tx: Tx, drafts: RiskFlagDraft[]): Promise<void> {
  if (drafts.length === 0) return;
  const now = { created_at: tx.now, updated_at: tx.now };
  const flags = drafts.map(({ request_id, ...draft }) => ({ id: newId('rsk'), draft, request_id }));
  const rows = flags.map(({ id, draft }) => ({ id, ...draft, status: 'open', ...now }));
  const raised = await tx.all<{ id: string }>(
    insertion(tx, 'program.risk_flag', rows, sql`on conflict do nothing returning t.id`),
  );
  const ids = new Set(raised.map(({ id }) => id));
  for (const { id, draft, request_id } of flags) {
    if (!ids.has(id)) continue;
    tx.emit({ ...event('risk_flag.created', draft, { risk_flag_id: id }), ...(request_id && { request_id }) });
  }
}
