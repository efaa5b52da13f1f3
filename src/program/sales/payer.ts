import sql, { empty, type Sql } from 'sql-template-tag';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { notInProgram, Problem } from '../../core/values/problem.ts';
import { mayBeForgotten } from '../customers/click_retention.ts';
import { type Customer, type CustomerFields, customers, findCustomerOrLock } from '../customers/customer.ts';
import { type ReferredVisitor, referredBy, visitingBy } from '../customers/sign_up.ts';
import type { Program } from '../programs/program.ts';
import { click_columns } from '../tracking/attribution.ts';
import type { ClickRow } from '../tracking/credits.ts';
import type { OwnedClick } from './own_purchase.ts';

/** The fields of a sale that name its customer, and when they paid. */
export interface CustomerClaim {
  customer_id?: string | undefined;
  external_customer_id?: string | undefined;
  click_id?: string | undefined;
  external_subscription_id?: string | undefined;
  occurred_at?: string | undefined;
  customer?: CustomerFields | undefined;
}

/** The click of a sale, and whose it is. */
export type NamedClick = OwnedClick & ClickRow & { referral_id: string | null };

/** The payer, as far as it is known. */
export interface Payer {
  /** The customer, with the details of the sale. */
  customer?: Customer;
  /** The details that were not known, which are to be written. */
  missing?: Partial<Customer>;
  click?: NamedClick;
  /** The visitor, where there is no customer: a partner referred them by the click within the window. */
  referred?: ReferredVisitor;
}

/** The customers whom a sale identifies, locked, and its click. */
export interface Found {
  by_id: Customer | undefined;
  by_external_id: Customer | undefined;
  /** The one who signed up by the click, where it alone names the customer. */
  by_click: Customer | undefined;
  click: NamedClick | undefined;
}

/**
 * Reads what a sale names, all at once.
 * @throws Problem resource_not_found
 */
export async function findNamed(tx: Tx, claim: CustomerClaim & { program_id: string }): Promise<Found> {
  const { program_id, customer_id, click_id } = claim;
  const external_id = externalIdOf(claim);
  const isByClick = click_id !== undefined && customer_id === undefined && external_id === undefined;
  const [by_id, by_external_id, by_click, click] = await together([
    customer_id === undefined ? undefined : customerOf(tx, program_id, customer_id),
    external_id === undefined ? undefined : findCustomerOrLock(tx, program_id, external_id),
    isByClick ? customerOfReferral(tx, referralOf(tx, click_id), claim) : undefined,
    click_id === undefined ? undefined : namedClick(tx, program_id, click_id),
  ]);
  return { by_id, by_external_id, by_click, click };
}

/**
 * Finds who paid: the customer who is identified, or else the one who signed up by the click, locked.
 * @throws Problem invalid_parameter when what identifies the customer is contradictory
 */
export async function payerOf(tx: Tx, program: Program, claim: CustomerClaim, found: Found): Promise<Payer> {
  const identified = identifiedCustomer(claim, found) ?? found.by_click;
  const { click } = found;
  if (identified || !click) return { ...(identified ? completed(identified, claim) : {}), ...(click ? { click } : {}) };
  const isAsked = click.referral_id === null || externalIdOf(claim) === undefined;
  const [of_referral, visiting] = await together([
    isAsked ? undefined : customerOfReferral(tx, sql`${click.referral_id}`, claim),
    visitingBy(tx, click),
  ]);
  if (of_referral) return { ...completed(of_referral, claim), click };
  const { referred, expired } = await referredBy(tx, program, click, { at: claim.occurred_at, visiting });
  const { id, status } = referred?.referral ?? {};
  // A visit has led to nobody.
  const of_visitor =
    id === undefined || id === click.referral_id || status === 'visit'
      ? undefined
      : await customerOfReferral(tx, sql`${id}`, claim);
  if (of_visitor) return { ...completed(of_visitor, claim), click };
  return { click, ...(referred && !expired ? { referred } : {}) };
}

/** Returns the new customer that a sale describes; undefined when it describes none. */
export function describedCustomer({
  customer,
  external_customer_id,
  external_subscription_id,
}: CustomerClaim): CustomerFields | undefined {
  if (!customer && external_customer_id === undefined) return undefined;
  return {
    ...customer,
    ...(external_customer_id === undefined ? {} : { external_customer_id }),
    external_subscription_id,
  };
}

