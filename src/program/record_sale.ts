import sql from 'sql-template-tag';
import { z } from 'zod';
import { type Tx, together } from '../core/postgres/transaction.ts';
import type { ListOptions } from '../core/resource/list_query.ts';
import { type Operation, operation } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { DetailWarning, details } from '../core/values/detail.ts';
import { externalId, knownExternalId } from '../core/values/fields.ts';
import { newId } from '../core/values/id.ts';
import { commissions, createSaleCommission } from './commissions/commission.ts';
import { type AsOf, type Earning, earnedBy, type Terms, termsOfOne } from './commissions/earn.ts';
import { correctLaterStep } from './correct_sales.ts';
import {
  type Attribution,
  type Customer,
  createCustomer,
  customers,
  identityDetails,
  releaseCustomer,
} from './customers/customer.ts';
import { enrolCustomer } from './customers/enrolment.ts';
import { endSelfReferral } from './customers/self_referral.ts';
import { createCustomerOfReferral } from './customers/sign_up.ts';
import { decisionOf } from './earn_sale.ts';
import { event } from './events/event.ts';
import { correctTiersAfter, displaceFirstSale, isNamedBefore } from './late_sale.ts';
import { assessLater } from './programs/assess_later.ts';
import { type Program, programs } from './programs/program.ts';
import { nothing_visited, type Visited, visitedBy } from './sales/came_by.ts';
import { type Credit, creditOf, findCoupon, likelyPartner, type NamedCoupon } from './sales/credit.ts';
import { placeIn } from './sales/decision.ts';
import { isLost, lockCharges, releaseCharge } from './sales/known_charge.ts';
import { draftOf, NewSale, recordSale, refuseRepeatedCharge, type SaleDraft } from './sales/new_sale.ts';
import { flagOwnPurchase } from './sales/own_purchase.ts';
import { describedCustomer, externalIdOf, findNamed, type Payer, payerOf } from './sales/payer.ts';
import { type Sale, sales } from './sales/sale.ts';
import { saleReportFilters } from './sales/sale_filter.ts';
import { type Referral, referrals } from './tracking/referral.ts';

const warning_messages = {
  no_partner_attributed:
    "No partner is credited with this sale: it names no customer, click or coupon of a partner, its click earns no credit, its coupon is of a paused program, its partner was deleted, it happened before the sale that recorded the customer, or it is the partner's own purchase and the program blocks self-referrals. To credit a partner, send partner_id with the sale or in a correction of it.",
  no_commission_from_rules:
    'No active rule pays for this sale. Check that a rule applies, that the partner is active, and that the amount is above 0.',
  fixed_rate_currency_mismatch:
    "The rule pays a fixed amount in the program's currency, and the sale is in another one; amounts are not converted. Use a percentage rate.",
} as const;

type WarningCode = keyof typeof warning_messages;

const Warning = z.object({
  code: z
    .enum(Object.keys(warning_messages) as [WarningCode, ...WarningCode[]])
    .describe(
      '`no_partner_attributed`: no partner is credited with the sale. `no_commission_from_rules`: no active rule pays for it. `fixed_rate_currency_mismatch`: the rule pays a fixed amount in another currency than that of the sale.',
    ),
  message: z.string().describe('The warning in words, and what to do.'),
});

export type SaleOutcome = z.infer<typeof SaleOutcome>;
const SaleOutcome = z
  .object({
    ...sales.record.shape,
    activity_outcome: z
      .enum(['commission_created', 'sale_recorded'])
      .describe(
        '`commission_created`: the sale earned a commission. `sale_recorded`: the sale was recorded without a commission.',
      ),
    warnings: z
      .array(z.union([Warning, DetailWarning]))
      .optional()
      .describe(
        'Why there is no commission, and which details of the sale were changed or left out. Present only then.',
      ),
    commissions: z.array(commissions.schema).describe('The commission that the sale earned: one, or none.'),
  })
  .meta({ id: 'SaleOutcome', description: 'The sale, and the commission that it earned.' });

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
    return write(tx, program, { body, payer, credit, draft, earning });
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
    const came_by = customer ? visitedBy(customer) : visitOf(referred);
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

const visitOf = (referred: Payer['referred']): Visited =>
  visitedBy(referred && { link_id: referred.referral.link_id, referral_id: referred.referral.id });

interface Decided {
  body: NewSale;
  payer: Payer;
  credit: Credit;
  draft: SaleDraft;
  /** Undefined where nobody is credited. */
  earning: Earning | undefined;
}

