/** A campaign: the record, and what can be done with it in each state. */
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Row, resource, tenant } from '../../core/resource/resource.ts';
import { type States, statusSchema } from '../../core/resource/states.ts';
import { documentedEnum, enumOf, id, meaningsOf, objectName, text, timestamp } from '../../core/values/fields.ts';
import { base_path } from '../events/base_path.ts';
import { Step } from './step.ts';
import type { Schedule } from './window.ts';

const ended = 'Create another campaign.';

/** The states of a campaign, with what can be done in each. The service pauses and resumes campaigns too: see `pause.ts`. */
const campaign_states = {
  draft: {
    doc: 'nothing is sent, and everything can be changed',
    on: { edit: 'draft', add: 'draft', launch: 'sending', schedule: 'scheduled', stop: 'stopped' },
    refusal: 'The campaign is a draft. Launch it first.',
  },
  scheduled: {
    doc: 'it starts at `start_at`',
    on: { add: 'scheduled', launch: 'sending', schedule: 'scheduled', unschedule: 'draft', stop: 'stopped' },
    refusal:
      'The campaign is scheduled. Wait until it starts, launch it without `start_at` to start it now, or stop it.',
  },
  sending: {
    doc: 'emails are sent when they are due',
    on: { add: 'sending', pause: 'paused', stop: 'stopped', finish: 'finished' },
    refusal: 'The campaign is sending. Pause it first.',
  },
  paused: {
    doc: 'nothing is sent: `pause_causes` says why',
    on: { edit: 'paused', add: 'paused', pause: 'paused', resume: 'sending', stop: 'stopped' },
    refusal: 'The campaign is paused. Resume it, or stop it.',
  },
  stopped: { doc: 'it was stopped for good', on: { stop: 'stopped' }, refusal: `The campaign was stopped. ${ended}` },
  finished: {
    doc: 'every prospect finished their sequence',
    on: {},
    refusal: `The campaign has finished. ${ended}`,
  },
} as const satisfies States<string, string>;

export type CampaignState = keyof typeof campaign_states;
type CampaignAction = 'edit' | 'add' | 'launch' | 'schedule' | 'unschedule' | 'pause' | 'resume' | 'stop' | 'finish';

/** The same table, in the type that `transition` takes. */
export const transitions: States<CampaignState, CampaignAction> = campaign_states;
const campaign_state = statusSchema(transitions);

export const pause_causes = {
  user: 'it was paused by request',
  guard: 'emails bounced or were reported as spam',
  plan: 'the plan does not include outreach',
  inbox: 'none of its inboxes is connected',
} as const;
export type PauseCause = keyof typeof pause_causes;

const pause_reasons = {
  bounce_rate: 'more emails bounced than `bounce_pause_bps` allows',
  spam_complaint: 'an email was reported as spam',
  not_entitled: 'the plan does not include outreach',
  no_inbox: 'none of its inboxes is connected',
} as const;
export type PauseReason = keyof typeof pause_reasons;

const count = (meaning: string) => z.int().describe(meaning);

