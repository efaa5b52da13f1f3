/**
 * Counts what became of the emails of a campaign, by step and text, from messages by one statement: nothing has to be kept in step, and races cannot lose a
 * count.
 *
 * - Delivered is sent and not bounced. Unknown emails are in neither. A server that refuses an address counts as failed.
 * - A reply counts for the email that it names (In-Reply-To), else for the last one of its sequence that was sent. An unsubscribe counts for the email whose
 *   link or address was used; a reply that asks for it counts for the email that it answers.
 * - The positive rate is the share of delivered emails with at least one positive reply, with Wilson's 95% interval. A text wins when the lower end of its
 *   interval is above the upper ends of all other texts of the step: with few emails nobody wins.
 */
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { id, objectName, text } from '../../core/values/fields.ts';
import { replySubject } from '../composing/message_ids.ts';
import { base_path } from '../events/base_path.ts';
import { type ReplyKind, reply_kinds } from '../sequences/message.ts';
import { type Campaign, campaigns } from './campaign.ts';
import { type Step, textsOf } from './step.ts';

const count = (meaning: string) => z.int().describe(meaning);
const rate = (meaning: string) => z.int().nullable().describe(`${meaning} Null if none was delivered.`);
const kinds = Object.keys(reply_kinds) as ReplyKind[];
const counts = {
  sent: count('Emails that the server accepted.'),
  delivered: count('Those of them that did not bounce.'),
  bounced: count('Those of them that bounced.'),
  failed: count('Emails that the server refused.'),
  unknown: count('Emails that may have been sent, and are sent again by request alone.'),
  replies: z
    .object(Object.fromEntries(kinds.map((kind) => [kind, count(`Replies of the kind \`${kind}\`.`)])))
    .describe('Replies by their kind. Automatic replies and unsubscribes do not count.'),
  unsubscribed: count('Emails by which the prospect unsubscribed.'),
};
const Variant = z.object({
  variant: z.int().describe("The text: 0 is the step's own, 1 its first variant."),
  subject: text
    .nullable()
    .describe(
      'The subject, a template. Of a follow-up: that of the first email after `Re:`. Null if the text no longer exists, or if the texts of the first step have different subjects.',
    ),
  ...counts,
  positive_bps: rate('The share of the delivered emails that have a positive reply, in basis points.'),
  positive_low_bps: rate('The lower end of the 95 % confidence interval of `positive_bps` (Wilson).'),
  positive_high_bps: rate('The upper end of that interval.'),
});
const StepStats = z.object({
  step_index: z.int().describe('The step: 0 is the first.'),
  step_id: id('fst').nullable().describe('The id of the step. Null if the step no longer exists.'),
  ...counts,
  variants: z.array(Variant).describe('Its texts.'),
  winner: z
    .int()
    .nullable()
    .describe(
      'The text (`variant`) with the most positive replies: the lower end of its interval is above the upper ends of all the others. Null while the intervals overlap, or if the step has one text.',
    ),
});
const CampaignStats = z
  .object({
    object: objectName('campaign_stats'),
    campaign_id: id('fca').describe('The campaign.'),
    steps: z.array(StepStats).describe('Its steps, in their order.'),
  })
  .meta({ description: 'What became of the emails of a campaign, by step and text.' });

export const statsOperations: Operation[] = [
  operation({
    name: 'campaigns.stats',
    title: 'Retrieve the stats of a campaign',
    method: 'GET',
    path: `${base_path}/campaigns/{id}/stats`,
    scope: 'campaigns:read',
    summary:
      'Counts the emails and replies of a campaign by step and text, and names the text with the most positive replies.',
    doc: 'A reply counts for the email that it answers, or else for the last one that was sent before it. For the number of sequences by state, retrieve the campaign with `include[]=stats`.',
    params: idParams,
    reply: CampaignStats,
    async run({ tx, params }) {
      const campaign = (await campaigns.get(tx, params.id)) as Campaign;
      const counted = await countTexts(tx, params.id);
      const steps = campaign.steps.map((step, step_index) =>
        statsOf(
          step,
          step_index,
          counted.filter((one) => one.step_index === step_index),
          step_index === 0 ? undefined : subjectOfFollowUps(campaign.steps[0] as Step),
        ),
      );
      return { object: 'campaign_stats' as const, campaign_id: params.id, steps };
    },
  }),
];

/** Follow-ups answer the first email. Null: its subject differs by its text. */
function subjectOfFollowUps(first: Step): string | null {
  const subjects = new Set(textsOf(first).map(({ subject }) => subject));
  return subjects.size === 1 ? replySubject(first.subject) : null;
}

/** @param common the subject of all texts; undefined: each has its own */
function statsOf(
  step: Step,
  step_index: number,
  counted: Counted[],
  common: string | null | undefined,
): z.infer<typeof StepStats> {
  const texts = textsOf(step);
  const length = Math.max(texts.length, ...counted.map(({ variant }) => variant + 1));
  const each = Array.from({ length }, (_, variant) => counted.find((one) => one.variant === variant));
  const intervals = each.slice(0, texts.length).map((one) => intervalOf(one));
  const variants = each.map((one, variant) => {
    const interval = intervalOf(one);
    const { delivered, ...sums } = sumOf(one ? [one] : []);
    return {
      ...{ variant, subject: subjectOf(texts[variant], common), ...sums, delivered },
      positive_bps: delivered === 0 ? null : inBasisPoints(Math.min((one?.positive ?? 0) / delivered, 1)),
      ...{ positive_low_bps: inBasisPoints(interval?.low), positive_high_bps: inBasisPoints(interval?.high) },
    };
  });
  return { step_index, step_id: step.id, ...sumOf(counted), variants, winner: winnerOf(intervals) };
}

