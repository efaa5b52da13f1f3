/** What is wrong with the prospects that wait for the first email of a campaign, in sets. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { SendFailure } from '../sequences/sequence.ts';
import { bestOf, why_not } from './best_address.ts';
import type { Campaign } from './campaign.ts';
import { type Warning, warns } from './finding.ts';

/**
 * Countries whose law asks for consent before businesses are advertised to by email, as far as we know: it is a hint, and no legal advice.
 * Austria (TKG 174), Canada (CASL), Switzerland (UWG 3), Germany (UWG 7), Denmark, Spain (LSSI 21), Greece, Italy, Lithuania, Norway, Poland.
 */
export const consent_countries = ['AT', 'CA', 'CH', 'DE', 'DK', 'ES', 'GR', 'IT', 'LT', 'NO', 'PL'];

export interface Judged {
  /** Prospects that wait for the first email. */
  waiting: number;
  /** Those of them that can be written to. */
  reachable: number;
  warnings: Warning[];
}

type Problem = SendFailure | 'consent_required' | null;

/** Judges every prospect that waits, as scheduling will. */
export async function judgeProspects(tx: Tx, { id, allow_risky }: Campaign): Promise<Judged> {
  const rows = await tx.all<{ problem: Problem; count: number; ids: string[]; countries: string[] | null }>(sql`
    with waiting as materialized (
      select s.id, s.prospect_id, p.country_code, best.address_hmac, ${why_not} as reason
      from recruitment.sequence s
      join recruitment.prospect p on p.organization_id = s.organization_id and p.id = s.prospect_id
      ${bestOf(allow_risky)}
      where s.organization_id = ${tx.organization_id} and s.campaign_id = ${id} and s.open and s.state = 'waiting'
    ), judged as materialized (
      select w.prospect_id, w.country_code, coalesce(w.reason, case
        when row_number() over (partition by w.reason, w.address_hmac order by w.id) > 1 then 'in_another_campaign'
        when exists (
          select from recruitment.sequence o
          where o.organization_id = ${tx.organization_id} and o.address_hmac = w.address_hmac and o.open and o.campaign_id <> ${id}
        ) then 'in_another_campaign'
      end) as problem
      from waiting w
    )
    select j.problem, count(*)::integer as count, (array_agg(j.prospect_id order by j.prospect_id))[1:10] as ids, null::text[] as countries
    from judged j group by j.problem
    union all
    select 'consent_required', count(*)::integer, (array_agg(j.prospect_id order by j.prospect_id))[1:10],
      array_agg(distinct j.country_code order by j.country_code)
    from judged j where j.problem is null and j.country_code = any(${consent_countries}) having count(*) > 0`);
  const judged = rows.filter(({ problem }) => problem !== 'consent_required');
  return {
    waiting: judged.reduce((sum, { count }) => sum + count, 0),
    reachable: judged.find(({ problem }) => problem === null)?.count ?? 0,
    warnings: rows.flatMap(({ problem, count, ids, countries }) =>
      problem === null || problem === 'inbox_removed' ? [] : warningOf(problem, count, ids, countries),
    ),
  };
}

function warningOf(
  code: Exclude<NonNullable<Problem>, 'inbox_removed'>,
  prospects: number,
  prospect_ids: string[],
  countries: string[] | null,
): Warning {
  const found = warns(code, { prospects, prospect_ids });
  return countries ? { ...found, message: `${found.message} (${countries.join(', ')})` } : found;
}
