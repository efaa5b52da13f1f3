import sql from 'sql-template-tag';
import { type Tx, together } from '../core/postgres/transaction.ts';
import type { ListOptions } from '../core/resource/list_query.ts';
import { type Operation, operation } from '../core/resource/operation.ts';
import { details } from '../core/values/detail.ts';
import { externalId, knownExternalId } from '../core/values/fields.ts';
import { type AsOf, earnedBy, type Terms, termsOfOne } from './commissions/earn.ts';
import { identityDetails } from './customers/customer.ts';
import { type Program, programs } from './programs/program.ts';
import { SaleOutcome } from './sale_outcome.ts';
import { nothing_visited, visitedBy, visitTo } from './sales/came_by.ts';
import { type Credit, creditOf, findCoupon, likelyPartner, type NamedCoupon } from './sales/credit.ts';
import { lockCharges } from './sales/known_charge.ts';
import { draftOf, NewSale, refuseRepeatedCharge } from './sales/new_sale.ts';
import { findNamed, type Payer, payerOf } from './sales/payer.ts';
import { sales } from './sales/sale.ts';
import { saleReportFilters } from './sales/sale_filter.ts';
import { writeSale } from './write_sale.ts';

export const saleList: ListOptions = {
  resource: sales,
  within: programs,
  by: ['status', 'currency', 'referral_id'],
  filters: {
    external_charge_id: {
      schema: knownExternalId.optional(),
      where: (value: string) => sql`t.external_charge_id = ${value}`,
      is_of_few: true,
    },
    ...saleReportFilters,
  },
};

export const recordSaleOperation: Operation = operation({
  name: 'sales.create',
  title: 'Record a sale',
  method: 'POST',
  path: '/v1/sales',
  scope: 'sales:write',
  summary: 'Records a sale and computes its commission.',
  doc: `Send all that you know: the customer, the click, the coupon, the partner, or nothing. The sale is credited to the given partner; else, on the customer's first sale, to the partner of the coupon; else to the partner of the customer; else to the partner of the click. If the program blocks self-referrals, a partner's own purchase is recorded, credits nobody, and raises a risk flag. A sale without a commission is recorded too, and \`warnings\` says why there is none.`,
  body: NewSale,
  details: {
    'customer.email': identityDetails.email,
    'customer.name': identityDetails.name,
    metadata: details.metadata,
    external_subscription_id: {
      schema: externalId,
      correct: () => undefined,
      fault: 'is not an id of at most 255 characters',
    },
  },
  reply: SaleOutcome,
  status: 201,
  errors: ['resource_already_exists'],
  ahead: ({ tx, body }) =>
    together([
      lockCharges(tx, [body]),
      programs.get(tx, body.program_id, { param: 'program_id' }),
      refuseRepeatedCharge(tx, body),
      findNamed(tx, body),
      findCoupon(tx, body),
    ]),
  async run({ tx, body, ahead: [, program, , found, coupon] }) {
    const payer = await payerOf(tx, program, body, found);
    const { credit, terms } = await creditAndTermsOf(tx, program, body, payer, coupon);
    const customer_id = credit.payer.customer?.id ?? null;
    const draft = draftOf(tx, body, credit, customer_id, terms?.came_by ?? nothing_visited);
    const partner = credit.attribution?.partner;
    const { first_sale_at } = credit.place;
    const earning = partner && terms && (await earnedBy(tx, program, draft, { partner, first_sale_at }, terms));
    return writeSale(tx, { program, body, payer, credit, draft, earning });
  },
});

/** Reads who is credited, and what they are paid by, at once where they are who is likely. */
async function creditAndTermsOf(
  tx: Tx,
  program: Program,
  body: NewSale,
  payer: Payer,
  coupon: NamedCoupon | undefined,
): Promise<{ credit: Credit; terms?: Terms }> {
  const termsFor = (partner_id: string, { customer, referred }: Payer, place: AsOf) => {
    const came_by = customer ? visitedBy(customer) : visitTo(referred?.referral);
    return termsOfOne(tx, { program_id: program.id, partner_id, customer_id: customer?.id, came_by }, place);
  };
  const { occurred_at: at = tx.now, external_charge_id: charge } = body;
  const likely = likelyPartner(body, payer, coupon);
  const [credit, likely_terms] = await together([
    creditOf(tx, program, body, payer, coupon),
    likely === undefined ? undefined : termsFor(likely, payer, { at, charge, has_later: false }),
  ]);
  const partner = credit.attribution?.partner;
  if (!partner) return { credit };
  const isLikely = partner.id === likely && credit.payer === payer && !credit.place.has_later;
  return {
    credit,
    terms: isLikely && likely_terms ? likely_terms : await termsFor(partner.id, credit.payer, credit.place),
  };
}
