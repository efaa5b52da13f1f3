import sql from 'sql-template-tag';
import { type Tx, together } from '../core/postgres/transaction.ts';
import { bulkOf } from '../core/resource/bulk.ts';
import { type Member, type Operation, readOperations } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { saleChangeOperations } from './change_sale.ts';
import { commissionOf, commissions } from './commissions/commission.ts';
import { type Customer, customers, releaseCustomer } from './customers/customer.ts';
import { tellLead } from './customers/sign_up.ts';
import { decideAll, type Item, type Names, type Recorded, readNames } from './decide_sales.ts';
import { deleteSaleOperations } from './delete_sale.ts';
import { explainSaleOperation } from './explain_sale.ts';
import { assessLater } from './programs/assess_later.ts';
import { recordSaleOperation, saleList } from './record_sale.ts';
import { outcomeOf, type SaleOutcome } from './sale_outcome.ts';
import type { NewSale } from './sales/new_sale.ts';
import { sales } from './sales/sale.ts';
import { converting, convertReferrals, firstPayment, rowOf, tell } from './write_sale.ts';

/** Sales that come together share a transaction, as far as they are recorded in sets. */
const recordSaleInSet: Operation = {
  ...recordSaleOperation,
  together: {
    ahead: (tx, members) => readNames(tx, itemsOf(members)),
    async run({ tx }, members, names) {
      const outcomes = await recordSales(tx, itemsOf(members), names as Names);
      return members.map((_, nth) => outcomes.get(nth));
    },
    leaves_one: true,
  },
};

const itemsOf = (members: Member<unknown>[]): Item[] =>
  members.map(({ body, request_id }, nth) => ({ nth, body: body as NewSale, request_id }));

export const saleOperations: Operation[] = [
  ...readOperations(saleList),
  explainSaleOperation,
  recordSaleInSet,
  bulkOf<NewSale>(recordSaleOperation, {
    noun: 'sale',
    summary: 'Records up to 1,000 sales and computes their commissions.',
    doc: 'For imports and for usage that is charged in batches. It takes the shortest where the sales of each customer come in the order of their time.',
    inSets: async ({ tx }, items) => recordSales(tx, items, await readNames(tx, items)),
  }),
  ...saleChangeOperations,
  ...deleteSaleOperations,
];

/**
 * Records in sets the sales that come after all others of their customers, who may be new, where nothing but what is read once decides who is
 * credited and what they earn. All others (late sales, own purchases, clicks that have led to somebody, details that add to a customer, and whatever
 * is to be refused) are left to record_sale.ts, and so are further sales of their customers, whose order counts.
 * @returns the outcomes, by their place
 */
async function recordSales(tx: Tx, items: Item[], names: Names): Promise<Map<number, SaleOutcome>> {
  const { decided, months } = await decideAll(tx, items, names);
  const rows = decided.map((one) => rowOf(one, one.buyer));
  const paid = decided.flatMap(({ program, earning }, nth) =>
    earning?.outcome.outcome === 'commission'
      ? [commissionOf(tx, program, rows[nth] as (typeof rows)[number], earning.outcome)]
      : [],
  );
  const referral_ids = decided.flatMap((one) => converting(one, one.buyer) ?? []);
  const [, buyers, recorded, earned, converted] = await together([
    months.correct(tx),
    writeBuyers(tx, decided),
    sales.insertAll(tx, rows),
    commissions.insertAll(tx, paid),
    referral_ids.length > 0 ? convertReferrals(tx, referral_ids) : [],
  ]);
  const by_sale = new Map([...earned.values()].map((commission) => [commission.sale_id, commission]));
  const by_referral = new Map(converted.map((one) => [one.referral_id, one]));
  return new Map(
    decided.map((one) => {
      const sale = recorded.get(one.draft.id);
      if (!sale) throw new Error('A sale that was inserted did not come back.');
      const commission = by_sale.get(sale.id);
      const referral_id = converting(one, one.buyer) ?? '';
      const buyer = buyers.get(one.buyer?.id ?? '');
      const referral = one.payer.referred?.referral;
      if (buyer && referral) tellLead(tx, buyer, referral, one.item.request_id);
      const followed = { sale, commission, converted: by_referral.get(referral_id) };
      by_referral.delete(referral_id); // the first sale of several converts it
      tell(tx, one, followed, one.item.request_id);
      return [one.item.nth, outcomeOf(one, sale, commission)];
    }),
  );
}

/** Writes the customers whom the sales record, and what first payments change in the others. @returns the new ones, by their ids */
async function writeBuyers(tx: Tx, decided: Recorded[]): Promise<Map<string, Customer>> {
  const changes = decided.flatMap(({ payer: { customer }, credit: { place, binding }, draft }) =>
    customer && place.is_first_sale ? [{ id: customer.id, ...binding, ...firstPayment(customer, draft) }] : [],
  );
  for (const { program, buyer, made, item } of decided) {
    if (!buyer || !made) continue;
    assessLater(tx, 'customer', buyer.id, item.request_id);
    releaseCustomer(tx, program, buyer);
  }
  const [made] = await together([
    customers.insertAll(
      tx,
      decided.flatMap(({ made }) => made ?? []),
    ),
    changes.length > 0 ? payFirst(tx, changes) : undefined,
  ]);
  return made;
}

/** @param changes the ids of customers, and the columns that change */
const payFirst = (tx: Tx, changes: object[]) =>
  tx.all(sql`
    update program.customer t
    set status = u.status, converted_at = u.converted_at, external_subscription_id = u.external_subscription_id,
      coupon_id = coalesce(u.coupon_id, t.coupon_id), partner_id = coalesce(u.partner_id, t.partner_id),
      tracked_by = coalesce(u.tracked_by, t.tracked_by), origin_partner_id = coalesce(u.origin_partner_id, t.origin_partner_id),
      origin_tracked_by = coalesce(u.origin_tracked_by, t.origin_tracked_by), updated_at = ${tx.now}::timestamptz
    from json_populate_recordset(null::program.customer, ${JSON.stringify(changes)}::json) u
    where ${tenant(tx)} and t.id = u.id`);
