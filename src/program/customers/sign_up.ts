import sql from 'sql-template-tag';
import { z } from 'zod';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { type Operation, operation } from '../../core/resource/operation.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { allows, transition } from '../../core/resource/states.ts';
import { details, withWarnings } from '../../core/values/detail.ts';
import { id, metadata } from '../../core/values/fields.ts';
import { Problem, type ProblemCode } from '../../core/values/problem.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { type Partner, partnerOf, partners } from '../partners/partner.ts';
import type { Visit } from '../partners/self_referral.ts';
import { type Program, programs } from '../programs/program.ts';
import { findClick, referralOfClick, type Waiting, waitingOf, windowEnd } from '../tracking/attribution.ts';
import type { ClickRow } from '../tracking/credits.ts';
import { type Referral, referral_states, referrals } from '../tracking/referral.ts';
import {
  type Attribution,
  type Customer,
  type CustomerFields,
  createCustomer,
  customers,
  findCustomerOrLock,
  identity,
  identityDetails,
  takenExternalId,
  writable_status,
} from './customer.ts';
import { endSelfReferral, flagSelfReferral, selfReferralMatch } from './self_referral.ts';

const SignUp = z
  .strictObject({
    program_id,
    partner_id: id('part')
      .optional()
      .describe('The partner who referred the customer. Required unless `click_id` is given.'),
    click_id: id('clk')
      .optional()
      .describe('The click that led to the sign-up. Required unless `partner_id` is given.'),
    ...identity,
    status: writable_status.default('lead'),
    metadata: metadata.optional(),
  })
  .refine(({ partner_id, click_id }) => (partner_id === undefined) !== (click_id === undefined), {
    path: ['click_id'],
    message: 'send exactly one of click_id and partner_id',
  });

export const signUpOperation: Operation = operation({
  name: 'customers.create',
  method: 'POST',
  path: '/v1/customers',
  scope: 'customers:write',
  summary: 'Creates a customer when a visitor signs up.',
  doc: 'Exactly one of `partner_id` (attributes the customer directly) and `click_id` (attributes the customer through the click) is required.',
  body: SignUp,
  details: { ...identityDetails, metadata: details.metadata },
  reply: withWarnings(customers.record, 'CustomerCreated', 'The customer.'),
  status: 201,
  errors: ['resource_already_exists', 'self_referral', 'click_expired', 'click_without_credit'],
  ahead: ({ tx, body }) => findSignedUp(tx, body),
  run: ({ tx, body, ahead }) => signUp(tx, body, ahead, tx.now),
});

/** The same of a customer who signed up at a time: the click's attribution window is asked as of then. */
export const signUpAsOf = (at: string): Operation => ({
  ...signUpOperation,
  run: ({ tx, body, ahead }) => signUp(tx, body as z.infer<typeof SignUp>, ahead as Found, at),
});

type Found = Awaited<ReturnType<typeof findSignedUp>>;

/** The program, the customer who has the processor's id already, and the click. */
const findSignedUp = (tx: Tx, { program_id, external_customer_id, click_id }: z.infer<typeof SignUp>) =>
  together([
    programs.get(tx, program_id, { param: 'program_id' }),
    external_customer_id === undefined ? undefined : findCustomerOrLock(tx, program_id, external_customer_id),
    click_id === undefined ? undefined : findClick(tx, program_id, click_id),
  ]);

async function signUp(
  tx: Tx,
  { click_id, partner_id, ...fields }: z.infer<typeof SignUp>,
  [program, existing, click]: Found,
  at: string,
): Promise<Customer> {
  if (existing) throw takenExternalId(existing);
  if (click_id !== undefined)
    return signUpReferred(tx, program, await requireReferred(tx, program, required(click, click_id), at), fields);
  const partner = await partnerOf(tx, program, partner_id as string);
  return createCustomer(tx, program, { partner, tracked_by: 'api' }, fields);
}

/** @throws Problem resource_not_found when the click does not exist in the program */
function required(click: ClickRow | undefined, id: string): ClickRow {
  if (click) return click;
  throw new Problem('resource_not_found', `No click with the id '${id}' in this program.`, { param: 'click_id' });
}

/** A visitor who is credited to a partner: the live referral, and the click that a request refers to. */
export interface ReferredVisitor {
  referral: Referral;
  partner: Partner;
  visit: Visit;
}

/** What decides on whom a click brings: what waits of its visitor, and its partner. */
export interface Visiting {
  waiting: Waiting;
  partner: Partner | undefined;
}

export async function visitingBy(tx: Tx, click: ClickRow): Promise<Visiting> {
  const [waiting, partner] = await together([waitingOf(tx, click, click.id), lockPartner(tx, click.partner_id)]);
  return { waiting, partner };
}

/** The partner, who stays as they are until the transaction ends; undefined of one who is deleted. */
export const lockPartner = (tx: Tx, id: string): Promise<Partner | undefined> =>
  partners.find(tx, sql`${tenant(tx)} and t.id = ${id}`, lockOf('share'));

/**
 * The visitor of a click, after attributing the click if its job has not run yet.
 * @param at when they signed up or paid, which may have been a while ago: the window is asked as of then
 * @returns `referred`: undefined where the click earned no credit, or its partner is deleted; `expired`: whether the click's attribution
 * window has ended
 */
