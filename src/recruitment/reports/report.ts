import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { formatFields } from '../../core/formats/format.ts';
import { rowStream } from '../../core/formats/row_stream.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, operation } from '../../core/resource/operation.ts';
import { documentedEnum, id, objectName, text, timestamp, timestampInput } from '../../core/values/fields.ts';
import { storedCurrency } from '../../core/values/money.ts';
import { Problem } from '../../core/values/problem.ts';
import { timeZone } from '../../core/values/time_zone.ts';
import { type Interval, interval_formats } from '../../program/activation.ts';
import { brands } from '../brands/brand.ts';
import { base_path } from '../events/base_path.ts';
import { type Stage, stage_names } from '../events/fields.ts';
import { type Metric, metric_fields, metricColumns, metrics, Revenue } from './metric.ts';
import { type RevenueRow, readRevenue, sumOf } from './revenue.ts';

const groups = {
  stage: 'a row for each stage of the pipeline, in its order',
  campaign: 'a row for each campaign',
  inbox: 'a row for each inbox',
  step: 'a row for each step of each campaign',
  variant: 'a row for each text of each step of each campaign',
  member: 'a row for each team member, with the prospects who are assigned to them now',
  day: 'a row for each day of `timezone`',
  week: 'a row for each ISO week of `timezone`',
  month: 'a row for each month of `timezone`',
} as const;
type Group = keyof typeof groups;
const isInterval = (group: Group): group is Interval => group === 'day' || group === 'week' || group === 'month';

const reportTime = timestampInput.refine(
  (time) => time >= '2000-01-01' && time < '2200-01-01',
  'must be between the years 2000 and 2199',
);
const most_days = 1_100;

const query = {
  brand_id: id('fbr').describe('The brand.'),
  group_by: documentedEnum(groups).default('stage'),
  from: reportTime
    .optional()
    .describe(
      `The beginning of the window, inclusive. Default: 30 days before \`to\`. With \`group_by=day\`, the window has at most ${most_days} days.`,
    ),
  to: reportTime.optional().describe('The end of the window, exclusive. Default: now.'),
  timezone: timeZone.default('UTC').describe('The IANA time zone of days, weeks and months.'),
  campaign_id: id('fca')
    .optional()
    .describe(
      'Counts only the emails of this campaign, the replies to them, and what happened to their prospects afterwards.',
    ),
  inbox_id: id('fin')
    .optional()
    .describe(
      'Counts only the emails of this inbox, the replies to them, and what happened to their prospects afterwards.',
    ),
  member_id: id('tm').optional().describe('Counts only prospects who are assigned to this team member now.'),
  ...formatFields,
};

const key = (what: string) => text.nullable().optional().describe(`${what} Null: none.`);
const keys = {
  stage: key('The stage.'),
  prospects: z.int().optional().describe('How many prospects are in the stage now. With `group_by=stage`.'),
  reached: z.int().optional().describe('How many prospects reached the stage in the window. With `group_by=stage`.'),
  period: text.optional().describe('The day, ISO week or month: `2026-09-14`, `2026-W38` or `2026-09`.'),
  campaign_id: key('The campaign.'),
  inbox_id: key('The inbox.'),
  step_index: z.int().nullable().optional().describe('The step: 0 is the first. Null: replies to no step.'),
  variant: z
    .int()
    .nullable()
    .optional()
    .describe("The text of the step: 0 is the step's own, 1 its first variant. Null: replies to no step."),
  member_id: text.nullable().optional().describe('The team member. Null: prospects without an assignee.'),
};

const Row = z
  .object({ ...keys, ...partial(metric_fields), revenue: Revenue.optional() })
  .meta({ id: 'RecruitmentReportRow', description: 'A row of a report: its key, and its metrics.' });

const Totals = z
  .object({
    ...metric_fields,
    millicredits_per_active: z
      .int()
      .nullable()
      .describe(
        '`credits_spent` for each prospect who became active, in thousandths of a credit, rounded. Null if none did.',
      ),
    provider_minor_per_active: z
      .int()
      .nullable()
      .describe('`provider_minor` for each prospect who became active, in US cents, rounded. Null if none did.'),
    revenue: Revenue,
  })
  .meta({ id: 'RecruitmentReportTotals', description: 'The metrics of the whole window.' });

const Report = z
  .object({
    object: objectName('recruitment_report'),
    brand_id: id('fbr').describe('The brand.'),
    group_by: documentedEnum(groups),
    timezone: text.describe('The time zone of days, weeks and months.'),
    from: timestamp.describe('When the window begins.'),
    to: timestamp.describe('When the window ends.'),
    currency: storedCurrency.describe('ISO 4217. The currency of `provider_minor`; `revenue` names its own.'),
    totals: Totals,
    rows: z
      .array(Row)
      .describe(
        'The rows. Every stage has a row; a campaign, inbox, step, text, team member or period without any activity in the window has none.',
      ),
  })
  .meta({ id: 'RecruitmentReport', description: 'What recruitment for a brand did in a window of time.' });
