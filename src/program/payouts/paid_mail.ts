import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { queueMail } from '../../mail/outgoing.ts';
import { formatMoney } from './money_text.ts';

interface PaidPayout {
  amount_minor: number;
  currency: string;
  recipient: string;
  program_name: string;
}

/** Emails the partner that a payout was paid, once for each time that it was, unless `email_payout_paid` is off. For the service's own tasks. */
export async function mailPaid(tx: Tx, organization_id: string, payout_id: string): Promise<void> {
  const payout = await tx.maybe<PaidPayout>(sql`
    update program.payout t
    set partner_told_of = t.paid_at
    from program.partner p, program.program g
    where t.organization_id = ${organization_id} and t.id = ${payout_id} and t.status = 'paid' and t.livemode
      and t.partner_told_of is distinct from t.paid_at
      and p.organization_id = t.organization_id and p.id = t.partner_id and p.email_payout_paid and p.deleted_at is null
      and g.organization_id = t.organization_id and g.id = t.program_id
    returning t.amount_minor, t.currency, p.email as recipient, g.product_name as program_name`);
  if (!payout) return;
  const amount = formatMoney(payout.amount_minor, payout.currency);
  await queueMail(tx, {
    organization_id,
    recipient: payout.recipient,
    subject: `Your payout of ${amount} from ${payout.program_name.replaceAll(/\s+/g, ' ')}`,
    text: `${payout.program_name} has paid you ${amount}.\n\nPayout: ${payout_id}\n`,
  });
}