export const campaigns = resource({
  object: 'campaign',
  plural: 'campaigns',
  listed_as: 'the campaigns of a brand',
  base_path,
  table: 'recruitment.campaign',
  hard_delete: 'brand_id',
  doc: 'A campaign: a sequence of emails to prospects of a brand, the inboxes that it sends from, and when it sends.',
  fields: {
    id: id('fca'),
    object: objectName('campaign'),
    brand_id: id('fbr').describe('The brand whose prospects it writes to.'),
    name: text.describe('The name of the campaign. Prospects never see it.'),
    inbox_ids: z.array(id('fin')).describe('The inboxes that it sends from.'),
    steps: z.array(Step).describe('The emails, in their order.'),
    schedule: z
      .object({
        timezone: text.describe('An IANA time zone, or `recipient`: that of each prospect.'),
        days: z.array(z.int()).describe('The days on which emails are sent, from 1 (Monday) to 7 (Sunday).'),
        from: text.describe('The local time from which emails are sent: `HH:MM`.'),
        to: text.describe('The local time until which emails are sent, exclusive: `HH:MM`.'),
      })
      .describe('When emails are sent.'),
    daily_new_limit: z
      .int()
      .nullable()
      .describe(
        'The most first emails in a day, in the time zone of the schedule (with `recipient`: of the brand). Null: no limit.',
      ),
    max_per_domain_day: z
      .int()
      .describe('The most emails of the campaign to one company (domain) in a day, in the same time zone.'),
    bounce_pause_bps: z
      .int()
      .describe('The rate of bounces, in basis points, above which the service pauses the campaign.'),
    reply_wait_days: z.int().describe('How many days a sequence waits for a reply after its last email.'),
    allow_risky: z
      .boolean()
      .describe('Whether it writes to disposable addresses, and to addresses at domains that accept every address.'),
    stop_for_company: z.boolean().describe('Whether a reply stops the sequences to others of the same company.'),
    state: campaign_state,
    pause_causes: z.array(documentedEnum(pause_causes)).describe('Why it is paused. It sends again once none is left.'),
    pause_reason: enumOf(pause_reasons)
      .nullable()
      .describe(`${meaningsOf(pause_reasons)} Null if it is not paused, or was paused by request alone.`),
    start_at: timestamp.nullable().describe('When it is to start. Null if it was not scheduled.'),
    launch_error: text
      .nullable()
      .describe('Why it did not start at `start_at` and is a draft again. Null if that did not happen.'),
    launched_at: timestamp.nullable().describe('When it started. Null if it has not started.'),
    paused_at: timestamp.nullable().describe('When it was paused. Null if it is not paused.'),
    stopped_at: timestamp.nullable().describe('When it was stopped. Null if it was not stopped.'),
    finished_at: timestamp.nullable().describe('When it finished. Null if it has not finished.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: {
    fields: {
      prospects: count('Prospects that were added.'),
      waiting: count('Sequences whose first email was not sent yet.'),
      active: count('Sequences that have not ended, of which at least one email was sent.'),
      completed: count('Sequences that ended without a reply.'),
      replied: count('Sequences that a reply ended.'),
      bounced: count('Sequences that a bounce ended.'),
      unsubscribed: count('Sequences that an unsubscribe ended.'),
      stopped: count('Sequences that were stopped.'),
      failed: count('Sequences that could not be sent.'),
    },
    load: countSequences,
  },
});

async function countSequences(tx: Tx, rows: Row[]): Promise<Map<string, object>> {
  const counts = await tx.all<{ id: string; counted: object }>(sql`
    select given.id, json_build_object(
      'prospects', count(t.id),
      'waiting', count(*) filter (where t.state = 'waiting'),
      'active', count(*) filter (where t.state = 'active'),
      'completed', count(*) filter (where t.state = 'completed'),
      'replied', count(*) filter (where t.state = 'replied'),
      'bounced', count(*) filter (where t.state = 'bounced'),
      'unsubscribed', count(*) filter (where t.state = 'unsubscribed'),
      'stopped', count(*) filter (where t.state = 'stopped'),
      'failed', count(*) filter (where t.state = 'failed')
    ) as counted
    from unnest(${rows.map((row) => row.id)}::text[]) as given (id)
    left join recruitment.sequence t on ${tenant(tx)} and t.campaign_id = given.id
    group by given.id`);
  return new Map(counts.map(({ id: campaign_id, counted }) => [campaign_id, counted]));
}

export type Campaign = Omit<z.infer<typeof campaigns.record>, 'schedule'> & { schedule: Schedule };
/** A campaign, which nobody else changes until the transaction ends. It is locked before prospects, sequences and inboxes. */
export const lockCampaign = async (tx: Tx, campaign_id: string): Promise<Campaign> =>
  (await campaigns.get(tx, campaign_id, { lock: true })) as Campaign;
