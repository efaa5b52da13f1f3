import sql, { empty, type Sql } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Program } from '../../programs/program.ts';
import { canPay } from '../can_pay.ts';
import { type NotEligibleReason, notEligible, type Payee } from '../eligibility.ts';

/** Which commissions a batch takes. */
export interface Selection {
  program_id: string;
  cutoff: string;
  /** Takes what would be matured first as mature, and locks nothing. */
  is_preview: boolean;
}

export interface PayeeRow extends Payee {
  id: string;
  hint: string | null;
}

/** What a partner is due in one currency. */
export interface BalanceRow {
  partner_id: string;
  currency: string;
  amount_minor: number;
  commission_ids: string[];
  period_start: string;
}

export interface Judged extends BalanceRow {
  payee: PayeeRow;
  reason: NotEligibleReason | undefined;
}

/** "Takes, per partner and currency, the `due` commissions not yet in a payout with `mature_at` before its cut-off, and every unpaid clawback." */
const selected = (tx: Tx, { program_id, cutoff, is_preview }: Selection) => sql`
  ${tenant(tx)} and t.program_id = ${program_id} and t.status in ('pending', 'approved', 'due') and t.payout_id is null and t.deleted_at is null
    and (t.kind = 'clawback' or t.mature_at < ${cutoff}::timestamptz and (${is_preview} or t.status = 'due'))`;

/** The next partners, by id, who have commissions for the batch. */
export async function nextPartners(
  tx: Tx,
  selection: Selection,
  { after, most }: { after: string; most: number },
): Promise<string[]> {
  const rows = await tx.all<{ partner_id: string }>(sql`
    select distinct t.partner_id
    from program.commission t
    where ${selected(tx, selection)} and t.partner_id > ${after}
    order by t.partner_id
    limit ${most}`);
  return rows.map(({ partner_id }) => partner_id);
}

/** How many partners have commissions for the batch. */
export async function countPartners(tx: Tx, selection: Selection): Promise<number> {
  const { partners } = await tx.one<{ partners: number }>(sql`
    select count(distinct t.partner_id) as partners from program.commission t where ${selected(tx, selection)}`);
  return partners;
}

/**
 * The balances of partners, each with the reason for which it is not paid, if there is one. Unless it is a preview, the partners and their
 * commissions stay as they are until the transaction ends.
 */
export async function balancesOf(
  tx: Tx,
  program: Program,
  selection: Selection,
  partner_ids: string[],
): Promise<Judged[]> {
  if (partner_ids.length === 0) return [];
  const { is_preview } = selection;
  const payees = await payeesOf(tx, partner_ids, is_preview ? empty : sql`for share of t`);
  const known = new Map(payees.map((payee) => [payee.id, payee]));
  const balances = await tx.all<BalanceRow>(sql`
    with payable as (
      select t.id, t.partner_id, t.currency, t.amount_minor, t.created_at, t.mature_at
      from program.commission t
      where ${selected(tx, selection)} and t.partner_id = any(${[...known.keys()]})
      order by t.id
      ${is_preview ? empty : sql`for no key update`}
    )
    select p.partner_id, p.currency, sum(p.amount_minor)::bigint as amount_minor, array_agg(p.id) as commission_ids,
      least(min(p.created_at), min(p.mature_at)) as period_start
    from payable p
    group by p.partner_id, p.currency
    having sum(p.amount_minor) <> 0 and abs(sum(p.amount_minor)) <= ${Number.MAX_SAFE_INTEGER}
    order by p.partner_id, p.currency`);
  return balances.map((balance) => {
    const payee = known.get(balance.partner_id) as PayeeRow;
    return { ...balance, payee, reason: notEligible(payee, balance, program, canPay) };
  });
}

/** Partners that are deleted are not among them. */
const payeesOf = (tx: Tx, partner_ids: string[], lock: Sql): Promise<PayeeRow[]> =>
  tx.all<PayeeRow>(sql`
    select t.id, t.status, t.min_payout_minor, t.tax_form_status, m.method, m.hint
    from program.partner t
    left join program.payout_method m on m.organization_id = t.organization_id and m.partner_id = t.id
    where ${tenant(tx)} and t.id = any(${partner_ids}) and t.deleted_at is null
    order by t.id
    ${lock}`);

export interface Sums {
  payouts: number;
  amounts: Record<string, { payouts: number; amount_minor: number }>;
  not_eligible: Partial<Record<NotEligibleReason, number>>;
}

/** What balances come to, on top of what there was before. */
export function addUp(
  judged: readonly { currency: string; amount_minor: number; reason: NotEligibleReason | undefined }[],
  before: Omit<Sums, 'payouts'> = { amounts: {}, not_eligible: {} },
): Sums {
  const amounts = { ...before.amounts };
  const not_eligible = { ...before.not_eligible };
  let created = 0;
  for (const { currency, amount_minor, reason } of judged) {
    if (reason) {
      not_eligible[reason] = (not_eligible[reason] ?? 0) + 1;
      continue;
    }
    const sum = amounts[currency] ?? { payouts: 0, amount_minor: 0 };
    amounts[currency] = { payouts: sum.payouts + 1, amount_minor: sum.amount_minor + amount_minor };
    created++;
  }
  return { payouts: created, amounts, not_eligible };
}
