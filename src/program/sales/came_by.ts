import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Customer } from '../customers/customer.ts';
import type { Link } from '../partners/link.ts';
import type { Referral } from '../tracking/referral.ts';

/** The link and the visit that a customer came by. */
export type Visited = Pick<Customer, 'link_id' | 'referral_id'>;

export interface CameBy extends Visited {
  /** The rate that the link sets. Null: the rules decide. */
  rate_override: Link['rate_override'];
}

export const nothing_visited = { link_id: null, referral_id: null };

/** Returns the link and the referral of a customer. One without a visit has no link either: the partner of a coupon may be another one. */
export const visitedBy = (customer: Visited | undefined): Visited =>
  customer?.referral_id ? { link_id: customer.link_id, referral_id: customer.referral_id } : nothing_visited;

/** What a referral leads somebody by. */
export const visitTo = (referral: Pick<Referral, 'id' | 'link_id'> | undefined): Visited =>
  referral ? { link_id: referral.link_id, referral_id: referral.id } : nothing_visited;

/** The links and the visits, in their order, as far as they are their partners': a link pays by its own rate to its own partner alone. */
export async function cameBy(tx: Tx, many: { came_by: Visited; partner_id: string }[]): Promise<CameBy[]> {
  const visits = many.map(({ came_by: { link_id, referral_id }, partner_id }) => ({
    link_id,
    referral_id,
    partner_id,
  }));
  if (visits.every(({ link_id, referral_id }) => link_id === null && referral_id === null))
    return visits.map(() => ({ ...nothing_visited, rate_override: null }));
  return tx.all<CameBy>(sql`
    select l.id as link_id, r.id as referral_id, l.rate_override
    from rows from (
      json_to_recordset(${JSON.stringify(visits)}::json) as (link_id text, referral_id text, partner_id text)
    ) with ordinality as v (link_id, referral_id, partner_id, nth)
    left join lateral (
      select t.id, t.rate_override from program.link t where ${tenant(tx)} and t.id = v.link_id and t.partner_id = v.partner_id
    ) l on true
    left join lateral (
      select t.id from program.referral t where ${tenant(tx)} and t.id = v.referral_id and t.partner_id = v.partner_id
    ) r on true
    order by v.nth`);
}
