/** Gives the facts of an event their effects: each by the operation that a request would call. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { billing_processors } from '../programs/program.ts';
import { coupons, switchCoupon } from '../tracking/coupon.ts';
import { applyCustomer, applySubscription } from './apply_customer.ts';
import { applyDispute, applyRefund } from './apply_refund.ts';
import { applySale, type SentSale, saleBy } from './apply_sale.ts';
import { disconnected } from './connection.ts';
import { releaseOfSale, releaseSince } from './inbox.ts';
import {
  type Applying,
  done,
  findKnown,
  ignored,
  know,
  type Outcome,
  older,
  unattributed,
  waitingFor,
} from './known.ts';
import type { Attributable, Fact } from './processor.ts';

/** The statuses by weight: of several facts, the outcome with the first of these is that of the event. */
const by_weight = ['failed', 'waiting', 'ignored', 'done'] as const;

/** An event of several facts is worked on again as a whole: each has its effect once. */
export async function applyFacts(applying: Applying, facts: Fact[]): Promise<Outcome> {
  const outcomes: Outcome[] = [];
  for (const fact of facts) outcomes.push(await applyFact(applying, fact));
  const told = outcomes.filter(
    ({ status, reason, waiting_for }) => status !== 'ignored' || reason === 'unattributed' || waiting_for,
  );
  const found = by_weight.flatMap(
    (status) => (told.length > 0 ? told : outcomes).find((one) => one.status === status) ?? [],
  );
  return found[0] ?? ignored('nothing', 'The event says nothing.');
}

function applyFact(applying: Applying, fact: Fact): Promise<Outcome> {
  switch (fact.kind) {
    case 'sale':
      return applySale(applying, fact);
    case 'customer':
      return applyCustomer(applying, fact);
    case 'subscription':
      return applySubscription(applying, fact);
    case 'alias':
      return applyAlias(applying, fact);
    case 'refund':
      return applyRefund(applying, fact);
    case 'dispute':
      return applyDispute(applying, fact);
    case 'coupon':
      return applyCoupon(applying, fact);
    case 'disconnected':
      return disconnected(applying.tx, applying.by, fact.message).then(() => done(null));
  }
}

/** The ids of the processor that facts name or make known. */
export const idsIn = (facts: Fact[]): string[] =>
  facts
    .flatMap((fact) => Object.entries(fact).flatMap(([name, value]) => (id_fields.has(name) ? [value].flat() : [])))
    .filter((value): value is string => typeof value === 'string');

const id_fields = new Set([
  ...['of', 'external_id', 'external_charge_id', 'external_customer_id', 'external_subscription_id'],
  ...['external_refund_id', 'external_dispute_id', 'also_known_as', 'paid_for'],
]);

/** Returns whether a customer, a click or a coupon by which a sale might be credited is known, or the sale by an id of the payment. */
export async function mayBeCredited(
  tx: Tx,
  program_id: string,
  { external_customer_id, click_id, by_coupon, payment_ids = [] }: Attributable,
): Promise<boolean> {
  const { known } = await tx.one<{ known: boolean }>(sql`
    select
      exists (
        select from program.customer t
        where ${tenant(tx)} and t.program_id = ${program_id} and t.external_customer_id = ${external_customer_id} and t.deleted_at is null
      )
      or exists (select from program.click t where ${tenant(tx)} and t.program_id = ${program_id} and t.id = ${click_id ?? null})
      or exists (
        select from program.sale t
        where ${tenant(tx)} and t.program_id = ${program_id} and t.external_charge_id = any(${payment_ids}::text[]) and t.deleted_at is null
      )
      or exists (
        select from program.processor_object t
        where ${tenant(tx)} and t.program_id = ${program_id} and t.processor = any(${[...billing_processors]}::text[])
          and t.external_id = any(${payment_ids}::text[]) and t.object_id is not null
      )
      or ${by_coupon}::boolean and exists (
        select from program.coupon t
        where ${tenant(tx)} and t.program_id = ${program_id} and t.external_id is not null and t.deleted_at is null
      ) as known`);
  return known;
}

/** Returns whether sales are known by ids that begin so: those that the API recorded may be of payments that are told now. */
export async function haveSales(tx: Tx, program_id: string, prefixes: string[]): Promise<boolean> {
  const { known } = await tx.one<{ known: boolean }>(sql`
    select exists (
      select from unnest(${prefixes}::text[]) as g (prefix)
      cross join lateral (
        select from program.sale t
        where ${tenant(tx)} and t.program_id = ${program_id} and t.deleted_at is null
          and t.external_charge_id >= g.prefix and t.external_charge_id < g.prefix || chr(127)
        limit 1
      ) as t
    ) as known`);
  return known;
}

async function applyAlias(applying: Applying, { of, external_id }: Extract<Fact, { kind: 'alias' }>): Promise<Outcome> {
  const known = await findKnown(applying, of);
  if (!known) return waitingFor(of);
  const [sent, told] = [await saleBy(applying, [external_id]), await saleBy(applying, [of])];
  if (sent && told) return recordedTwice(told, sent);
  if (sent) {
    await know(applying, [external_id], { object_id: sent.id });
    if (known.object_id === null)
      await releaseOfSale(applying.tx, applying.program.id, { external_ids: [of], sale_id: sent.id });
    return done(sent.id);
  }
  await know(applying, [external_id], { object_id: known.object_id });
  return known.object_id === null
    ? unattributed(of, `${of} is no sale, because nobody is credited with it.`)
    : done(known.object_id);
}

/** A request recorded the payment by an id that the processor had not told yet. */
const recordedTwice = (told: SentSale, sent: SentSale): Outcome => ({
  status: 'failed',
  reason: 'recorded_twice',
  message: `${told.external_charge_id} was paid by ${sent.external_charge_id}: the sales ${told.id} and ${sent.id} are one payment. Delete one of them by DELETE /v1/sales/{id}, then retry this event.`,
});

/** Switches a coupon as of the event. Charges since then that were nobody's are worked on again; a recorded sale keeps its partner. */
async function applyCoupon(
  { tx, program }: Applying,
  { external_id, active, at }: Extract<Fact, { kind: 'coupon' }>,
): Promise<Outcome> {
  const coupon = await coupons.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program.id} and t.external_id = ${external_id}`,
    lockOf(true),
  );
  if (!coupon) return ignored('unknown_coupon', 'No coupon has this external_id.');
  const after = await switchCoupon(tx, coupon, { active, at });
  if (active) await releaseSince(tx, program.id, at);
  return after.active === active ? done(coupon.id) : older;
}