const inBasisPoints = (share: number | undefined): number | null =>
  share === undefined ? null : Math.round(share * 10_000);

const subjectOf = (own: { subject: string } | undefined, common: string | null | undefined): string | null =>
  own && common !== undefined ? common : (own?.subject ?? null);

/** An email that bounced after a reply is not delivered: no more are positive than were delivered. */
function intervalOf(counted: Counted | undefined) {
  const delivered = counted ? counted.sent - counted.bounced : 0;
  return wilson(Math.min(counted?.positive ?? 0, delivered), delivered);
}

function sumOf(counted: Counted[]) {
  const sum = (of: (one: Counted) => number): number => counted.reduce((total, one) => total + of(one), 0);
  const [sent, bounced] = [sum((one) => one.sent), sum((one) => one.bounced)];
  const replies = Object.fromEntries(kinds.map((kind) => [kind, sum((one) => one.replies[kind] ?? 0)]));
  return {
    ...{ sent, bounced, delivered: sent - bounced, failed: sum((one) => one.failed) },
    ...{ unknown: sum((one) => one.unknown), replies, unsubscribed: sum((one) => one.unsubscribed) },
  };
}

/** The emails of one text of a step, counted. */
interface Counted {
  step_index: number;
  variant: number;
  sent: number;
  bounced: number;
  failed: number;
  unknown: number;
  unsubscribed: number;
  /** Emails with a positive reply. */
  positive: number;
  replies: Partial<Record<ReplyKind, number>>;
}

/**
 * Counts the emails of a campaign by step and text, in one statement. Which email a reply answers is said by `recruitment.answered_email`, as in
 * reports.
 */
const countTexts = (tx: Tx, campaign_id: string): Promise<Counted[]> =>
  tx.all<Counted>(sql`
    with reply as materialized (
      select t.reply_kind, answered.id as answered_id, answered.step_index, answered.variant
      from recruitment.message t
      join recruitment.answered_email answered on answered.organization_id = t.organization_id and answered.reply_id = t.id
      where ${tenant(tx)} and t.campaign_id = ${campaign_id} and t.direction = 'inbound' and t.purpose = 'reply'
    ), replied as (
      select r.step_index, r.variant, json_object_agg(r.reply_kind, r.count) as replies
      from (select reply_kind, step_index, variant, count(*) as count from reply group by 1, 2, 3) as r
      group by r.step_index, r.variant
    ), positive as (
      select r.step_index, r.variant, count(distinct r.answered_id)::integer as positive
      from reply r
      where r.reply_kind = 'positive'
      group by r.step_index, r.variant
    ), counted as (
      select t.step_index, t.variant,
        (count(*) filter (where t.sent_at is not null))::integer as sent,
        (count(*) filter (where t.sent_at is not null and t.bounced_at is not null))::integer as bounced,
        (count(*) filter (where t.state = 'failed'))::integer as failed,
        (count(*) filter (where t.state = 'unknown'))::integer as unknown,
        (count(*) filter (where t.unsubscribed_at is not null))::integer as unsubscribed
      from recruitment.message t
      where ${tenant(tx)} and t.campaign_id = ${campaign_id} and t.purpose = 'sequence' and t.step_index is not null and t.variant is not null
      group by t.step_index, t.variant
    )
    select c.*, coalesce(p.positive, 0) as positive, coalesce(r.replies, '{}'::json) as replies
    from counted c
    left join replied r on r.step_index = c.step_index and r.variant = c.variant
    left join positive p on p.step_index = c.step_index and p.variant = c.variant
    order by c.step_index, c.variant`);

/** The quantile of the normal distribution for 95%. */
const z_95 = 1.959_963_985;

interface Interval {
  low: number;
  high: number;
}

/** The 95% confidence interval of a rate by Wilson's score, which holds for small numbers too. Null: nothing was counted. */
export function wilson(hits: number, of: number): Interval | null {
  if (of === 0) return null;
  const rate = hits / of;
  const scale = 1 + z_95 ** 2 / of;
  const middle = (rate + z_95 ** 2 / (2 * of)) / scale;
  const half = (z_95 * Math.sqrt((rate * (1 - rate)) / of + z_95 ** 2 / (4 * of ** 2))) / scale;
  return { low: hits === 0 ? 0 : middle - half, high: hits === of ? 1 : middle + half };
}

/** The text whose interval is above those of all the others. Null: they overlap, or there is one text alone. */
export function winnerOf(intervals: (Interval | null)[]): number | null {
  if (intervals.length < 2 || intervals.includes(null)) return null;
  const known = intervals as Interval[];
  const winner = known.findIndex(({ low }, nth) => known.every((other, at) => at === nth || low > other.high));
  return winner === -1 ? null : winner;
}
