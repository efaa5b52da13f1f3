/** What keeps a campaign from being launched, and what its author should know before. */
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { objectName } from '../../core/values/fields.ts';
import { included } from '../plan/limits.ts';
import { planName } from '../plan/plan.ts';
import type { Campaign } from './campaign.ts';
import { type Capable, daysFor } from './capacity.ts';
import { Blocking, blocks, Warning, warns } from './finding.ts';
import { judgeProspects } from './prospect_checks.ts';
import { sendingOf } from './template_values.ts';

const many_days = 30;

export const Preflight = z
  .object({
    object: objectName('campaign_preflight'),
    ok: z.boolean().describe('Whether the campaign can be launched: nothing blocks it.'),
    blocking: z.array(Blocking).describe('What keeps it from being launched.'),
    warnings: z.array(Warning).describe('What to know before. Prospects that fail do not hold up the others.'),
    prospects: z.int().describe('Prospects that wait for the first email.'),
    reachable: z.int().describe('Those of them that can be written to.'),
    rendered: z.int().describe('Those that wait for whom the templates were rendered.'),
    partial: z
      .boolean()
      .describe(
        'Whether the templates could not be rendered for all that wait in the time that there is: `rendered` says for how many. All other checks look at every prospect.',
      ),
    emails: z.int().describe('Emails to those who can be written to, if nobody replies.'),
    days: z
      .int()
      .nullable()
      .describe('About how many days the first emails take. Null: more than ten years, or nothing can be sent.'),
  })
  .meta({ description: 'What keeps a campaign from being launched, and what to know before.' });
export type Preflight = z.infer<typeof Preflight>;

type Setting = Pick<Services, 'base_url' | 'is_demo'>;

interface Inbox extends Capable {
  from_name: string;
  email: string;
  reply_to: string | null;
  status: string;
}

/** Judges a campaign with every prospect that waits. Takes some seconds for 100,000. */
export async function preflight(tx: Tx, campaign: Campaign, setting: Setting): Promise<Preflight> {
  const brand = await sendingOf(tx, campaign.brand_id);
  const all = await inboxesOf(tx, campaign.inbox_ids);
  const plan = included[await planName(tx)];
  const judged = await judgeProspects(tx, campaign);
  const sender = all[0] ?? { from_name: 'Name', email: 'name@example.com' };
  const { checkRendering } = await import('./template_checks.ts');
  const texts = await checkRendering(tx, campaign, brand, sender);
  const connected = all.filter(({ status }) => status === 'connected');
  const blocking = [
    ...(campaign.steps.length === 0 ? [blocks('no_steps', 'steps')] : []),
    ...(connected.length === 0 ? [blocks('no_inbox', 'inbox_ids')] : []),
    ...(judged.waiting === 0 ? [blocks('no_prospects')] : []),
    ...(judged.waiting > 0 && judged.reachable === 0 ? [blocks('nobody_to_write_to')] : []),
    ...(plan.features.outreach ? [] : [blocks('not_entitled')]),
    ...(brand.postal_address === null ? [blocks('no_postal_address')] : []),
    ...(brand.privacy_url === null ? [blocks('no_privacy_url')] : []),
    ...(isSafe(setting) ? [] : [blocks('base_url_not_https')]),
  ];
  const left = judged.waiting - texts.rendered;
  const days = connected.length === 0 ? null : daysOf(campaign, judged.reachable, connected, plan.limits.daily_sends);
  return {
    ...{ object: 'campaign_preflight', ok: blocking.length === 0, blocking },
    warnings: [
      ...judged.warnings,
      ...texts.warnings,
      ...(left > 0 ? [warns('not_all_rendered', { prospects: left })] : []),
      ...inboxWarnings(all),
      ...(connected.length > 0 && isLong(days) ? [warns('takes_long')] : []),
    ],
    ...{ prospects: judged.waiting, reachable: judged.reachable, rendered: texts.rendered },
    partial: left > 0,
    ...{ emails: judged.reachable * campaign.steps.length, days },
  };
}

const inboxesOf = (tx: Tx, ids: string[]): Promise<Inbox[]> =>
  tx.all<Inbox>(sql`
    select t.from_name, t.email, t.reply_to, t.status, t.daily_limit, t.ramp, t.min_gap_s, t.max_gap_s, (
      select count(*)::integer from recruitment.inbox_day d
      where d.organization_id = t.organization_id and d.inbox_id = t.id and d.sent > 0
    ) as days_that_sent
    from recruitment.inbox t
    where ${tenant(tx)} and t.id = any(${ids}) and t.deleted_at is null
    order by t.id`);

/** "A launch needs an https BASE_URL (the demo excepted)." */
const isSafe = ({ base_url, is_demo }: Setting): boolean => base_url.startsWith('https:') || is_demo === true;

const isLong = (days: number | null): boolean => days === null || days > many_days;

function daysOf(campaign: Campaign, prospects: number, inboxes: Inbox[], daily_sends: number | null): number | null {
  const { schedule, daily_new_limit } = campaign;
  const secondsOf = (time: string): number => Number(time.slice(0, 2)) * 3600 + Number(time.slice(3)) * 60;
  const window_s = secondsOf(schedule.to) - secondsOf(schedule.from);
  return daysFor(prospects, inboxes, { window_s, days_a_week: schedule.days.length, daily_new_limit, daily_sends });
}

function inboxWarnings(inboxes: Inbox[]): Warning[] {
  const about = { field: 'inbox_ids' };
  return [
    ...(inboxes.some(({ status }) => status !== 'connected') ? [warns('inbox_disconnected', about)] : []),
    ...(inboxes.some(({ reply_to, email }) => reply_to !== null && reply_to.toLowerCase() !== email.toLowerCase())
      ? [warns('replies_elsewhere', about)]
      : []),
    ...(inboxes.length > 0 ? [warns('unsubscribe_headers_unsigned', about)] : []),
  ];
}
