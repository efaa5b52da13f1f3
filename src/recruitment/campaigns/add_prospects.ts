/**
 * Adds prospects to a campaign. Refused one by one, with a code: prospects of another brand, in the campaign already, marked, unsubscribed, hidden, `lost`,
 * and in the stages in which sequences are stopped. Each that is added gets a sequence without an address, an inbox and a time: `schedule_sequences.ts`
 * chooses them, at once where the campaign is sending.
 */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import type { Actor } from '../brands/acting.ts';
import { recordActivity } from '../prospects/activity.ts';
import type { Campaign } from './campaign.ts';

/** The reasons why a prospect is not added to a campaign, and what can be done. */
export const refusals = {
  resource_not_found: 'The prospect does not exist in the brand of the campaign.',
  already_in_campaign: 'The prospect is in the campaign already.',
  do_not_contact: 'The prospect is marked Do not contact. Lift the mark first, if you may.',
  unsubscribed: 'The prospect has unsubscribed and must not be sent outreach again.',
  hidden: 'The prospect is hidden. Unhide it first.',
  lost: 'The prospect is in the stage lost: a refusal is an objection. Move it to another stage if that was a mistake.',
  in_pipeline: 'The prospect is in the stage negotiating, agreed or active, in which no outreach is sent.',
} as const;
export type RefusalReason = keyof typeof refusals;

/**
 * Adds prospects to a campaign, each with a sequence that is not scheduled yet. The caller holds suppressions and the campaign's row. Locks
 * the prospects, so that nobody hides or marks one meanwhile.
 * @returns the reason for each id that was not added
 */
export async function addProspects(
  tx: Tx,
  { id: campaign_id, brand_id }: Campaign,
  prospect_ids: string[],
  by: Actor,
): Promise<Map<string, RefusalReason>> {
  const reasons = await reasonsOf(tx, { campaign_id, brand_id, prospect_ids });
  const refused = new Map<string, RefusalReason>();
  const added = prospect_ids.filter((prospect_id) => {
    const reason = reasons.has(prospect_id) ? reasons.get(prospect_id) : 'resource_not_found';
    if (reason) refused.set(prospect_id, reason);
    return !reason;
  });
  if (added.length === 0) return refused;
  const inserted = await tx.all<{ id: string; prospect_id: string }>(sql`
    insert into recruitment.sequence as t (organization_id, id, campaign_id, brand_id, prospect_id, created_at, updated_at)
    select ${tx.organization_id}, given.id, ${campaign_id}, ${brand_id}, given.prospect_id, ${tx.now}::timestamptz, ${tx.now}::timestamptz
    from unnest(${added.map(() => newId('fsq'))}::text[], ${added}::text[]) as given (id, prospect_id)
    on conflict (organization_id, campaign_id, prospect_id) do nothing
    returning t.id, t.prospect_id`);
  const new_ids = new Set(inserted.map(({ prospect_id }) => prospect_id));
  for (const prospect_id of added) if (!new_ids.has(prospect_id)) refused.set(prospect_id, 'already_in_campaign');
  recordActivity(
    tx,
    'campaign_added',
    by,
    inserted.map(({ id: sequence_id, prospect_id }) => ({ prospect_id, data: { campaign_id, sequence_id } })),
  );
  return refused;
}

interface Asked {
  campaign_id: string;
  brand_id: string;
  prospect_ids: string[];
}

/** The reason why each prospect of the brand cannot be added; null: it can. */
async function reasonsOf(tx: Tx, asked: Asked): Promise<Map<string, RefusalReason | null>> {
  const { campaign_id, brand_id, prospect_ids } = asked;
  const rows = await tx.all<{ id: string; reason: RefusalReason | null }>(sql`
    select t.id, case
      when exists (
        select from recruitment.sequence s
        where s.organization_id = t.organization_id and s.campaign_id = ${campaign_id} and s.prospect_id = t.id
      ) then 'already_in_campaign'
      when t.do_not_contact_reason is not null then 'do_not_contact'
      when t.unsubscribed_at is not null then 'unsubscribed'
      when t.stage = 'lost' then 'lost'
      when t.stage in ('negotiating', 'agreed', 'active') then 'in_pipeline'
      when t.hidden then 'hidden'
    end as reason
    from recruitment.prospect t
    where ${tenant(tx)} and t.brand_id = ${brand_id} and t.id = any(${prospect_ids})
    order by t.id
    for share of t`);
  return new Map(rows.map(({ id, reason }) => [id, reason]));
}