/** Writes a sale and what follows from it, at once as far as nothing of it depends on what was written. */
async function write(tx: Tx, program: Program, decided: Decided): Promise<SaleOutcome> {
  const { credit, earning } = decided;
  const { attribution, own_purchase, place } = credit;
  const { referred } = credit.payer;
  const earned = earning?.outcome;
  if (own_purchase && referred?.partner.id === own_purchase.partner_id) await endSelfReferral(tx, referred.referral);
  if (place.displaced_id !== null) await displaceFirstSale(tx, place.displaced_id);
  const buyer = buyerOf(decided);
  const unknown_customer = buyer ? null : (externalIdOf(decided.body) ?? null);
  const decision = { ...decisionOf(credit, earning), ...(unknown_customer ? { unknown_customer } : {}) };
  const draft = { ...decided.draft, customer_id: buyer?.id ?? null, decision };
  const converts = earned !== undefined && place.is_first_sale;
  const [customer, sale, commission, was_lost, converted, adopts] = await together([
    buyer && writeBuyer(tx, program, buyer, decided),
    recordSale(tx, draft),
    earned?.outcome === 'commission' ? createSaleCommission(tx, program, draft, earned) : undefined,
    isLost(tx, program, draft),
    converts && buyer?.referral_id ? convertReferral(tx, buyer.referral_id) : undefined,
    buyer && makesKnown(decided) ? isNamedBefore(tx, buyer, placeIn(draft)) : false,
    attribution && earning?.has_tiers
      ? correctTiersAfter(tx, { ...draft, partner_id: attribution.partner.id })
      : undefined,
  ]);
  if (was_lost) releaseCharge(tx, sale);
  if (own_purchase) await flagOwnPurchase(tx, sale, own_purchase);
  if (attribution && earned) {
    tx.emit(event('sale.created', sale, { partner_id: attribution.partner.id }));
    if (sale.is_first_sale) assessLater(tx, 'sale', sale.id);
    if (commission) tx.emit(event('commission.created', commission));
    if (customer && converted) tx.emit(event('referral.converted', sale, { ...converted, customer_id: customer.id }));
    if (customer && converts) await enrolCustomer(tx, program, customer);
  }
  if (customer && (place.has_later || adopts)) await correctAfter(tx, sale, customer, decided, adopts);
  if (!earned) return outcomeOf(sale, [], 'no_partner_attributed');
  return outcomeOf(sale, commission ? [commission] : [], earned.outcome === 'none' ? earned.warning : undefined);
}

/**
 * Corrects the sales that come after a late one, in its transaction, so that no payout takes up what is to change: fifty of them, and a job the
 * others.
 */
async function correctAfter(
  tx: Tx,
  sale: Sale,
  { id: customer_id, partner_id }: Customer,
  { payer }: Decided,
  adopts: boolean,
): Promise<void> {
  const before = payer.customer?.partner_id ?? null;
  const moved_from = partner_id === before ? null : before;
  await correctLaterStep(tx, { customer_id, after: placeIn(sale), moved_from, adopts });
}

/** Returns whether the sale makes its customer known from an earlier time on. */
const makesKnown = ({ body, payer, credit }: Decided): boolean =>
  body.occurred_at !== undefined && (!payer.customer || credit.place.is_before_customer);

/** The customer whom a sale is recorded for, as far as it is known before they are written. */
interface Buyer {
  id: string;
  program_id: string;
  external_customer_id: string | null;
  referral_id: string | null;
}

/** @returns undefined where a sale that nobody is credited with names nobody who is known, or the sale describes nobody */
function buyerOf({ body, payer: { customer }, credit }: Decided): Buyer | undefined {
  const { attribution, binding, payer } = credit;
  if (customer && (payer.customer || attribution)) {
    const { id, program_id, external_customer_id, referral_id } = customer;
    return { id, program_id, external_customer_id, referral_id, ...binding };
  }
  const referral = payer.referred?.referral;
  const described = describedCustomer(body);
  if (customer || !attribution || (!referral && !described)) return undefined;
  const { external_customer_id = null } = described ?? {};
  return { id: newId('cus'), program_id: body.program_id, external_customer_id, referral_id: referral?.id ?? null };
}

/**
 * Writes what the sale says of its customer. The first payment makes a customer active, and a coupon binds them to its partner; by any other
 * attribution customers stay with theirs.
 */
async function writeBuyer(
  tx: Tx,
  program: Program,
  { id }: Buyer,
  { body, payer: { customer, missing }, credit, draft }: Decided,
): Promise<Customer> {
  const { attribution, place, binding } = credit;
  if (!customer)
    return newCustomer(tx, program, body, attribution as Attribution, {
      id,
      referral: credit.payer.referred?.referral,
    });
  const changes = { ...missing, ...binding, ...(place.is_first_sale ? firstPayment(customer, draft) : {}) };
  if (missing?.email) assessLater(tx, 'customer', customer.id);
  if (missing?.external_customer_id) releaseCustomer(tx, program, customer);
  return Object.keys(changes).length === 0 ? customer : customers.update(tx, customer.id, changes);
}

const firstPayment = (customer: Customer, { external_subscription_id, occurred_at }: SaleDraft) => ({
  status: customer.status === 'lead' || customer.status === 'trial' ? ('active' as const) : undefined,
  external_subscription_id: customer.external_subscription_id ?? external_subscription_id,
  converted_at: occurred_at,
});

/**
 * Records the customer of the click's referral, also where another partner than the click's is credited: the next sale by the click is of the same
 * customer. Where there is no such click, the customer whom the sale describes.
 */
function newCustomer(
  tx: Tx,
  program: Program,
  body: NewSale,
  attribution: Attribution,
  { id, referral }: { id: string; referral: Referral | undefined },
): Promise<Customer> {
  const { external_subscription_id, occurred_at: converted_at = tx.now } = body;
  const known = { status: 'active' as const, converted_at, known_from: body.occurred_at };
  const fields = { ...describedCustomer(body), id, external_subscription_id, ...known };
  if (referral) return createCustomerOfReferral(tx, program, { ...attribution, referral }, fields);
  return createCustomer(tx, program, attribution, fields);
}

export function outcomeOf(sale: Sale, commissions: SaleOutcome['commissions'], warning?: WarningCode): SaleOutcome {
  if (!warning) return { ...sale, activity_outcome: 'commission_created', commissions };
  return {
    ...sale,
    activity_outcome: 'sale_recorded',
    warnings: [{ code: warning, message: warning_messages[warning] }],
    commissions,
  };
}

/** Converts a referral, once: by the first payment of a customer whose sale a partner is credited with. */
const convertReferral = (tx: Tx, id: string) =>
  tx.maybe<{ referral_id: string; partner_id: string }>(sql`
    update program.referral t set status = 'converted', updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${id} and ${referrals.alive} and t.status <> 'converted'
    returning t.id as referral_id, t.partner_id`);