export async function referredBy(
  tx: Tx,
  program: Program,
  click: ClickRow,
  { at = tx.now, visiting }: { at?: string | undefined; visiting?: Visiting } = {},
): Promise<{ referred: ReferredVisitor | undefined; expired: boolean }> {
  const { waiting, partner: of_click } = visiting ?? (await visitingBy(tx, click));
  const referral = referralOfClick(tx, program, click, waiting, at);
  const isOfClick = referral?.partner_id === click.partner_id;
  const partner = referral && (isOfClick ? of_click : await lockPartner(tx, referral.partner_id));
  return {
    referred: referral && partner && { referral, partner, visit: click },
    expired: windowEnd(click.created_at, program.cookie_days) <= at,
  };
}

/**
 * The visitor of a click that must have earned credit.
 * @throws Problem click_expired when the attribution window has ended; self_referral when the click's referral was deleted as one, so that
 * a repeated request gets the same answer; click_without_credit when it earned none
 */
async function requireReferred(tx: Tx, program: Program, click: ClickRow, at: string): Promise<ReferredVisitor> {
  const { referred, expired } = await referredBy(tx, program, click, { at });
  if (expired) {
    throw clickProblem(
      'click_expired',
      `The click is older than the program's ${program.cookie_days} days. To attribute the customer anyway, send a partner_id.`,
    );
  }
  if (referred) return referred;
  if (await endedAsSelfReferral(tx, click.id)) {
    throw clickProblem(
      'self_referral',
      'The visitor of this click is the partner, and this program blocks self-referrals. No customer was created.',
    );
  }
  throw clickProblem(
    'click_without_credit',
    'The click earned no credit: it came from a bot or a blocked country, the program was paused, the partner is not active, or the referral was deleted. To attribute the customer anyway, send a partner_id.',
  );
}

const clickProblem = (code: ProblemCode, message: string): Problem => new Problem(code, message, { param: 'click_id' });

async function endedAsSelfReferral(tx: Tx, click_id: string): Promise<boolean> {
  const row = await tx.maybe(sql`
    select
    from program.click t
    join program.referral r on r.organization_id = t.organization_id and r.id = t.referral_id
    where ${tenant(tx)} and t.id = ${click_id} and r.deleted_reason = 'self_referral'`);
  return row !== undefined;
}

/** A sign-up by a click. @throws Problem self_referral */
async function signUpReferred(
  tx: Tx,
  program: Program,
  referred: ReferredVisitor,
  fields: CustomerFields,
): Promise<Customer> {
  await refuseSelfReferral(tx, program, referred, fields.email);
  return createCustomerOfReferral(tx, program, { ...referred, tracked_by: referred.referral.tracked_by }, fields);
}

/** Records the customer whom a referral led to. The referral becomes a `lead`, and emits `referral.lead`, once. */
export async function createCustomerOfReferral(
  tx: Tx,
  program: Program,
  attribution: Attribution & { referral: Referral },
  fields: CustomerFields,
): Promise<Customer> {
  const { referral } = attribution;
  if (!allows(referral_states, referral.status, 'sign_up')) return createCustomer(tx, program, attribution, fields);
  const status = transition(referral_states, referral.status, 'sign_up');
  const [customer] = await together([
    createCustomer(tx, program, attribution, fields),
    referrals.update(tx, referral.id, { status }),
  ]);
  tellLead(tx, customer, referral);
  return customer;
}

/**
 * A customer came by another referral than was known, or by none: nobody has signed up by the one of before, unless others have.
 * @param referral that of now, as it was before
 */
export async function changeReferral(
  tx: Tx,
  before: Customer,
  after: Customer,
  referral: Referral | undefined,
): Promise<void> {
  if (referral && allows(referral_states, referral.status, 'sign_up')) tellLead(tx, after, referral);
  if (before.referral_id === null) return;
  const left = sql`${tenant(tx)} and t.id = ${before.referral_id}`;
  // Locked first: who signs up by it meanwhile is seen then.
  await tx.all(sql`select from program.referral t where ${left} for no key update`);
  await tx.all(sql`
    update program.referral t set status = 'visit', updated_at = ${tx.now}::timestamptz
    where ${left} and t.status <> 'visit'
      and not exists (select from program.customer c where c.organization_id = t.organization_id and c.referral_id = t.id)`);
}

/** @param request_id its own, where it shares a transaction with other requests */
export function tellLead(tx: Tx, customer: Customer, { id, partner_id }: Referral, request_id?: string | null): void {
  const cause = request_id ? { request_id } : {};
  tx.emit({ ...event('referral.lead', customer, { referral_id: id, partner_id }), ...cause });
}

/** "Self-referral … with `block_self_referrals`: 409 `self_referral`, the referral is deleted with that reason." */
async function refuseSelfReferral(
  tx: Tx,
  program: Program,
  { referral, partner, visit }: ReferredVisitor,
  email: string | undefined,
): Promise<void> {
  const matched = await selfReferralMatch(tx, partner, { email: email ?? null, click: visit });
  if (!program.block_self_referrals || matched === undefined) return;
  await endSelfReferral(tx, referral);
  const subject = { program_id: program.id, partner_id: partner.id, customer_id: null };
  await flagSelfReferral(tx, subject, { matched, referral_id: referral.id });
  throw selfReferralProblem(matched);
}

/** The referral's deletion and the flag are kept although the request is refused. */
const selfReferralProblem = (matched: 'email' | 'browser'): Problem =>
  matched === 'email'
    ? new Problem(
        'self_referral',
        "The email address is the partner's own, and this program blocks self-referrals. No customer was created.",
        { param: 'email', keep_effects: true },
      )
    : new Problem(
        'self_referral',
        "The click came from the partner's own browser, and this program blocks self-referrals. No customer was created.",
        { param: 'click_id', keep_effects: true },
      );
