/** Who a customer of a processor is here, and how their subscriptions stand. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Operation } from '../../core/resource/operation.ts';
import { operationOf, perform } from '../../core/resource/perform.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import {
  type Customer,
  customerOperations,
  customers,
  findCustomerOrLock,
  identityDetails,
} from '../customers/customer.ts';
import { signUpAsOf } from '../customers/sign_up.ts';
import { definite, failed } from './apply_sale.ts';
import { release } from './inbox.ts';
import { type Applying, done, findKnown, ignored, isOlder, know, type Outcome, older, unattributed } from './known.ts';
import type { Fact } from './processor.ts';

/** No event fails for a name or an address that cannot be stored as it is. */
const updateOperation: Operation = {
  ...operationOf(customerOperations, 'customers.update'),
  details: identityDetails,
};

type Who = Omit<Extract<Fact, { kind: 'customer' }>, 'kind'>;

export async function applyCustomer(applying: Applying, who: Who): Promise<Outcome> {
  const { tx, program } = applying;
  const known = await findCustomerOrLock(tx, program.id, who.external_customer_id);
  if (known) return completed(applying, known, who);
  const bound = await bind(applying, who);
  if (bound === undefined)
    return unattributed(null, 'Nothing says which partner brought this customer. Their charges stay in the inbox.');
  if (bound instanceof Problem) return failedOrNobody(bound);
  await release(tx, program.id, [who.external_customer_id]);
  return done(bound.id);
}

/** A click that earned nothing, and a partner who buys by their own link: what follows is known, and there is nothing to correct. */
const credits_nobody = ['click_expired', 'click_without_credit', 'self_referral'];

const failedOrNobody = (problem: Problem): Outcome =>
  credits_nobody.includes(problem.code) ? ignored(problem.code, problem.message) : failed(problem);

/** Adds what is not known: the processor's word changes nothing that is. */
async function completed({ tx, by, services }: Applying, customer: Customer, who: Who): Promise<Outcome> {
  const missing = definite({
    email: customer.email === null ? who.email : undefined,
    name: customer.name === null ? who.name : undefined,
  });
  if (Object.keys(missing).length === 0) return done(customer.id, 'already_recorded');
  const given = { params: { id: customer.id }, body: missing };
  const reply = await perform<Customer>(tx, { operation: updateOperation, by, services }, given);
  return reply instanceof Problem ? failed(reply) : done(customer.id);
}

/**
 * Makes the customer known by the processor's id: one who signed up, by their own id or by the click, or a new one by the click.
 * @returns undefined where nothing says who it is
 */
async function bind(applying: Applying, who: Who): Promise<Customer | Problem | undefined> {
  const { tx, program, occurred_at, by, services } = applying;
  const { external_customer_id, click_id, email, name } = who;
  const signed_up = await signedUp(tx, program.id, who);
  if (signed_up) {
    const bound = await customers.update(tx, signed_up.id, { external_customer_id });
    await completed(applying, bound, who);
    return bound;
  }
  if (click_id === undefined || !(await isClick(tx, program.id, click_id))) return undefined;
  const body = definite({ program_id: program.id, click_id, external_customer_id, email, name });
  return perform<Customer>(tx, { operation: signUpAsOf(occurred_at), by, services }, { body });
}

/** The customer who signed up here and has no id of the processor. Somebody with another address who came by the same click is another person. */
async function signedUp(
  tx: Tx,
  program_id: string,
  { customer_id, click_id, email }: Who,
): Promise<Customer | undefined> {
  const of_program = sql`${tenant(tx)} and t.program_id = ${program_id} and t.external_customer_id is null`;
  const by_id =
    customer_id === undefined
      ? undefined
      : await customers.find(tx, sql`${of_program} and t.id = ${customer_id}`, lockOf(true));
  if (by_id || click_id === undefined) return by_id;
  return customers.find(
    tx,
    sql`${of_program}
      and t.referral_id = (select c.referral_id from program.click c where c.organization_id = t.organization_id and c.program_id = t.program_id and c.id = ${click_id})
      and coalesce(lower(t.email) = lower(${email ?? null}::text), true)`,
    lockOf(true),
  );
}

async function isClick(tx: Tx, program_id: string, click_id: string): Promise<boolean> {
  const found = await tx.maybe(
    sql`select from program.click t where ${tenant(tx)} and t.program_id = ${program_id} and t.id = ${click_id}`,
  );
  return found !== undefined;
}

export async function applySubscription(
  applying: Applying,
  fact: Extract<Fact, { kind: 'subscription' }>,
): Promise<Outcome> {
  const { tx, program } = applying;
  const { external_subscription_id, external_customer_id, click_id, status, at } = fact;
  let customer = await findCustomerOrLock(tx, program.id, external_customer_id);
  if (!customer && click_id !== undefined) {
    const outcome = await applyCustomer(applying, { external_customer_id, click_id });
    if (outcome.status === 'failed') return outcome;
    customer = await findCustomerOrLock(tx, program.id, external_customer_id);
  }
  if (!customer) return unattributed(external_customer_id, 'Nobody is credited with this customer.');
  if (isOlder(at, await findKnown(applying, external_subscription_id))) return older;
  await know(applying, [external_subscription_id], { object_id: customer.id, state: status, at });
  return follow(applying, customer, external_subscription_id);
}

async function follow(applying: Applying, customer: Customer, external_subscription_id: string): Promise<Outcome> {
  const { tx } = applying;
  if (customer.external_subscription_id === null) await customers.update(tx, customer.id, { external_subscription_id });
  return followSubscriptions(applying, customer);
}

/** Sets the status of a customer by their subscriptions: one of several is active by any one of them. */
export async function followSubscriptions(
  { tx, program, processor, by, services }: Applying,
  customer: Customer,
): Promise<Outcome> {
  const { states } = await tx.one<{ states: string[] }>(sql`
    select coalesce(array_agg(distinct t.state), '{}') as states
    from program.processor_object t
    where ${tenant(tx)} and t.object_id = ${customer.id} and t.program_id = ${program.id} and t.processor = ${processor}`);
  const status = statusOf(customer.status, states);
  if (status === customer.status) return done(customer.id);
  const given = { params: { id: customer.id }, body: { status } };
  const reply = await perform<Customer>(tx, { operation: updateOperation, by, services }, given);
  return reply instanceof Problem ? failed(reply) : done(customer.id);
}

/** A refund and a suspension stand, and whoever has paid is in no trial any more. */
export function statusOf(before: Customer['status'], states: string[]): Customer['status'] {
  if (before === 'suspended' || before === 'refunded') return before;
  if (states.includes('active')) return 'active';
  if (states.includes('trial')) return before === 'lead' ? 'trial' : before;
  return states.includes('cancelled') ? 'cancelled' : before;
}
