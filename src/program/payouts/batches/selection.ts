import sql, { empty, type Sql } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import type { Program } from '../../programs/program.ts';
import { canPay, type PaidBy } from '../can_pay.ts';
import { type Balance, type NotEligibleReason, notEligible, type Payee } from '../eligibility.ts';

/** The commissions that a batch selects. */
export interface Selection {
  program_id: string;
  cutoff: string;
  /** Takes what would be matured first as mature, and leaves the partners unlocked. */
  is_preview: boolean;
}

export interface PayeeRow extends Payee {
  id: string;
  details: Buffer | null;
  hint: string | null;
}

/** The balance of a partner in one currency. */
export interface BalanceRow {
  partner_id: string;
  currency: string;
  amount_minor: number;
  commission_count: number;
  /** The places of its commissions in their table (`tid[]`). They may move before the transaction has locked them. */
  places: string;
  period_start: string;
}

export interface CheckedBalance extends BalanceRow {
  payee: PayeeRow;
  reason: NotEligibleReason | undefined;
}

/** The balances of partners that were looked at. */
export interface Balances {
  /** The number of partners with commissions for the batch. */
  partners: number;
  checked: CheckedBalance[];
}

/** In the words of the index that holds them, by partner. */
const open = sql`t.status in ('pending', 'approved', 'due') and t.deleted_at is null`;

/** "Takes, per partner and currency, the `due` commissions not yet in a payout with `mature_at` before its cut-off, and every unpaid clawback." */
export const selected = (tx: Tx, { program_id, cutoff, is_preview }: Selection): Sql => sql`
  ${tenant(tx)} and t.program_id = ${program_id} and ${open} and t.payout_id is null
    and (t.kind = 'clawback' or t.mature_at < ${cutoff}::timestamptz and (${is_preview} or t.status = 'due'))`;

/** Beyond all ids. */
export const no_end = '~';

/**
 * The next partners, by id, who may have commissions for the batch: those who have open ones. From one to the next by the index, without a look
 * at the commissions.
 */
export async function nextPartners(
  tx: Tx,
  { program_id }: Pick<Selection, 'program_id'>,
  { after, up_to = no_end, most }: { after: string; up_to?: string; most: number },
): Promise<string[]> {
  const nextAfter = (partner_id: Sql) => sql`
    select t.partner_id
    from program.commission t
    where ${tenant(tx)} and t.program_id = ${program_id} and ${open} and t.partner_id > ${partner_id}
      and t.partner_id <= ${up_to}
    order by t.partner_id
    limit 1`;
  const rows = await tx.all<{ partner_id: string }>(sql`
    with recursive next (partner_id, nth) as (
      select (${nextAfter(sql`${after}`)}), 1
      union all
      select (${nextAfter(sql`n.partner_id`)}), n.nth + 1
      from next n
      where n.partner_id is not null and n.nth < ${most}
    )
    select n.partner_id from next n where n.partner_id is not null order by n.nth`);
  return rows.map(({ partner_id }) => partner_id);
}

/** The partner amid the open commissions, so that both halves have as many of them. Undefined where there are fewer than `least`. */
export async function middlePartner(
  tx: Tx,
  { program_id }: Pick<Selection, 'program_id'>,
  { after, least }: { after: string; least: number },
): Promise<string | undefined> {
  const commissions = sql`
    from program.commission t
    where ${tenant(tx)} and t.program_id = ${program_id} and ${open} and t.partner_id > ${after}`;
  const middle = await tx.maybe<{ partner_id: string }>(sql`
    with counted as materialized (select count(*) as commissions ${commissions})
    select t.partner_id
    ${commissions} and (select c.commissions from counted c) >= ${least}
    order by t.partner_id
    offset (select c.commissions / 2 from counted c)
    limit 1`);
  return middle?.partner_id;
}

/** Counts the partners with commissions for the batch. */
export async function countPartners(tx: Tx, selection: Selection): Promise<number> {
  const { partners } = await tx.one<{ partners: number }>(sql`
    select count(distinct t.partner_id) as partners from program.commission t where ${selected(tx, selection)}`);
  return partners;
}

/**
 * The balances of partners, each with the reason for which it is not paid, if there is one. Unless it is a preview, the partners stay as they are
 * until the transaction ends. Their commissions are not locked: what puts them into payouts finds out whether they are as they were.
 */
export async function balancesOf(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  program: Program,
  selection: Selection,
  partner_ids: string[],
): Promise<Balances> {
  if (partner_ids.length === 0) return { partners: 0, checked: [] };
  const payees = await payeesOf(tx, partner_ids, selection.is_preview ? empty : sql`for share of t`);
  const known = new Map(payees.map((payee) => [payee.id, payee]));
  const balances = await sumsOf(tx, selection, partner_ids);
  return {
    partners: new Set(balances.map(({ partner_id }) => partner_id)).size,
    checked: balances.flatMap((balance) => {
      const payee = known.get(balance.partner_id);
      if (!payee || !isPayable(balance)) return [];
      return [{ ...balance, payee, reason: notEligible(payee, balance, program, canPayBy(services, payee)) }];
    }),
  };
}

const canPayBy =
  (services: Pick<Services, 'vault'>, { id: partner_id, method, details }: PayeeRow) =>
  (sum: Balance) =>
    canPay(services, { partner_id, method, details } as PaidBy, sum);

/** Sums the balances of partners, in each currency. An amount that JSON cannot carry exactly is null. */
const sumsOf = (
  tx: Tx,
  selection: Selection,
  partner_ids: string[],
): Promise<(Omit<BalanceRow, 'amount_minor'> & { amount_minor: number | null })[]> =>
  tx.all(sql`
    select t.partner_id, t.currency, count(*) as commission_count, array_agg(t.ctid)::text as places,
      case when abs(sum(t.amount_minor)) <= ${Number.MAX_SAFE_INTEGER} then sum(t.amount_minor)::bigint end as amount_minor,
      least(min(t.created_at), min(t.mature_at)) as period_start
    from program.commission t
    where ${selected(tx, selection)} and t.partner_id = any(${partner_ids})
    group by t.partner_id, t.currency
    order by t.partner_id, t.currency`);

const isPayable = <Sum extends { amount_minor: number | null }>(sum: Sum): sum is Sum & { amount_minor: number } =>
  sum.amount_minor !== null && sum.amount_minor !== 0;

/** Partners that are deleted are not among them. */
const payeesOf = (tx: Tx, partner_ids: string[], lock: Sql): Promise<PayeeRow[]> =>
  tx.all<PayeeRow>(sql`
    select t.id, t.status, t.min_payout_minor, t.tax_form_status, m.method, m.details, m.hint
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

/** Adds balances to earlier sums. */
export function addUp(
  checked: readonly { currency: string; amount_minor: number; reason: NotEligibleReason | undefined }[],
  before: Omit<Sums, 'payouts'> = { amounts: {}, not_eligible: {} },
): Sums {
  const amounts = { ...before.amounts };
  const not_eligible = { ...before.not_eligible };
  let created = 0;
  for (const { currency, amount_minor, reason } of checked) {
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
