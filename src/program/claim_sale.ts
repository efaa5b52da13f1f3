import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { transition } from '../core/resource/states.ts';
import { textDetail, withWarnings } from '../core/values/detail.ts';
import { id, requireState, text } from '../core/values/fields.ts';
import { newId } from '../core/values/id.ts';
import { notInProgram, Problem } from '../core/values/problem.ts';
import { correct } from './change_sale.ts';
import { createCustomer, findCustomerOrLock } from './customers/customer.ts';
import { partnerOf } from './partners/partner.ts';
import { billing } from './processors/processors.ts';
import { type Program, programs } from './programs/program.ts';
import { chargesOf, knownCharge } from './sales/known_charge.ts';
import { lockSale, type Sale, sales } from './sales/sale.ts';
import {
  claim_states,
  claimReadOperations,
  type Finding,
  findClaimed,
  hasClicked,
  NewSaleClaim,
  resolutions,
  type SaleClaim,
  saleClaims,
} from './sales/sale_claim.ts';

/** Answers partners who miss a sale, and credits them where the merchant accepts that. */
export const claimOperations: Operation[] = [
  ...claimReadOperations,
  operation({
    name: 'sale_claims.create',
    title: 'Claim a missing sale',
    method: 'POST',
    path: '/v1/sale_claims',
    scope: 'sales:write',
    summary: 'Looks for a sale that a partner misses.',
    doc: 'Answers at once, as `finding` says, from the sales, the events of the billing processor and the clicks. A charge that is no sale is found by its id, or by an `email` with `occurred_at`. A claim of a sale that the partner is credited with is accepted; every other one is `open` until you resolve it. Of the claims of a sale, one is accepted at most.',
    body: NewSaleClaim,
    details: { note: textDetail(1000) },
    reply: withWarnings(saleClaims.record, 'SaleClaimCreated', 'The claim.'),
    status: 201,
    async run({ tx, body }) {
      const program = await programs.get(tx, body.program_id, { param: 'program_id' });
      const partner = await partnerOf(tx, program, body.partner_id);
      const found = await findingOf(tx, program, body);
      const isCredited = found.finding === 'credited' && !(await isGivenToOther(tx, found.sale_id, partner.id));
      const row = {
        ...body,
        ...found,
        id: newId('clm'),
        partner_id: partner.id,
        status: isCredited ? 'accepted' : 'open',
      };
      return (await saleClaims.insert(tx, { ...row, resolved_at: isCredited ? tx.now : null })) as SaleClaim;
    },
  }),
  operation({
    name: 'sale_claims.resolve',
    method: 'POST',
    path: '/v1/sale_claims/{id}/resolve',
    scope: 'sales:write',
    summary: 'Accepts or rejects a claim.',
    doc: "`accepted`: the sale is corrected to be the partner's, as by `PATCH /v1/sales/{id}`. Where the finding is `received`, the customer is recorded as the partner's, and the charges that the billing processor reported become sales. A charge that the claim names is looked for again. Where it is not found, record the sale first, and send its `sale_id`.",
    params: idParams,
    body: z.strictObject({
      resolution: z.enum(resolutions).describe('The new status.'),
      sale_id: id('sale').optional().describe('The sale, where the claim names none, or another one than was found.'),
      resolution_note: text.max(1000).optional().describe('Your note.'),
    }),
    details: { resolution_note: textDetail(1000) },
    reply: withWarnings(saleClaims.record, 'SaleClaimResolved', 'The claim after the decision.'),
    errors: ['invalid_state_transition'],
    async run({ tx, params, body }) {
      const claim = await saleClaims.get(tx, params.id, { lock: true });
      const status = transition(claim_states, claim.status, body.resolution);
      const found = status === 'accepted' ? await foundByNow(tx, claim) : claim;
      const sale_id = body.sale_id ?? found.sale_id;
      if (sale_id !== null) await requireOfProgram(tx, claim, sale_id);
      if (status === 'accepted') await accept(tx, { ...claim, ...found, sale_id });
      const resolution_note = body.resolution_note ?? null;
      return saleClaims.update(tx, claim.id, { status, sale_id, resolution_note, resolved_at: tx.now });
    },
  }),
];

/** Returns whether a claim of another partner was accepted for a sale, before the merchant gave it to this one by hand. */
async function isGivenToOther(tx: Tx, sale_id: string | null, partner_id: string): Promise<boolean> {
  if (sale_id === null) return false;
  const sale = await sales.get(tx, sale_id, { lock: true });
  return sale.partner_id !== partner_id || (await acceptedForOther(tx, sale, partner_id)) !== undefined;
}

type Found = Pick<SaleClaim, 'finding' | 'sale_id' | 'processor_event_id'>;

async function findingOf(tx: Tx, program: Program, claim: NewSaleClaim): Promise<Found> {
  const found = (finding: Finding, ids: Partial<Found> = {}): Found => ({
    ...{ finding, sale_id: null, processor_event_id: null },
    ...ids,
  });
  const sale = (await findClaimed(tx, claim)) ?? (await saleKnownAs(tx, claim));
  if (!sale) {
    const event = await unattributedCharge(tx, claim);
    return event ? found('received', { processor_event_id: event.id }) : found('not_found');
  }
  const { id: sale_id, partner_id } = sale;
  if (partner_id === claim.partner_id) return found('credited', { sale_id });
  const isClicked = await hasClicked(tx, program, sale, claim.partner_id);
  return found(isClicked ? 'found_with_click' : 'found_without_click', { sale_id });
}