type Report = z.infer<typeof Report>;

const Query = z.strictObject(query);
type Query = z.output<typeof Query>;

export const reportOperations: Operation[] = [
  operation({
    name: 'brand_reports.run',
    title: 'Run a report',
    method: 'GET',
    path: `${base_path}/reports`,
    scope: 'reports:read',
    may_lag: true,
    summary: 'Runs a report of a brand: the pipeline, campaigns, inboxes, steps, texts, team members, or periods.',
    doc: 'Everything counts at the time when it happened. A reply counts for the email that it answers, or else for the last one that was sent before it. What happens to a prospect counts for the last email of a campaign that was sent to them before it: so a campaign shows how many replied, agreed and became active. A prospect counts once in each metric, however often the same happened in the window. Erased prospects count only in emails and replies. Revenue is that of partners from activated deals, since their activation.',
    query: Query,
    reply: Report,
    errors: ['invalid_parameter'],
    run: ({ tx, query: asked }) => runReport(tx, asked as Query),
    stream: async ({ tx, query: asked }) => {
      const { group_by, rows } = await runReport(tx, asked as Query);
      const columns = [...Object.keys(keys).filter((name) => rows.some((row) => name in row)), ...metricsOf(group_by)];
      const revenue = revenueKey(group_by) === undefined ? [] : ['revenue'];
      return rowStream(`recruitment_${group_by}`, [...columns, ...revenue], rows);
    },
  }),
];

/** @throws Problem resource_not_found, invalid_parameter */
async function runReport(tx: Tx, asked: Query): Promise<Report> {
  const { currency } = await brands.get(tx, asked.brand_id, { param: 'brand_id' });
  const window = windowOf(asked, tx.now);
  const { group_by, timezone } = asked;
  const facts = factsOf(tx, asked, window);
  const revenue = await readRevenue(tx, { ...asked, ...window, interval: isInterval(group_by) ? group_by : null });
  const totals = await tx.one<Record<Metric, number>>(sql`select ${metricColumns()} from ${facts}`);
  return {
    ...{ object: 'recruitment_report', brand_id: asked.brand_id, group_by, timezone, ...window },
    currency,
    totals: { ...totals, ...perActive(totals), revenue: sumOf(revenue) },
    rows: group_by === 'stage' ? await stageRows(tx, asked, totals) : await rowsOf(tx, asked, facts, revenue),
  };
}

const perActive = ({ active, credits_spent, provider_minor }: Record<Metric, number>) => ({
  millicredits_per_active: active === 0 ? null : Math.round((credits_spent * 1_000) / active),
  provider_minor_per_active: active === 0 ? null : Math.round(provider_minor / active),
});

function windowOf({ from, to, group_by }: Query, now: string): { from: string; to: string } {
  const end = to ?? now;
  const begin = from ?? new Date(Date.parse(end) - 30 * day_ms).toISOString();
  if (begin >= end) throw invalid('to', "'to' must be later than 'from'.");
  if (group_by === 'day' && Date.parse(end) - Date.parse(begin) > most_days * day_ms) {
    throw invalid('from', `The window has more than ${most_days} days. Use 'week' or 'month', or a shorter window.`);
  }
  return { from: begin, to: end };
}

const day_ms = 86_400_000;
const invalid = (param: string, message: string): Problem => new Problem('invalid_parameter', message, { param });

/** The facts `f` of the window that the filters leave. */
const factsOf = (
  tx: Tx,
  { brand_id, campaign_id, inbox_id, member_id }: Query,
  { from, to }: { from: string; to: string },
): Sql => sql`
  recruitment.report_fact f
  where f.organization_id = ${tx.organization_id} and f.brand_id = ${brand_id} and f.at >= ${from}::timestamptz and f.at < ${to}::timestamptz
    ${campaign_id === undefined ? sql`` : sql`and f.campaign_id = ${campaign_id}`}
    ${inbox_id === undefined ? sql`` : sql`and f.inbox_id = ${inbox_id}`}
    ${member_id === undefined ? sql`` : sql`and f.member_id = ${member_id}`}`;

