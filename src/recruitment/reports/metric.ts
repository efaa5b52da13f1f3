/** What reports count: each metric is a sum over the facts of `sql/live/recruitment/report_fact.sql`. */
import sql, { join, raw, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { minor } from '../../core/values/money.ts';

/** Prospects: each once, however often it happened to them. */
const of_prospects = {
  added: 'prospects that were added or found',
  contacted: 'prospects who were first written to',
  replied: 'prospects who replied',
  interested: 'prospects who became interested',
  negotiating: 'prospects with whom a deal was being made',
  agreed: 'prospects with whom a deal was agreed',
  active: 'prospects who joined the affiliate program',
  lost: 'prospects who declined or unsubscribed',
  invited: 'prospects who were invited',
  signed_up: 'invited prospects who signed up',
  activated: 'prospects who became partners by a deal',
  unsubscribed: 'prospects who unsubscribed',
} as const;

/** Emails of campaigns, and replies. */
const of_messages = {
  sent: 'emails of campaigns that were sent',
  bounced: 'emails of campaigns that bounced',
  failed: 'emails of campaigns that a server refused',
  reply_positive: 'replies of people who want to go on',
  reply_question: 'replies that ask',
  reply_not_now: 'replies that say later',
  reply_negative: 'replies that decline',
  reply_wrong_person: 'replies of somebody who is not in charge',
  reply_angry: 'replies that complain',
} as const;

const sums = {
  credits_spent: 'credits that were spent, less those that were refunded',
} as const;

type Counted = keyof typeof of_prospects | keyof typeof of_messages | keyof typeof sums;
export type Metric = Counted | 'replies' | 'provider_minor';

const described = (meanings: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(meanings).map(([name, meaning]) => [name, z.int().describe(`How many ${meaning}.`)]),
  );

export const metric_fields = {
  ...described(of_prospects),
  ...described(of_messages),
  replies: z.int().describe('How many replies of all kinds.'),
  ...described(sums),
  provider_minor: z
    .int()
    .describe('What searches and scans that began then cost at search providers, in US cents, rounded up.'),
} as Record<Metric, z.ZodInt>;
export const metrics = Object.keys(metric_fields) as Metric[];

export const Revenue = z
  .array(
    z.object({
      currency: z.string().describe('ISO 4217.'),
      revenue_minor: minor.describe('Sales less refunds.'),
      commissions_minor: minor.describe('What they earned, less clawbacks.'),
    }),
  )
  .describe(
    'What partners from activated deals brought since their activation, by currency, as the reports of the program count it.',
  );
export type Revenue = z.infer<typeof Revenue>;

const is = (fact: string): Sql => sql`f.fact = ${fact}`;

/** The columns of a statement over facts `f`, one a metric. */
export const metricColumns = (): Sql =>
  join([
    ...Object.keys(of_prospects).map(
      (name) => sql`count(distinct f.prospect_id) filter (where ${is(name)})::integer as ${raw(name)}`,
    ),
    ...Object.keys(of_messages).map((name) => sql`count(*) filter (where ${is(name)})::integer as ${raw(name)}`),
    sql`count(*) filter (where f.fact like 'reply\\_%')::integer as replies`,
    ...Object.keys(sums).map(
      (name) => sql`coalesce(sum(f.amount) filter (where ${is(name)}), 0)::bigint as ${raw(name)}`,
    ),
    sql`coalesce(ceil(sum(f.amount) filter (where ${is('provider_micros')}) / 10000), 0)::bigint as provider_minor`,
  ]);
