/**
 * Adds prospects to a campaign: those of a request, and a list by a job.
 *
 * - Refused one by one, with a code: prospects of another brand, in the campaign already, marked, unsubscribed, hidden, `lost`,
 *   and in the stages in which sequences are stopped. Each that is added gets a sequence without an address, an inbox and a time: `schedule_sequences.ts`
 *   chooses them, at once where the campaign is sending.
 * - A list is added as it is when the job comes to each of its parts. The job ends with an error if the campaign is stopped or finished meanwhile. A campaign
 *   does not finish while a list is being added.
 */
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { allows } from '../../core/resource/states.ts';
import { documentedEnum, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import type { Actor } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { recordActivity } from '../prospects/activity.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { type Campaign, campaigns, transitions } from './campaign.ts';
import { requestSchedule } from './reschedule.ts';

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
type RefusalReason = keyof typeof refusals;

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

const states = {
  queued: 'no worker has begun',
  running: 'prospects are being added',
  done: 'every prospect was added or refused',
  failed: 'the rest of the list could not be added (`error`)',
} as const;

export const campaignAdditions = resource({
  object: 'campaign_addition',
  plural: 'campaign_additions',
  scoped_as: 'campaigns',
  listed_as: 'campaign additions',
  base_path,
  table: 'recruitment.campaign_addition',
  doc: 'A list of prospects that is added to a campaign.',
  fields: {
    id: id('fad'),
    object: objectName('campaign_addition'),
    campaign_id: id('fca').describe('The campaign.'),
    list_id: id('fls').describe('The list.'),
    state: documentedEnum(states),
    total: z.int().describe('How many prospects the list had when the addition was requested.'),
    added: z.int().describe('How many prospects were added so far.'),
    refused: z
      .record(z.string(), z.int())
      .describe(
        'How many prospects were refused so far, by the code of the refusal: see `POST /recruitment/v1/campaigns/{id}/prospects`.',
      ),
    error: text.nullable().describe('Why it failed, as a sentence. Null if it has not failed.'),
    finished_at: timestamp.nullable().describe('When it ended. Null if it has not ended.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});
type CampaignAddition = z.infer<typeof campaignAdditions.record>;

/** The prospects of one part. Its transaction is short: whoever marks Do not contact waits for it. */
const most_prospects = 2000;

/** Enqueues the job that adds the prospects of a list. */
export async function addList(tx: Tx, campaign_id: string, list_id: string, by: Actor): Promise<CampaignAddition> {
  const { total } = await tx.one<{ total: number }>(sql`
    select count(*)::integer as total from recruitment.list_prospect t where ${tenant(tx)} and t.list_id = ${list_id}`);
  const values = { id: newId('fad'), campaign_id, list_id, total, by_user_id: by.user_id, by_member_id: by.member_id };
  const addition = (await campaignAdditions.insert(tx, values)) as CampaignAddition;
  tx.enqueue('recruitment/add_list_to_campaign', { organization_id: tx.organization_id, id: addition.id });
  return addition;
}

interface AdditionId {
  organization_id: string;
  id: string;
}

/** Runs the job. After a worker was killed or stopped, the next one continues after the last part that was committed. */
export async function runAddition(payload: AdditionId, { store, stopping }: Pick<TaskContext, 'store' | 'stopping'>) {
  const opening = { organization_id: payload.organization_id, request_id: null };
  for (;;) {
    if (!(await transaction(store, opening, (tx) => addPart(tx, payload.id)))) return;
    if (!stopping.aborted) continue;
    await transaction(store, opening, async (tx) => tx.enqueue('recruitment/add_list_to_campaign', payload));
    return;
  }
}

interface Running {
  campaign_id: string;
  list_id: string;
  last_prospect_id: string;
  by_user_id: string | null;
  by_member_id: string | null;
}

/** @returns whether there is more to add */
async function addPart(tx: Tx, addition_id: string): Promise<boolean> {
  const is_open = sql`${tenant(tx)} and t.id = ${addition_id} and t.finished_at is null`;
  const columns = sql`t.campaign_id, t.list_id, t.last_prospect_id, t.by_user_id, t.by_member_id`;
  const known = await tx.maybe<Running>(sql`select ${columns} from recruitment.campaign_addition t where ${is_open}`);
  if (!known) return false;
  await holdSuppressions(tx);
  const campaign = (await campaigns.get(tx, known.campaign_id, { lock: 'share' })) as Campaign;
  const running = await tx.maybe<Running>(
    sql`select ${columns} from recruitment.campaign_addition t where ${is_open} for no key update of t`,
  );
  if (!running) return false;
  if (!allows(transitions, campaign.state, 'add')) {
    await end(tx, addition_id, `The campaign is ${campaign.state}.`);
    return false;
  }
  const ids = await nextOf(tx, running);
  const refused = await addProspects(tx, campaign, ids, {
    user_id: running.by_user_id,
    member_id: running.by_member_id,
  });
  await count(tx, addition_id, ids, refused);
  if (campaign.state === 'sending') requestSchedule(tx, campaign.id);
  if (ids.length < most_prospects) await end(tx, addition_id, null);
  return ids.length === most_prospects;
}

async function nextOf(tx: Tx, { list_id, last_prospect_id }: Running): Promise<string[]> {
  const next = await tx.all<{ prospect_id: string }>(sql`
    select t.prospect_id from recruitment.list_prospect t
    where ${tenant(tx)} and t.list_id = ${list_id} and t.prospect_id > ${last_prospect_id}
    order by t.prospect_id
    limit ${most_prospects}`);
  return next.map(({ prospect_id }) => prospect_id);
}

async function count(tx: Tx, addition_id: string, ids: string[], refused: Map<string, RefusalReason>): Promise<void> {
  const reasons = Map.groupBy(refused.values(), (reason) => reason);
  const counts = Object.fromEntries([...reasons].map(([reason, each]) => [reason, each.length]));
  await tx.all(sql`
    update recruitment.campaign_addition t
    set state = 'running', added = t.added + ${ids.length - refused.size},
      refused = t.refused || coalesce((
        select jsonb_object_agg(given.key, given.value::integer + coalesce((t.refused ->> given.key)::integer, 0))
        from jsonb_each_text(${JSON.stringify(counts)}::jsonb) as given), '{}'),
      last_prospect_id = coalesce(${ids.at(-1) ?? null}, t.last_prospect_id), updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${addition_id}`);
}

const end = (tx: Tx, addition_id: string, error: string | null): Promise<object> =>
  campaignAdditions.update(tx, addition_id, {
    ...{ state: error === null ? 'done' : 'failed', error, finished_at: tx.now },
  });
