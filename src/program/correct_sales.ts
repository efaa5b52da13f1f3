/** Corrects sales that a late one has given another place: see sales/README.md. Requests have it done by the functions of late_sale.ts. */
import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { lockOf, tenant } from '../core/resource/resource.ts';
import { takeBackCommissions } from './commissions/adjust.ts';
import { choiceBy, inMonthOf, monthOf } from './commissions/earn.ts';
import { rules } from './commissions/rule.ts';
import type { Choice } from './commissions/rule_choice.ts';
import { type Customer, lockCustomer } from './customers/customer.ts';
import { earnSale, firstPaymentBefore, noteDecision, recalculate, termsOfRecorded, visitOf } from './earn_sale.ts';
import {
  correctLaterSales,
  correctTiersAfter,
  correctTiersOf,
  emitMoved,
  type LaterSales,
  type PartnerMonth,
} from './late_sale.ts';
import { partners } from './partners/partner.ts';
import { type Program, programs } from './programs/program.ts';
import { type Decision, type PlaceFacts, placeIn } from './sales/decision.ts';
import { isAfter, isSettled, type Place } from './sales/place.ts';
import { type AttributedSale, isAttributed, lockSale, type Sale, sales } from './sales/sale.ts';

/** The number of sales that one transaction corrects: their customers are locked meanwhile. */
const most_of_step = 50;

/**
 * Corrects a step of a customer's later sales, oldest first, and has the next one done. A sale is corrected where its place decides otherwise than
 * before, by the same rules: what a merchant has changed since is not looked at, and what is settled stays.
 */
export async function correctLaterStep(tx: Tx, { customer_id, after, moved_from }: LaterSales): Promise<void> {
  const customer = await lockCustomer(tx, customer_id);
  const program = await programs.get(tx, customer.program_id);
  if (moved_from === null && !(await dependsOnPlace(tx, program))) return;
  const later = await tx.all<Sale>(sql`
    select ${sales.columns} from ${sales.from}
    where ${tenant(tx)} and t.customer_id = ${customer_id} and ${sales.alive} and ${isAfter(after)}
    order by t.occurred_at, t.external_charge_id collate "C"
    limit ${most_of_step}
    ${lockOf(true)}`);
  for (const sale of later) await correctSale(tx, program, sale, { customer, moved_from });
  const last = later.at(-1);
  if (last && later.length === most_of_step) correctLaterSales(tx, { customer_id, after: placeIn(last), moved_from });
}

/** Returns whether a rule of the program asks which sale of its customer one is. */
const dependsOnPlace = async (tx: Tx, { id: program_id }: Program): Promise<boolean> =>
  (await tx.maybe(sql`
    select from ${rules.from}
    where ${tenant(tx)} and t.program_id = ${program_id} and ${rules.alive} and t.status = 'active'
      and (t.applies_to <> 'all' or t.max_payments is not null or t.duration_months is not null)
    limit 1`)) !== undefined;

interface Owner {
  customer: Customer | undefined;
  moved_from: string | null;
}

/** @param sale locked, after its customer */
async function correctSale(tx: Tx, program: Program, sale: Sale, { customer, moved_from }: Owner): Promise<void> {
  if (!isAttributed(sale)) return;
  const { decision } = await tx.one<{ decision: Decision | null }>(
    sql`select t.decision from program.sale t where ${tenant(tx)} and t.id = ${sale.id}`,
  );
  if (!decision) return;
  const isMoved =
    customer !== undefined &&
    sale.partner_id === moved_from &&
    customer.partner_id !== moved_from &&
    customer.tracked_by !== 'manual' &&
    (decision.by === 'customer' || decision.by === 'click' || (decision.by === 'coupon' && !sale.is_first_sale));
  if (isMoved) await moveSale(tx, program, sale, customer);
  else if (decision.facts) await correctRule(tx, program, sale, { customer, facts: decision.facts });
}

