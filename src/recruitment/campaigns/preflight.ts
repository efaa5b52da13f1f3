/**
 * Checks a campaign before its launch: what blocks it, and what its author should know.
 *
 * - Blocking is what would keep every email from being sent: no steps, prospects or connected inbox, nobody to write to, the plan, the postal address, the
 *   privacy notice, and a BASE_URL without https. The demo may launch without.
 * - What concerns single prospects is a warning with their number and up to 10 ids: "the rest carries on", and these fail at their turn. Prospects are
 *   checked by the statement that scheduling uses, in one set.
 * - The estimate is of the first emails: daily limits with their ramps, gaps, `daily_new_limit` and the plan, with no other campaign.
 * - Consent: countries whose law asks businesses for it too, as a hint. Whether a provider signs the unsubscribe headers cannot be seen from here: a warning
 *   says so.
 */
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { objectName } from '../../core/values/fields.ts';
import { dailyLimit, daysThatSent } from '../inboxes/inbox.ts';
import { included } from '../plan/limits.ts';
import { planName } from '../plan/plan.ts';
import type { SendFailure } from '../sequences/sequence.ts';
import { bestOf, why_not } from './best_address.ts';
import type { Campaign } from './campaign.ts';
import { Blocking, blocks, Warning, warns } from './finding.ts';
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

/** Checks a campaign with every prospect that waits. Takes some seconds for 100,000. */
export async function preflight(tx: Tx, campaign: Campaign, setting: Setting): Promise<Preflight> {
  const brand = await sendingOf(tx, campaign.brand_id);
  const all = await inboxesOf(tx, campaign.inbox_ids);
  const plan = included[await planName(tx)];
  const checked = await checkProspects(tx, campaign);
  const sender = all[0] ?? { from_name: 'Name', email: 'name@example.com' };
  const { checkRendering } = await import('./template_checks.ts');
  const texts = await checkRendering(tx, campaign, brand, sender);
  const connected = all.filter(({ status }) => status === 'connected');
  const blocking = [
    ...(campaign.steps.length === 0 ? [blocks('no_steps', 'steps')] : []),
    ...(connected.length === 0 ? [blocks('no_inbox', 'inbox_ids')] : []),
    ...(checked.waiting === 0 ? [blocks('no_prospects')] : []),
    ...(checked.waiting > 0 && checked.reachable === 0 ? [blocks('nobody_to_write_to')] : []),
    ...(plan.features.outreach ? [] : [blocks('not_entitled')]),
    ...(brand.postal_address === null ? [blocks('no_postal_address')] : []),
    ...(brand.privacy_url === null ? [blocks('no_privacy_url')] : []),
    ...(isSafe(setting) ? [] : [blocks('base_url_not_https')]),
  ];
  const left = checked.waiting - texts.rendered;
  const days = connected.length === 0 ? null : daysOf(campaign, checked.reachable, connected, plan.limits.daily_sends);
  return {
    ...{ object: 'campaign_preflight', ok: blocking.length === 0, blocking },
    warnings: [
      ...checked.warnings,
      ...texts.warnings,
      ...(left > 0 ? [warns('not_all_rendered', { prospects: left })] : []),
      ...inboxWarnings(all),
      ...(connected.length > 0 && isLong(days) ? [warns('takes_long')] : []),
    ],
    ...{ prospects: checked.waiting, reachable: checked.reachable, rendered: texts.rendered },
    partial: left > 0,
    ...{ emails: checked.reachable * campaign.steps.length, days },
  };
}

const inboxesOf = (tx: Tx, ids: string[]): Promise<Inbox[]> =>
  tx.all<Inbox>(sql`
    select t.from_name, t.email, t.reply_to, t.status, t.daily_limit, t.ramp, t.min_gap_s, t.max_gap_s,
      ${daysThatSent(sql`'infinity'::date`)} as days_that_sent
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

/**
 * Countries whose law asks for consent before businesses are advertised to by email, as far as we know: it is a hint, and no legal advice.
 * Austria (TKG 174), Canada (CASL), Switzerland (UWG 3), Germany (UWG 7), Denmark, Spain (LSSI 21), Greece, Italy, Lithuania, Norway, Poland.
 */
const consent_countries = ['AT', 'CA', 'CH', 'DE', 'DK', 'ES', 'GR', 'IT', 'LT', 'NO', 'PL'];

interface Checked {
  /** Prospects that wait for the first email. */
  waiting: number;
  /** The number of them that can be emailed. */
  reachable: number;
  warnings: Warning[];
}

type Problem = SendFailure | 'consent_required' | null;

/** Checks every prospect that waits, in sets, as scheduling will. */
async function checkProspects(tx: Tx, { id, allow_risky }: Campaign): Promise<Checked> {
  const rows = await tx.all<{ problem: Problem; count: number; ids: string[]; countries: string[] | null }>(sql`
    with waiting as materialized (
      select s.id, s.prospect_id, p.country_code, best.address_hmac, ${why_not} as reason
      from recruitment.sequence s
      join recruitment.prospect p on p.organization_id = s.organization_id and p.id = s.prospect_id
      ${bestOf(allow_risky)}
      where s.organization_id = ${tx.organization_id} and s.campaign_id = ${id} and s.open and s.state = 'waiting'
    ), checked as materialized (
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
    from checked j group by j.problem
    union all
    select 'consent_required', count(*)::integer, (array_agg(j.prospect_id order by j.prospect_id))[1:10],
      array_agg(distinct j.country_code order by j.country_code)
    from checked j where j.problem is null and j.country_code = any(${consent_countries}) having count(*) > 0`);
  const checked = rows.filter(({ problem }) => problem !== 'consent_required');
  return {
    waiting: checked.reduce((sum, { count }) => sum + count, 0),
    reachable: checked.find(({ problem }) => problem === null)?.count ?? 0,
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

interface Capable {
  daily_limit: number;
  ramp: { start: number; step: number } | null;
  min_gap_s: number;
  max_gap_s: number;
  /** Days on which it has sent. */
  days_that_sent: number;
}

interface Limits {
  /** Seconds in which emails may be sent on a day. */
  window_s: number;
  /** Days of the week on which they may. */
  days_a_week: number;
  daily_new_limit: number | null;
  /** The limit of the plan. */
  daily_sends: number | null;
}

const most_days = 3650;

/**
 * Estimates the calendar days until every prospect was sent the first email: what inboxes may send on a day, one gap apart, with nothing else to
 * send. Null: more than ten years.
 */
function daysFor(prospects: number, inboxes: Capable[], limits: Limits): number | null {
  let left = prospects;
  for (let day = 0; day < most_days; day++) {
    if (left <= 0) return Math.ceil((day * 7) / limits.days_a_week);
    left -= sentOn(day, inboxes, limits);
  }
  return null;
}

function sentOn(day: number, inboxes: Capable[], { window_s, daily_new_limit, daily_sends }: Limits): number {
  const each = inboxes.map((inbox) => {
    const gap_s = Math.max((inbox.min_gap_s + inbox.max_gap_s) / 2, 1);
    return Math.min(dailyLimit(inbox, inbox.days_that_sent + day), Math.ceil(window_s / gap_s));
  });
  const sum = each.reduce((total, one) => total + one, 0);
  return Math.min(sum, daily_new_limit ?? sum, daily_sends ?? sum);
}
