/** Refunds and disputes of payments at a processor: by the operations of the API, each once. */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { operationOf, perform } from '../../core/resource/perform.ts';
import { tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import { customers } from '../customers/customer.ts';
import { disputeOperations } from '../dispute_sale.ts';
import { refundOperations } from '../refund_sale.ts';
import { type Dispute, disputes } from '../sales/dispute.ts';
import { type Refund, refunds } from '../sales/refund.ts';
import { lockSale, type Sale, sales } from '../sales/sale.ts';
import { nameDispute, nameRefund } from '../sales/told.ts';
import { followSubscriptions } from './apply_customer.ts';
import { definite, failed } from './apply_sale.ts';
import { release } from './inbox.ts';
import {
  type Applying,
  done,
  findKnown,
  ignored,
  isOlder,
  know,
  type Outcome,
  older,
  unattributed,
  waitingFor,
} from './known.ts';
import type { Fact } from './processor.ts';

const refundOperation = operationOf(refundOperations, 'sales.refund');
const reverseOperation = operationOf(refundOperations, 'refunds.reverse');
const openOperation = operationOf(disputeOperations, 'disputes.create');
const closeOperation = operationOf(disputeOperations, 'disputes.close');

/** The sale of a payment, or what becomes of an event that is about it. */
async function saleOf(applying: Applying, payment: string, currency?: string): Promise<Sale | Outcome> {
  const { tx, program } = applying;
  const known = await findKnown(applying, payment);
  const where = known?.object_id
    ? sql`t.id = ${known.object_id}`
    : // Somebody may have sent the sale by the API.
      sql`t.external_charge_id = ${payment}`;
  const sale = await sales.find(tx, sql`${tenant(tx)} and t.program_id = ${program.id} and ${where}`);
  if (sale && currency !== undefined && currency !== sale.currency) return otherCurrency(currency, sale);
  if (sale) return sale;
  if (!known) return waitingFor(payment);
  return known.object_id === null
    ? unattributed(payment, 'The charge is no sale, because nobody is credited with it.')
    : { ...ignored('sale_deleted', 'The sale was deleted.'), waiting_for: payment };
}

/** Nothing is converted: what was sold in one currency cannot be taken back in another one. */
const otherCurrency = (currency: string, sale: Sale): Outcome => ({
  status: 'failed',
  reason: 'currency_mismatch',
  message: `It is in ${currency}, and the sale ${sale.id} is in ${sale.currency}. Amounts are not converted: record it by POST /v1/sales/${sale.id}/refund or POST /v1/disputes in ${sale.currency}.`,
});

const isOutcome = (found: Sale | Outcome): found is Outcome => !('amount_minor' in found);

/** A time that a request may send for something that came after the sale. */
const after = (sale: Sale, time: string): string => (time < sale.occurred_at ? sale.occurred_at : time);

export async function applyRefund(applying: Applying, fact: Extract<Fact, { kind: 'refund' }>): Promise<Outcome> {
  const { external_refund_id, status, at } = fact;
  const sale = await saleOf(applying, fact.of, fact.currency);
  if (isOutcome(sale)) return sale;
  const known = await findKnown(applying, external_refund_id);
  const standing = await refundOf(applying, sql`t.id = ${known?.object_id ?? null}`);
  if (standing && (status === 'succeeded' || known?.state === 'failed')) return done(standing.id);
  const recorded = standing?.id ?? (await recordedBefore(applying, sale, fact));
  if (status === 'failed') {
    if (recorded) return reversed(applying, sale, recorded, fact);
    // If it never succeeded, nothing was taken; if a request or an event is still to tell it, it is taken and given back then.
    await know(applying, [external_refund_id], { object_id: null, state: 'failed', at });
    const refusal = ignored('refund_failed', 'The refund failed, and nothing was taken for it.');
    return { ...refusal, waiting_for: external_refund_id };
  }
  const refund_id = recorded ?? (await refunded(applying, sale, fact));
  if (typeof refund_id !== 'string') return refund_id;
  if (known?.state === 'failed') return reversed(applying, sale, refund_id, fact);
  await know(applying, [external_refund_id], { object_id: refund_id, state: 'succeeded', at });
  return done(refund_id);
}

/** The refund that a request recorded: by the processor's id, or without an id, which it gets. */
async function recordedBefore(
  applying: Applying,
  { id }: Sale,
  { external_refund_id, amount_minor, refunded_at: at }: Extract<Fact, { kind: 'refund' }>,
): Promise<string | undefined> {
  const { tx } = applying;
  const { sale } = await lockSale(tx, id);
  const named = await refundOf(applying, hasId(external_refund_id));
  return (named ?? (await nameRefund(tx, sale, { amount_minor, at: after(sale, at) }, external_refund_id)))?.id;
}

/** A refund that did not go with its sale. */
const refundOf = ({ tx, program }: Applying, which: Sql): Promise<Refund | undefined> =>
  refunds.find(tx, sql`${tenant(tx)} and t.program_id = ${program.id} and ${which}`);

const hasId = (external_refund_id: string): Sql => sql`t.external_refund_id = ${external_refund_id}`;

async function refunded(
  applying: Applying,
  sale: Sale,
  { external_refund_id, of, amount_minor, reason, refunded_at }: Extract<Fact, { kind: 'refund' }>,
): Promise<string | Outcome> {
  const { tx, by, services } = applying;
  const body = definite({ amount_minor, external_refund_id, reason, refunded_at: after(sale, refunded_at) });
  const reply = await perform<Sale>(
    tx,
    { operation: refundOperation, by, services },
    { params: { id: sale.id }, body },
  );
  if (reply instanceof Problem) {
    const refusal = reply.code === 'sale_already_refunded' ? ignored(reply.code, reply.message) : failed(reply);
    return { ...refusal, waiting_for: of };
  }
  const refund = await refundOf(applying, hasId(external_refund_id));
  return refund?.id ?? failed(new Problem('internal_error', 'The refund was recorded, and is not found.'));
}

async function reversed(
  applying: Applying,
  sale: Sale,
  refund_id: string,
  { external_refund_id, of, at }: Extract<Fact, { kind: 'refund' }>,
): Promise<Outcome> {
  const { tx, by, services } = applying;
  const given = { params: { id: refund_id }, body: { reason: 'refund_failed' } };
  const reply = await perform<object>(tx, { operation: reverseOperation, by, services }, given);
  // Somebody may have reversed it by the API.
  if (reply instanceof Problem && reply.code !== 'invalid_state_transition') return failed(reply);
  await know(applying, [external_refund_id], { object_id: refund_id, state: 'failed', at });
  await givenBack(applying, sale, of);
  return done(refund_id);
}

/**
 * Gives a customer back the status that a refund took, with the money: as their subscriptions stand now. A refund that was refused because nothing
 * was left is worked on again.
 */
async function givenBack(applying: Applying, { customer_id }: Sale, payment: string): Promise<void> {
  const { tx, program } = applying;
  const customer =
    customer_id === null ? undefined : await customers.find(tx, sql`${tenant(tx)} and t.id = ${customer_id}`);
  if (customer) await followSubscriptions(applying, customer);
  await release(tx, program.id, [payment]);
}

export async function applyDispute(applying: Applying, fact: Extract<Fact, { kind: 'dispute' }>): Promise<Outcome> {
  const { external_dispute_id, status, at } = fact;
  const sale = await saleOf(applying, fact.of, fact.currency);
  if (isOutcome(sale)) return sale;
  const known = await findKnown(applying, external_dispute_id);
  if (isOlder(at, known)) return older;
  if (fact.only_if_known && !known?.object_id) {
    // If it is still to be told that it was opened, that is over.
    await know(applying, [external_dispute_id], { object_id: null, state: status, at });
    return ignored('no_dispute', 'No money was taken for it.');
  }
  const dispute = await openedDispute(applying, sale, fact);
  if (dispute instanceof Problem) return failed(dispute);
  // A bank that still decides takes nothing back.
  const decided = status === 'open' || dispute.status === status ? dispute : await closed(applying, dispute, fact);
  if (decided instanceof Problem) return failed(decided);
  await know(applying, [external_dispute_id], { object_id: dispute.id, state: decided.status, at });
  if (dispute.status === 'lost' && decided.status === 'won') await givenBack(applying, sale, fact.of);
  return done(dispute.id);
}

async function openedDispute(
  { tx, program, by, services }: Applying,
  sale: Sale,
  { external_dispute_id, amount_minor, is_refund, reason, opened_at }: Extract<Fact, { kind: 'dispute' }>,
): Promise<Dispute | Problem> {
  const found = await disputeOf(tx, program.id, external_dispute_id);
  if (found) return found;
  const disputed = Math.min(amount_minor, sale.amount_minor);
  const locked = await lockSale(tx, sale.id);
  const named = await nameDispute(tx, locked.sale, { amount_minor: disputed, at: opened_at }, external_dispute_id);
  if (named) return named;
  // It is the refund of the dispute then.
  if (is_refund)
    await nameRefund(tx, locked.sale, { amount_minor: disputed, at: after(sale, opened_at) }, external_dispute_id);
  const body = definite({ sale_id: sale.id, amount_minor: disputed, external_dispute_id, reason, opened_at });
  return perform<Dispute>(tx, { operation: openOperation, by, services }, { body });
}

const disputeOf = (tx: Tx, program_id: string, external_dispute_id: string): Promise<Dispute | undefined> =>
  disputes.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.external_dispute_id = ${external_dispute_id}`,
  );

function closed(
  { tx, by, services }: Applying,
  { id }: Dispute,
  { status: outcome, at: closed_at }: Extract<Fact, { kind: 'dispute' }>,
): Promise<Dispute | Problem> {
  const given = { params: { id }, body: { outcome, closed_at } };
  return perform<Dispute>(tx, { operation: closeOperation, by, services }, given);
}
