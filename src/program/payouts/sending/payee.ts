import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { payeeName } from '../../partners/partner.ts';
import type { PaidBy } from '../can_pay.ts';
import type { Payee } from '../eligibility.ts';
import type { Payout } from '../payout.ts';

export interface PayeeRow extends Payee {
  partner_name: string;
  partner_email: string;
  details: Buffer | null;
  hint: string | null;
  /** When the payout method was last changed. */
  changed_at: string | null;
}

/** The partners of payouts, but for those who are deleted. */
export async function payeesOf(tx: Tx, of: Payout[]): Promise<Map<string, PayeeRow>> {
  const rows = await tx.all<PayeeRow & { id: string }>(sql`
    select t.id, t.status, t.min_payout_minor, t.tax_form_status, m.method, m.details, m.hint, m.updated_at as changed_at,
      t.email as partner_email, ${payeeName('t')} as partner_name
    from program.partner t
    left join program.payout_method m on m.organization_id = t.organization_id and m.partner_id = t.id
    where ${tenant(tx)} and t.id = any(${of.map(({ partner_id }) => partner_id)}) and t.deleted_at is null`);
  return new Map(rows.map((row) => [row.id, row]));
}

/** How the partner of a payout is paid. Ask only where the partner has a payout method. */
export const paidBy = ({ partner_id }: Pick<Payout, 'partner_id'>, { method, details }: PayeeRow): PaidBy => ({
  ...{ partner_id, details },
  method: method as string,
});
