import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { payeeName } from '../../partners/partner.ts';
import type { Program } from '../../programs/program.ts';
import { canPay, type PaidBy } from '../can_pay.ts';
import { type NotEligibleReason, notEligible, type Payee } from '../eligibility.ts';
import type { Payout } from '../payout.ts';

export interface PayeeRow extends Payee {
  partner_name: string;
  partner_email: string;
  details: Buffer | null;
  hint: string | null;
  /** The time of the last change of the payout method. */
  changed_at: string | null;
  /** Nothing is paid by the method before: see `setPayoutMethod`. */
  held_until: string | null;
}

/** The partners of payouts, but for those who are deleted. */
export async function payeesOf(tx: Tx, of: Payout[]): Promise<Map<string, PayeeRow>> {
  const rows = await tx.all<PayeeRow & { id: string }>(sql`
    select t.id, t.status, t.min_payout_minor, t.tax_form_status, m.method, m.details, m.hint, m.updated_at as changed_at, m.held_until,
      t.email as partner_email, ${payeeName('t')} as partner_name
    from program.partner t
    left join program.payout_method m on m.organization_id = t.organization_id and m.partner_id = t.id
    where ${tenant(tx)} and t.id = any(${of.map(({ partner_id }) => partner_id)}) and t.deleted_at is null`);
  return new Map(rows.map((row) => [row.id, row]));
}

/** Returns the payout method of a payout's partner, who must have one. */
export const paidBy = ({ partner_id }: Pick<Payout, 'partner_id'>, { method, details }: PayeeRow): PaidBy => ({
  ...{ partner_id, details },
  method: method as string,
});

/**
 * Returns the reason why a payout, which the caller has locked, is not paid, as far as it is a matter of the partner: asked before `payout.due` is
 * emitted and again before it is sent, so that both agree in either order. The minimum is that of the first attempt: what failed is owed whole.
 */
export function notPayable(
  services: Pick<Services, 'vault'>,
  program: Program,
  payout: Payout,
  payee: PayeeRow,
): NotEligibleReason | undefined {
  const [who, terms] =
    payout.attempt === 0
      ? [payee, program]
      : [
          { ...payee, min_payout_minor: null },
          { ...program, min_payout_minor: 0, min_payouts: {} },
        ];
  return notEligible(who, payout, terms, (amount) => canPay(services, paidBy(payout, payee), amount));
}
