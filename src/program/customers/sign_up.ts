import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { id, metadata } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { event } from '../events/catalogue.ts';
import { type Partner, partnerOf, partners } from '../partners/partner.ts';
import { partnerVisits, recordPartnerVisit } from '../partners/partner_visit.ts';
import { selfReferralBy, type Visit } from '../partners/self_referral.ts';
import { type Program, programs } from '../programs/program.ts';
import { raiseFlag } from '../programs/raise_flag.ts';
import { referralOfClick, windowEnd } from '../tracking/attribution.ts';
import { deleteReferral, type Referral, referrals } from '../tracking/referral.ts';
import {
  type Customer,
  type CustomerFields,
  createCustomer,
  customers,
  findCustomerOrLock,
  identity,
  takenExternalId,
  writable_statuses,
} from './customer.ts';

export const signUpOperations: Operation[] = [
  operation({
    name: 'customers.create',
    method: 'POST',
    path: '/v1/customers',
    scope: 'customers:write',
    summary: 'Records a sign-up.',
    doc: 'One of `partner_id` (attribute directly) and `click_id` (attribute through the click) is required.',
    body: z
      .strictObject({
        program_id: id('prg'),
        partner_id: id('part').optional().describe('Who brought the customer. This or `click_id`.'),
        click_id: id('clk').optional().describe('The click that brought the customer. This or `partner_id`.'),
        ...identity,
        status: z.enum(writable_statuses).default('lead'),
        metadata: metadata.optional(),
      })
      .refine(({ partner_id, click_id }) => (partner_id === undefined) !== (click_id === undefined), {
        path: ['click_id'],
        message: 'give one of click_id and partner_id',
      }),
    reply: customers.schema,
    status: 201,
    errors: ['resource_already_exists', 'self_referral', 'click_expired'],
    async run({ tx, body }) {
      const of = await programs.get(tx, body.program_id, { param: 'program_id' });
      const { click_id, partner_id, ...fields } = body;
      const existing = fields.external_customer_id && (await findCustomerOrLock(tx, of, fields.external_customer_id));
      if (existing) throw takenExternalId(existing);
      if (click_id !== undefined)
        return createCustomerOfReferral(tx, of, await requireReferred(tx, of, click_id), fields);
      const owner = await partnerOf(tx, of, partner_id as string);
      return createCustomer(tx, of, { partner: owner, tracked_by: 'api' }, fields);
    },
  }),
];

/** The visitor's live referral, whose it is, and the visit by which it is named now. */
export interface Referred {
  referral: Referral;
  owner: Partner;
  visit: Visit;
}

/**
 * The live referral behind a click, judged on the spot where its job has not run yet; none where the click earned no credit, or its partner
 * is deleted. `expired`: the click is outside its window.
 */
export async function referredBy(
  tx: Tx,
  of: Program,
  click_id: string,
): Promise<{ referred: Referred | undefined; expired: boolean }> {
  const { click, referral: credited } = await referralOfClick(tx, click_id, of.id);
  const owner = credited && (await partners.find(tx, sql`${tenant(tx)} and t.id = ${credited.partner_id}`));
  return {
    referred: credited && owner && { referral: credited, owner, visit: click },
    expired: windowEnd(click.created_at, of.cookie_days) <= tx.now,
  };
}

/**
 * @throws Problem click_expired when the click is outside its window; self_referral, as the first time, when its referral ended so;
 * invalid_parameter when the click earned no credit
 */
async function requireReferred(tx: Tx, of: Program, click_id: string): Promise<Referred> {
  const { referred, expired } = await referredBy(tx, of, click_id);
  if (expired) {
    throw new Problem(
      'click_expired',
      `The click is older than the program's ${of.cookie_days} days. Name a partner_id to attribute by hand.`,
      {
        param: 'click_id',
      },
    );
  }
  if (!referred) {
    if (await endedAsSelfReferral(tx, click_id)) {
      throw new Problem(
        'self_referral',
        'The visitor of this click is the partner, and this program blocks self-referrals. Nothing was credited.',
        {
          param: 'click_id',
        },
      );
    }
    throw new Problem(
      'invalid_parameter',
      'The click earned no credit: a robot, a blocked country, a partner who is not active, or a referral that was deleted. Name a partner_id.',
      {
        param: 'click_id',
      },
    );
  }
  return referred;
}

async function endedAsSelfReferral(tx: Tx, click_id: string): Promise<boolean> {
  const ended = await tx.maybe(sql`
    select
    from program.click t
    join program.referral r on r.organization_id = t.organization_id and r.id = t.referral_id
    where ${tenant(tx)} and t.id = ${click_id} and r.deleted_reason = 'self_referral'`);
  return ended !== undefined;
}

/** Records the sign-up of a referred visitor: the referral becomes a `lead`, told once. */
export async function createCustomerOfReferral(
  tx: Tx,
  of: Program,
  referred: Referred,
  fields: CustomerFields,
): Promise<Customer> {
  await refuseSelfReferral(tx, of, referred, fields.email);
  const { referral: credited, owner } = referred;
  const made = await createCustomer(
    tx,
    of,
    { partner: owner, tracked_by: credited.tracked_by, referral: credited },
    fields,
  );
  if (credited.status !== 'visit') return made;
  await referrals.update(tx, credited.id, { status: 'lead' });
  const { id: customer_id, partner_id, email: address, tracked_by: how } = made;
  tx.emit(
    event('referral.lead', of.id, {
      referral_id: credited.id,
      customer_id,
      partner_id,
      email: address,
      tracked_by: how,
    }),
  );
  return made;
}

/** "Self-referral … with `block_self_referrals`: 409 `self_referral`, the referral is deleted with that reason." */
async function refuseSelfReferral(
  tx: Tx,
  of: Program,
  { referral: credited, owner, visit }: Referred,
  address: string | undefined,
): Promise<void> {
  const matched = selfReferralBy({
    partner_email: owner.email,
    customer_email: address ?? null,
    partner_visits: await partnerVisits(tx, owner.id, [visit]),
    clicks: [visit],
  });
  if (matched === 'email') await recordPartnerVisit(tx, owner.id, visit);
  if (!of.block_self_referrals || matched === undefined) return;
  if (credited.status === 'visit') await deleteReferral(tx, credited, 'self_referral');
  await raiseFlag(tx, {
    program_id: of.id,
    partner_id: owner.id,
    customer_id: null,
    kind: 'self_referral',
    severity: 'high',
    evidence: { matched, referral_id: credited.id },
  });
  throw new Problem(
    'self_referral',
    matched === 'email'
      ? 'The customer is the partner, and this program blocks self-referrals. Nothing was credited.'
      : "The click came from the partner's own browser, and this program blocks self-referrals. Nothing was credited.",
    {
      param: matched === 'email' ? 'email' : 'click_id',
      keep_effects: true,
    },
  );
}
