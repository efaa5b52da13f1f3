import sql, { raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Customer } from '../customers/customer.ts';

/** The place of a sale among others: its time and, at the same millisecond, the id of its charge. When it was received does not matter. */
export interface Place {
  at: string;
  charge: string;
}

/** The place of a row of `program.sale`, to be compared and ordered by. @param sale the name of the row */
export const placeOfRow = (sale = raw('t')): Sql => sql`(${sale}.occurred_at, ${sale}.external_charge_id collate "C")`;

/** Selects the sales before a place. @param sale the name of their row */
export const isBefore = ({ at, charge }: Place | Located, sale?: Sql): Sql =>
  sql`${placeOfRow(sale)} < (${at}::timestamptz, ${charge})`;

/** Selects the sales `t` after a place. */
export const isAfter = ({ at, charge }: Place | Located): Sql => sql`${placeOfRow()} > (${at}::timestamptz, ${charge})`;

/** Compares places as Postgres does: ids by their bytes. */
export const comparePlaces = (a: Place, b: Place): number =>
  a.at === b.at ? Buffer.compare(Buffer.from(a.charge), Buffer.from(b.charge)) : a.at < b.at ? -1 : 1;

/** A place whose time is a column. */
interface Located {
  at: Sql;
  charge: string;
}

/**
 * Selects the commissions `c` that the place of another sale changes no more: they are paid, in a payout, approved, put on hold or edited by hand.
 * "What is paid stays": such a sale comes before every sale that is recorded after it.
 */
export const isSettled = sql`c.deleted_at is null and c.status not in ('voided', 'rejected')
  and (c.status = 'paid' or c.payout_id is not null or c.approved_at is not null or c.edited_by_hand or c.edited_total_minor is not null
    or c.status = 'on_hold' and c.hold_reason is distinct from 'dispute')`;

/** The place of a sale among those of its customer. */
export interface CustomerPlace extends Place {
  is_first_sale: boolean;
  /** The time of the customer's first payment; null when this sale is the first. */
  first_sale_at: string | null;
  /** True if sales of the customer come after it: it is late. */
  has_later: boolean;
  /** The sale that was the first until now. */
  displaced_id: string | null;
  /** True if it happened before the sale that recorded the customer. */
  is_before_customer: boolean;
  /** The partner whose the customer was before the coupon of the displaced sale; null where no coupon has changed it. */
  origin: { partner_id: string; tracked_by: Customer['tracked_by'] } | null;
}

/** The place of a sale of a customer who is not known. */
export const placeOfUnknown = ({ at, charge }: Place): CustomerPlace => ({
  ...{ at, charge },
  ...{ is_first_sale: true, first_sale_at: null, has_later: false, displaced_id: null, is_before_customer: false },
  origin: null,
});

/**
 * Finds the place of a new sale among those of its customer, by an index: however many sales there are, a few are read. A sale without a time
 * comes after all that are recorded: those of the same moment are a millisecond apart.
 */
export async function placeOf(
  tx: Tx,
  { id: customer_id, converted_at }: Customer,
  occurred_at: string | undefined,
  charge: string,
): Promise<CustomerPlace> {
  const ofCustomer = sql`${tenant(tx)} and t.customer_id = ${customer_id} and t.deleted_at is null`;
  const place = { at: sql`p.at`, charge };
  // A sale after the first one needs no look at that, nor at its customer.
  const mayBeFirst = sql`not coalesce(${converted_at}::timestamptz < p.at, false)`;
  const found = await tx.one<{
    at: string;
    first_at: string | null;
    has_earlier: boolean;
    has_later: boolean;
    first_id: string | null;
    is_settled: boolean;
    is_before_customer: boolean;
    origin_partner_id: string | null;
    origin_tracked_by: Customer['tracked_by'] | null;
  }>(sql`
    select
      p.at, c.origin_partner_id, c.origin_tracked_by, coalesce(p.at <= c.known_from, false) as is_before_customer,
      coalesce(f.occurred_at, ${converted_at}::timestamptz) as first_at,
      not ${mayBeFirst} or exists(select from program.sale t where ${ofCustomer} and ${isBefore(place)}) as has_earlier,
      coalesce(l.occurred_at >= p.at, false) and exists(select from program.sale t where ${ofCustomer} and ${isAfter(place)}) as has_later,
      f.id as first_id,
      f.id is not null
        and exists(select from program.commission c where c.organization_id = f.organization_id and c.sale_id = f.id and ${isSettled}) as is_settled
    from (values (1)) as one
    left join lateral (
      select t.occurred_at from program.sale t where ${ofCustomer} order by t.occurred_at desc limit 1
    ) l on true
    cross join lateral (
      select ${
        occurred_at === undefined
          ? sql`greatest(${tx.now}::timestamptz, case
              when l.occurred_at <= clock_timestamp() then l.occurred_at + interval '1 ms'
              when l.occurred_at is not null then (
                select t.occurred_at + interval '1 ms' from program.sale t
                where ${ofCustomer} and t.occurred_at <= clock_timestamp()
                order by t.occurred_at desc limit 1
              )
            end)`
          : sql`${occurred_at}::timestamptz`
      } as at
    ) p
    left join lateral (
      select t.id, t.organization_id, t.occurred_at from program.sale t where ${ofCustomer} and t.is_first_sale and ${mayBeFirst}
    ) f on true
    left join lateral (
      select t.known_from, t.origin_partner_id, t.origin_tracked_by from program.customer t
      where ${tenant(tx)} and t.id = ${customer_id} and ${mayBeFirst}
    ) c on true`);
  const { at, has_later, is_settled, first_at, first_id } = found;
  // Where the first sale is settled, the late one is a further one.
  const is_first_sale = !found.has_earlier && !is_settled;
  const displaced_id = is_first_sale ? first_id : null;
  return {
    ...{ at, charge, is_first_sale, has_later, displaced_id },
    first_sale_at: is_first_sale ? null : first_at,
    is_before_customer: found.is_before_customer && !found.has_earlier,
    origin:
      displaced_id !== null && found.origin_partner_id !== null && found.origin_tracked_by !== null
        ? { partner_id: found.origin_partner_id, tracked_by: found.origin_tracked_by }
        : null,
  };
}

/**
 * Locks the commissions of a customer's sales after a place, so that no payout takes them up while it is decided what a late sale changes in them:
 * what is settled is known from here on.
 */
export const lockLater = (tx: Tx, customer_id: string, place: Place) =>
  tx.all(sql`
    select from program.commission c
    where c.organization_id = ${tx.organization_id} and c.deleted_at is null and c.sale_id in (
      select t.id from program.sale t where ${tenant(tx)} and t.customer_id = ${customer_id} and t.deleted_at is null and ${isAfter(place)}
    )
    order by c.id
    for no key update of c`);
