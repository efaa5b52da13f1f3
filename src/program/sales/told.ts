/** Refunds and disputes that both a request and a billing processor tell of, the request without the processor's id. */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { alreadyExists } from '../../core/values/problem.ts';
import { type Dispute, disputes } from './dispute.ts';
import { type NewRefund, type Refund, refunds } from './refund.ts';
import type { Sale } from './sale.ts';

/** The time within which two of the same sale and amount are one. */
const days = 7;

interface Alike {
  amount_minor: number;
  at: string;
}

/** Selects rows `t` of a sale that may be the same: `time` is theirs. */
const isAlike = (tx: Tx, sale: Pick<Sale, 'id'>, { amount_minor, at }: Alike, time: Sql): Sql => sql`
  ${tenant(tx)} and t.sale_id = ${sale.id} and t.amount_minor = ${amount_minor}
    and abs(extract(epoch from ${time} - ${at}::timestamptz)) <= ${days * 86_400}`;

const refunded_at = sql`coalesce(t.refunded_at, t.created_at)`;
const isTold = sql`exists (select from program.processor_object o where o.organization_id = t.organization_id and o.object_id = t.id)`;
/** The refund of a dispute is told with that. */
const isToldRefund = sql`(
  ${isTold}
  or exists (
    select from program.dispute d join program.processor_object o on o.organization_id = d.organization_id and o.object_id = d.id
    where d.organization_id = t.organization_id and d.refund_id = t.id
  )
)`;

/**
 * Gives the processor's id to a refund that stands and that a request recorded without one.
 * @param sale locked
 */
export async function nameRefund(
  tx: Tx,
  sale: Sale,
  alike: Alike,
  external_refund_id: string,
): Promise<Refund | undefined> {
  const nameless = await refunds.find(
    tx,
    sql`${isAlike(tx, sale, alike, refunded_at)} and t.external_refund_id is null and t.reversed_at is null
      and not exists (select from program.dispute d where d.organization_id = t.organization_id and d.refund_id = t.id)`,
  );
  return nameless && refunds.update(tx, nameless.id, { external_refund_id });
}

/** The same for a dispute. */
export async function nameDispute(
  tx: Tx,
  sale: Sale,
  alike: Alike,
  external_dispute_id: string,
): Promise<Dispute | undefined> {
  const nameless = await disputes.find(
    tx,
    sql`${isAlike(tx, sale, alike, sql`t.opened_at`)} and t.external_dispute_id is null`,
  );
  return nameless && disputes.update(tx, nameless.id, { external_dispute_id });
}

/**
 * @param sale locked
 * @throws Problem resource_already_exists where the processor told the refund before
 */
export async function refuseToldRefund(tx: Tx, sale: Sale, { amount_minor, refunded_at: at = tx.now }: NewRefund) {
  // Whoever names no amount asks for what is left.
  if (amount_minor === undefined) return;
  const where = sql`${isAlike(tx, sale, { amount_minor, at }, refunded_at)} and t.reversed_at is null and ${isToldRefund}`;
  const told = await refunds.find(tx, where);
  if (told) throw alreadyTold('refund', told.external_refund_id, told);
}

/** The same for a dispute that is not won. */
export async function refuseToldDispute(tx: Tx, sale: Sale, alike: Alike): Promise<void> {
  const where = sql`${isAlike(tx, sale, alike, sql`t.opened_at`)} and t.status <> 'won' and ${isTold}`;
  const told = await disputes.find(tx, where);
  if (told) throw alreadyTold('dispute', told.external_dispute_id, told);
}

const alreadyTold = (noun: 'refund' | 'dispute', external_id: string | null, told: Refund | Dispute) =>
  alreadyExists(
    `external_${noun}_id`,
    `The billing processor told a ${noun} of this sale, of the same amount and within ${days} days: '${external_id}'. It is recorded once. If yours is another one, send it with an 'external_${noun}_id'.`,
    told,
  );
