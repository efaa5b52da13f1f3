import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Customer } from '../customers/customer.ts';
import type { Link } from '../partners/link.ts';

/** The link and the visit that a customer came by. */
export type Visited = Pick<Customer, 'link_id' | 'referral_id'>;

export interface CameBy extends Visited {
  /** What the link pays by. Null: by the rules. */
  rate_override: Link['rate_override'];
}

export const nothing_visited = { link_id: null, referral_id: null };

/** What a customer came by. One without a visit has no link either: the partner of a coupon may be another one. */
export const visitedBy = (customer: Visited | undefined): Visited =>
  customer?.referral_id ? { link_id: customer.link_id, referral_id: customer.referral_id } : nothing_visited;

/** The link and the visit as far as they are this partner's: a link pays by its own rate to its own partner alone. */
export async function cameBy(tx: Tx, { link_id, referral_id }: Visited, partner_id: string): Promise<CameBy> {
  if (link_id === null && referral_id === null) return { ...nothing_visited, rate_override: null };
  return tx.one<CameBy>(sql`
    select l.id as link_id, r.id as referral_id, l.rate_override
    from (select) as one
    left join lateral (
      select t.id, t.rate_override from program.link t where ${tenant(tx)} and t.id = ${link_id} and t.partner_id = ${partner_id}
    ) l on true
    left join lateral (
      select t.id from program.referral t where ${tenant(tx)} and t.id = ${referral_id} and t.partner_id = ${partner_id}
    ) r on true`);
}

/** The same of many. @returns what one of them came by */
export async function cameByOfMany(
  tx: Tx,
  many: { customer: Customer; partner_id: string }[],
): Promise<(one: { customer: { id: string }; partner_id: string }) => CameBy> {
  const visits = many.map(({ customer, partner_id }) => ({
    customer_id: customer.id,
    partner_id,
    ...visitedBy(customer),
  }));
  const rows = await tx.all<CameBy & { customer_id: string; partner_id: string }>(sql`
    select v.customer_id, v.partner_id, l.id as link_id, r.id as referral_id, l.rate_override
    from json_to_recordset(${JSON.stringify(visits)}::json) as v (customer_id text, partner_id text, link_id text, referral_id text)
    left join program.link l on l.organization_id = ${tx.organization_id} and l.id = v.link_id and l.partner_id = v.partner_id
    left join program.referral r on r.organization_id = ${tx.organization_id} and r.id = v.referral_id and r.partner_id = v.partner_id`);
  const known = new Map(
    rows.map(({ customer_id, partner_id, ...came_by }) => [`${customer_id} ${partner_id}`, came_by]),
  );
  return ({ customer, partner_id }) =>
    known.get(`${customer.id} ${partner_id}`) ?? { ...nothing_visited, rate_override: null };
}
