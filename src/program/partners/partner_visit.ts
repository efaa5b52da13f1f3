import sql from 'sql-template-tag';
import { declareUnique } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Visit } from './self_referral.ts';

declareUnique('partner_visit', { partner_visit_once: null });

/** After this time an IP address may belong to someone else. */
const visit_lifetime = '90 days';

/**
 * Records a visit as the partner's own: one from which a sign-up was made, or attempted, with the partner's email address. A visit
 * whose IP address or user agent is unknown identifies no browser and is not recorded.
 */
export async function recordPartnerVisit(tx: Tx, partner_id: string, { ip_hash, user_agent }: Visit): Promise<void> {
  if (ip_hash === null || user_agent === null) return;
  await tx.all(sql`
    insert into program.partner_visit as t (organization_id, partner_id, ip_hash, user_agent, seen_at)
    values (${tx.organization_id}, ${partner_id}, ${ip_hash}, ${user_agent}, ${tx.now}::timestamptz)
    on conflict (organization_id, partner_id, ip_hash, md5(user_agent)) do update set seen_at = excluded.seen_at`);
}

/** The partners' own visits from one of these IP addresses. */
export const partnerVisits = (
  tx: Tx,
  partner_ids: string[],
  visits: readonly Visit[],
): Promise<(Visit & { partner_id: string })[]> =>
  tx.all(sql`
    select t.partner_id, t.ip_hash, t.user_agent
    from program.partner_visit t
    where ${tenant(tx)} and t.partner_id = any(${partner_ids}) and t.ip_hash = any(${visits.map(({ ip_hash }) => ip_hash)})
      and t.seen_at > ${tx.now}::timestamptz - ${visit_lifetime}::interval`);