/** A charge that a claim names may have been told, or become a sale, since the claim was created. */
async function foundByNow(
  tx: Tx,
  { program_id, partner_id, sale_id, processor_event_id, external_charge_id }: SaleClaim,
): Promise<Pick<Found, 'sale_id' | 'processor_event_id'>> {
  if (sale_id !== null || external_charge_id === null) return { sale_id, processor_event_id };
  const program = await programs.get(tx, program_id);
  const found = await findingOf(tx, program, { program_id, partner_id, external_charge_id });
  return { sale_id: found.sale_id, processor_event_id: found.processor_event_id ?? processor_event_id };
}

/** The sale that the billing processor knows by another id of the payment. */
const saleKnownAs = (tx: Tx, { program_id, external_charge_id = '' }: NewSaleClaim): Promise<Sale | undefined> =>
  sales.find(
    tx,
    sql`${tenant(tx)} and t.id = any(array(
      select o.object_id from ${chargesOf([{ program_id, external_charge_id }])} join ${knownCharge(tx)}
    ))`,
  );

/** A charge in the inbox that is nobody's: by its id alone, if the claim names one, else by the email address that it holds, within a day of the time. */
function unattributedCharge(tx: Tx, claim: NewSaleClaim): Promise<{ id: string } | undefined> | undefined {
  const { program_id, external_charge_id, email, occurred_at } = claim;
  if (external_charge_id === undefined && (email === undefined || occurred_at === undefined)) return undefined;
  const isClaimed =
    external_charge_id === undefined
      ? sql`t.occurred_at between ${occurred_at}::timestamptz - interval '1 day' and ${occurred_at}::timestamptz + interval '1 day'
          and strpos(lower(t.body), lower(${JSON.stringify(email)})) > 0`
      : sql`t.external_object_id = ${external_charge_id}`;
  return tx.maybe<{ id: string }>(sql`
    select t.id from program.processor_event t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.status = 'ignored' and t.reason = 'unattributed'
      and t.type = any(${charge_types}::text[]) and ${isClaimed}
    order by t.id limit 1`);
}

const charge_types = Object.values(billing).flatMap((processor) => processor.charge_types);

/** @throws Problem resource_not_found */
async function requireOfProgram(tx: Tx, { program_id }: SaleClaim, sale_id: string): Promise<void> {
  const sale = await sales.get(tx, sale_id, { param: 'sale_id' });
  if (sale.program_id !== program_id) throw notInProgram('sale', sale_id, 'sale_id');
}

/** @throws Problem missing_parameter where no sale is known */
async function accept(tx: Tx, { program_id, partner_id, sale_id, processor_event_id }: SaleClaim): Promise<void> {
  const program = await programs.get(tx, program_id);
  if (sale_id !== null) {
    const { sale, customer } = await lockSale(tx, sale_id, { param: 'sale_id' });
    const other = await acceptedForOther(tx, sale, partner_id);
    requireState(
      other === undefined,
      `The claim ${other?.id} of another partner is accepted for this sale. To credit this partner all the same, reject this claim and correct the sale.`,
    );
    await correct(tx, sale, customer, { partner_id });
    return;
  }
  const customer_id = processor_event_id && (await customerOfEvent(tx, processor_event_id));
  if (!customer_id)
    throw new Problem(
      'missing_parameter',
      'No sale is known by the claim. Record it with POST /v1/sales, and send its id as sale_id.',
      { param: 'sale_id' },
    );
  const known = await findCustomerOrLock(tx, program.id, customer_id);
  requireState(known === undefined, `The customer ${known?.id} is known by now. Send the sale_id of the sale.`);
  const partner = await partnerOf(tx, program, partner_id);
  await createCustomer(tx, program, { partner, tracked_by: 'manual' }, { external_customer_id: customer_id });
}

/**
 * Finds a claim by which another partner was given the sale: one that names it, or the charge that it was made of.
 * @param sale locked, so that no other claim of it is being accepted
 */
const acceptedForOther = (tx: Tx, { id, program_id, external_charge_id }: Sale, partner_id: string) =>
  tx.maybe<{ id: string }>(sql`
    select t.id from program.sale_claim t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.status = 'accepted' and t.partner_id <> ${partner_id}
      and (
        t.sale_id = ${id}
        or t.sale_id is null and t.external_charge_id in (
          select ${external_charge_id}
          union all
          select o.external_id from program.processor_object o where o.organization_id = t.organization_id and o.object_id = ${id}
        )
      )
    limit 1`);

async function customerOfEvent(tx: Tx, event_id: string): Promise<string | null> {
  const event = await tx.maybe<{ external_customer_id: string | null }>(
    sql`select t.external_customer_id from program.processor_event t where ${tenant(tx)} and t.id = ${event_id}`,
  );
  return event?.external_customer_id ?? null;
}