/** By the id, by the processor's id, or by both, which then must agree. */
function identifiedCustomer(claim: CustomerClaim, { by_id, by_external_id }: Found): Customer | undefined {
  if (by_id && by_external_id && by_external_id.id !== by_id.id)
    throw contradiction(
      externalIdParam(claim),
      `The external_customer_id '${externalIdOf(claim)}' is that of the customer ${by_external_id.id}, and customer_id names another one. Send one of them.`,
    );
  return by_id ?? by_external_id;
}

/** @throws Problem resource_not_found */
async function customerOf(tx: Tx, program_id: string, id: string): Promise<Customer> {
  const customer = await customers.get(tx, id, { param: 'customer_id', lock: true });
  if (customer.program_id !== program_id) throw notInProgram('customer', id, 'customer_id');
  return customer;
}

export const externalIdOf = ({ external_customer_id, customer }: CustomerClaim): string | undefined =>
  external_customer_id ?? customer?.external_customer_id;

const externalIdParam = ({ external_customer_id }: CustomerClaim): string =>
  external_customer_id === undefined ? 'customer.external_customer_id' : 'external_customer_id';

/** Returns undefined for one that is no longer kept. @throws Problem resource_not_found */
async function namedClick(tx: Tx, program_id: string, click_id: string): Promise<Found['click']> {
  const [click] = await namedClicks(tx, [program_id], [click_id]);
  if (!click && !mayBeForgotten(click_id)) throw notInProgram('click', click_id, 'click_id');
  return click;
}

/** The clicks of programs. */
export const namedClicks = (tx: Tx, program_ids: string[], click_ids: string[]): Promise<NamedClick[]> =>
  tx.all<NamedClick>(sql`
    select ${click_columns}, t.referral_id, r.partner_id as own_of
    from program.click t
    left join program.referral r
      on r.organization_id = t.organization_id and r.id = t.referral_id and r.deleted_reason = 'self_referral'
    where ${tenant(tx)} and t.program_id = any(${program_ids}) and t.id = any(${click_ids})`);

/**
 * Finds the customer who signed up by a referral: also where its partner was deleted since. Does not lock the referral, which is locked after the
 * customer. A customer whom the sale describes otherwise is another person who came by the same referral: a click identifies nobody.
 */
function customerOfReferral(tx: Tx, referral_id: Sql, claim: CustomerClaim): Promise<Customer | undefined> {
  const { email, identifier } = claim.customer ?? {};
  return customers.find(
    tx,
    sql`${tenant(tx)} and t.referral_id = ${referral_id}${hasNoOtherId(claim)}
      and coalesce(lower(t.email) = lower(${email ?? null}::text), true)
      and coalesce(lower(t.identifier) = lower(${identifier ?? null}::text), true)`,
    lockOf(true),
  );
}

const referralOf = (tx: Tx, click_id: string): Sql =>
  sql`(select k.referral_id from program.click k where k.organization_id = ${tx.organization_id} and k.id = ${click_id})`;

const hasNoOtherId = (claim: CustomerClaim): Sql =>
  externalIdOf(claim) === undefined ? empty : sql` and t.external_customer_id is null`;

const identifying = ['email', 'identifier', 'external_customer_id'] as const;

/**
 * Adds the details of the sale that were not known.
 * @throws Problem invalid_parameter where they contradict those that are known: no detail is dropped silently
 */
function completed(customer: Customer, claim: CustomerClaim): Pick<Payer, 'customer' | 'missing'> {
  const described: CustomerFields = describedCustomer(claim) ?? {};
  for (const field of identifying) {
    if (!contradicts(customer[field], described[field])) continue;
    const param = field === 'external_customer_id' ? externalIdParam(claim) : `customer.${field}`;
    throw contradiction(
      param,
      `The ${field} of the customer ${customer.id} is another one. Leave it out, or update the customer first.`,
    );
  }
  const missing = Object.fromEntries(
    [...identifying, 'name' as const]
      .filter((field) => customer[field] === null && described[field] !== undefined)
      .map((field) => [field, described[field]]),
  );
  return { customer: { ...customer, ...missing }, missing };
}

/** Returns whether all that a sale says of its customer is known, and the same. */
export const saysNothingNew = (customer: Customer, claim: CustomerClaim): boolean =>
  Object.entries(describedCustomer(claim) ?? {}).every(
    ([field, given]) =>
      given === undefined || field === 'external_subscription_id' || given === customer[field as 'name'],
  );

const contradicts = (known: string | null, given: string | undefined): boolean =>
  known !== null && given !== undefined && known.toLowerCase() !== given.toLowerCase();

const contradiction = (param: string, message: string): Problem => new Problem('invalid_parameter', message, { param });
