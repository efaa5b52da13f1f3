/** The metrics of reports: each is a sum over the facts of `sql/live/recruitment/report_fact.sql`. */
import sql, { join, raw, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { minor } from '../../core/values/money.ts';

/** Prospects: each once, however often it happened to them. */
const of_prospects = {
  added: 'prospects were added or found',
  contacted: 'prospects were sent their first email',
  replied: 'prospects replied',
  interested: 'prospects became interested',
  negotiating: 'prospects reached the stage `negotiating`',
  agreed: 'prospects reached the stage `agreed`',
  active: 'prospects joined the affiliate program',
  lost: 'prospects declined or unsubscribed',
  invited: 'prospects were invited',
  signed_up: 'invited prospects signed up',
  activated: 'prospects became partners by a deal',
  unsubscribed: 'prospects unsubscribed',
} as const;

/** Emails of campaigns, and replies. */
const of_messages = {
  sent: 'emails of campaigns were sent',
  bounced: 'emails of campaigns bounced',
  failed: 'emails of campaigns were refused by a server',
  reply_positive: 'replies have the kind `positive`',
  reply_question: 'replies have the kind `question`',
  reply_not_now: 'replies have the kind `not_now`',
  reply_negative: 'replies have the kind `negative`',
  reply_wrong_person: 'replies have the kind `wrong_person`',
  reply_angry: 'replies have the kind `angry`',
} as const;

const sums = {
  credits_spent: 'credits were spent, less those that were refunded',
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
  replies: z.int().describe('How many replies were received, of all kinds.'),
  ...described(sums),
  provider_minor: z
    .int()
    .describe(
      'What the searches and scans that were started in the window, or in the period of the row, cost at search providers, in US cents, rounded up.',
    ),
} as Record<Metric, z.ZodInt>;
export const metrics = Object.keys(metric_fields) as Metric[];

export const Revenue = z
  .array(
    z.object({
      currency: z.string().describe('ISO 4217.'),
      revenue_minor: minor.describe('Sales less refunds.'),
      commissions_minor: minor.describe('What the partners earned, less clawbacks.'),
    }),
  )
  .describe(
    'The revenue in the window of partners from activated deals, since their first activation, by currency. It is counted as in the reports of the program.',
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