/** The pipeline: how many are in each stage now, and how many reached it in the window. */
async function stageRows(
  tx: Tx,
  { brand_id, member_id, campaign_id, inbox_id }: Query,
  totals: Record<Metric, number>,
): Promise<Report['rows']> {
  const is_written_to = sql`exists (
    select from recruitment.sequence q
    where q.organization_id = p.organization_id and q.prospect_id = p.id
      ${campaign_id === undefined ? sql`` : sql`and q.campaign_id = ${campaign_id}`}
      ${inbox_id === undefined ? sql`` : sql`and q.inbox_id = ${inbox_id}`})`;
  const now = await tx.all<{ stage: Stage; prospects: number }>(sql`
    select p.stage, count(*)::integer as prospects
    from recruitment.prospect p
    where p.organization_id = ${tx.organization_id} and p.brand_id = ${brand_id}
      ${member_id === undefined ? sql`` : sql`and p.assignee_member_id = ${member_id}`}
      ${campaign_id === undefined && inbox_id === undefined ? sql`` : sql`and ${is_written_to}`}
    group by p.stage`);
  const counts = new Map(now.map(({ stage, prospects }) => [stage, prospects]));
  return stage_names.map((stage) => ({
    ...{ stage, prospects: counts.get(stage) ?? 0, reached: totals[stage === 'found' ? 'added' : stage] },
  }));
}

/** Returns the grouping of rows: the fields of their key, and the facts that have one. */
function groupingOf({ group_by, timezone }: Query): { fields: Sql; numbers: Sql; has_key: Sql } {
  switch (group_by) {
    case 'campaign':
      return { fields: sql`f.campaign_id`, numbers: sql`1`, has_key: sql`f.campaign_id is not null` };
    case 'inbox':
      return { fields: sql`f.inbox_id`, numbers: sql`1`, has_key: sql`f.inbox_id is not null` };
    case 'step':
      return { fields: sql`f.campaign_id, f.step_index`, numbers: sql`1, 2`, has_key: sql`f.campaign_id is not null` };
    case 'variant':
      return {
        ...{ fields: sql`f.campaign_id, f.step_index, f.variant`, numbers: sql`1, 2, 3` },
        has_key: sql`f.campaign_id is not null`,
      };
    case 'member':
      return { fields: sql`f.member_id`, numbers: sql`1`, has_key: sql`f.prospect_id is not null` };
    default: {
      const format = interval_formats[group_by as Interval];
      return {
        fields: sql`to_char(f.at at time zone ${timezone}, ${format}) as period`,
        numbers: sql`1`,
        has_key: sql`true`,
      };
    }
  }
}

async function rowsOf(tx: Tx, asked: Query, facts: Sql, revenue: RevenueRow[]): Promise<Report['rows']> {
  const { fields, numbers, has_key } = groupingOf(asked);
  const rows = await tx.all<Record<string, unknown> & Record<Metric, number>>(sql`
    select ${fields}, ${metricColumns()} from ${facts} and ${has_key}
    group by ${numbers}
    order by ${numbers}`);
  const { group_by } = asked;
  const shown = metricsOf(group_by);
  const counted = rows.map((row) =>
    Object.fromEntries(Object.entries(row).filter(([name]) => name in keys || shown.includes(name as Metric))),
  );
  const by = revenueKey(group_by);
  return by === undefined ? counted : withRevenue(counted, revenue, by);
}

const revenueKey = (group: Group): 'period' | 'member_id' | undefined => {
  if (isInterval(group)) return 'period';
  return group === 'member' ? 'member_id' : undefined;
};

/** The rows with their revenue, also of periods and members in which nothing else was counted. */
function withRevenue(rows: Report['rows'], revenue: RevenueRow[], by: 'period' | 'member_id'): Report['rows'] {
  const counted = new Set(rows.map((row) => row[by]));
  const alone = [...new Set(revenue.map((one) => one[by]))].filter((value) => !counted.has(value));
  const nothing = Object.fromEntries(metrics.map((metric) => [metric, 0]));
  return [...rows, ...alone.map((value) => ({ [by]: value, ...nothing }))]
    .map((row: Report['rows'][number]) => ({ ...row, revenue: sumOf(revenue.filter((one) => one[by] === row[by])) }))
    .sort((one, other) => (orderOf(one[by]) < orderOf(other[by]) ? -1 : 1));
}

/** Null comes last. */
const orderOf = (value: unknown): string => (value === null ? '\uffff' : String(value));

/** Metrics that belong to no campaign: it adds no prospects and costs no credits. */
const of_no_campaign: Metric[] = ['added', 'credits_spent', 'provider_minor'];

function metricsOf(group: Group): Metric[] {
  if (group === 'stage') return [];
  if (isInterval(group) || group === 'member') return metrics;
  return metrics.filter((metric) => !of_no_campaign.includes(metric));
}

function partial(fields: Record<string, z.ZodType>): Record<string, z.ZodOptional> {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.optional()]));
}