/** Credits a later sale to the partner whose the customer was by then. */
async function moveSale(tx: Tx, program: Program, before: AttributedSale, customer: Customer): Promise<void> {
  const { partner_id } = customer;
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`, lockOf('share'));
  if (!partner || (await hasSettled(tx, before))) return;
  const visit = await visitOf(tx, customer, partner_id);
  const after = (await sales.update(tx, before.id, { partner_id, coupon_id: null, ...visit })) as AttributedSale;
  emitMoved(tx, after);
  await takeBackCommissions(tx, before, 'sale_corrected');
  await noteDecision(tx, after, { by: 'customer' });
  await recalculate(tx, program, after, customer, true);
  for (const id of [before.partner_id, partner_id]) await correctTiersAfter(tx, { ...after, partner_id: id });
}

/** Pays a sale by another rule, or another tier, where its place asks for one. */
async function correctRule(
  tx: Tx,
  program: Program,
  sale: AttributedSale,
  { customer, facts: before }: { customer: Customer | undefined; facts: PlaceFacts },
): Promise<void> {
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${sale.partner_id}`, lockOf('share'));
  if (!partner) return;
  const terms = await termsOfRecorded(tx, sale, customer);
  const limited = terms.rules.filter(({ max_payments }) => max_payments !== null);
  const { is_first_sale } = sale;
  const after: PlaceFacts = {
    ...{ is_first_sale, first_sale_at: await firstPaymentBefore(tx, sale) },
    payments: Object.fromEntries(limited.map(({ id, payments }) => [id, payments])),
  };
  const chosen = choiceBy(program, sale, partner, after, terms);
  const isTiered = terms.rules.some(({ id, tiers }) => id === chosen?.rule_id && tiers.length > 0);
  if (isTiered) after.month = await monthOf(tx, sale);
  // A rule that was made since is asked about both places.
  const known: PlaceFacts = { ...before, payments: { ...after.payments, ...before.payments } };
  const isSame = isSameChoice(
    choiceBy(program, sale, partner, known, terms),
    choiceBy(program, sale, partner, after, terms),
  );
  if (isSame || (await hasSettled(tx, sale))) return void (await noteDecision(tx, sale, { facts: after }));
  await takeBackCommissions(tx, sale, 'sale_corrected');
  await earnSale(tx, program, sale, customer);
}

const isSameChoice = (one: Choice | null, other: Choice | null): boolean =>
  one?.rule_id === other?.rule_id && one?.rate_type === other?.rate_type && one?.rate_value === other?.rate_value;

/** Returns whether a commission of the sale is paid, in a payout, or was changed or cancelled by hand. */
const hasSettled = async (tx: Tx, { id, partner_id }: AttributedSale): Promise<boolean> =>
  (await tx.maybe(sql`
    select from program.commission c
    where c.organization_id = ${tx.organization_id} and c.sale_id = ${id} and c.partner_id = ${partner_id}
      and ((${isSettled}) or c.edited_by_hand or c.edited_total_minor is not null)
    limit 1`)) !== undefined;

/** Corrects the sales of a month that are in another tier than the one that paid them, some at a time, and has the next ones done. */
export async function correctTiers(tx: Tx, { program_id, partner_id, month, after }: PartnerMonth): Promise<void> {
  const program = await programs.get(tx, program_id);
  const crossing = await tx.all<{ id: string }>(sql`
    with counted as (
      select
        t.id, t.occurred_at, t.external_charge_id, t.decision,
        row_number() over (order by t.occurred_at, t.external_charge_id collate "C") - 1 as sales_count,
        coalesce(sum(t.amount_minor) over (
          partition by t.currency order by t.occurred_at, t.external_charge_id collate "C" rows between unbounded preceding and 1 preceding
        ), 0) as revenue_minor
      from program.sale t
      where ${tenant(tx)} and t.partner_id = ${partner_id} and t.deleted_at is null and ${inMonthOf(month)}
    )
    select t.id
    from counted t
    join program.rule r on r.organization_id = ${tx.organization_id} and r.id = t.decision ->> 'rule_id' and r.tier_metric is not null
    cross join lateral (
      select
        case r.tier_metric when 'sales_count' then t.sales_count else t.revenue_minor end as reached,
        (t.decision #>> array['facts', 'month', r.tier_metric])::numeric as reached_before
    ) v
    where ${after ? isAfter(after) : sql`true`}
      and (select max((x ->> 'from')::numeric) from jsonb_array_elements(r.tiers) x where (x ->> 'from')::numeric <= v.reached)
        is distinct from (select max((x ->> 'from')::numeric) from jsonb_array_elements(r.tiers) x where (x ->> 'from')::numeric <= v.reached_before)
    order by t.occurred_at, t.external_charge_id collate "C"
    limit ${most_of_step}`);
  let last: Place | undefined;
  for (const { id } of crossing) {
    const { sale, customer } = await lockSale(tx, id);
    last = placeIn(sale);
    if (sale.partner_id === partner_id) await correctSale(tx, program, sale, { customer, moved_from: null });
  }
  if (last && crossing.length === most_of_step) correctTiersOf(tx, { program_id, partner_id, month, after: last });
}
