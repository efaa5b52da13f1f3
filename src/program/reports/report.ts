import { z } from 'zod';
import { formatFields, type StreamFormat } from '../../core/formats/format.ts';
import { type RowStream, rowStream } from '../../core/formats/row_stream.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, operation } from '../../core/resource/operation.ts';
import { id, objectName, text, timestamp, timestampInput } from '../../core/values/fields.ts';
import { storedCurrency } from '../../core/values/money.ts';
import { Problem } from '../../core/values/problem.ts';
import { countryValue, period, timezone } from '../programs/period.ts';
import { programs } from '../programs/program.ts';
import { dimensions, type Filters } from './dimension.ts';
import { type Kind, kinds, type ReportName } from './kind.ts';
import { deltaOf, example_metrics, type Metric, MetricDelta, metric_fields, other_currencies } from './metric.ts';
import { readReport, statement_s } from './read.ts';
import { intervals, windowsOf } from './window.ts';

const names = Object.keys(kinds) as [ReportName, ...ReportName[]];
const report = z.enum(names).describe(`${names.map((name) => `\`${name}\`: ${kinds[name].doc}`).join('. ')}.`);

/** The times for which facts exist, with room for a window before. */
const reportTime = timestampInput.refine(
  (time) => time >= '2000-01-01' && time < '2200-01-01',
  'must be between the years 2000 and 2199',
);

const most_rows = 10_000;
const default_rows = 100;
const most_intervals = 1_000;
const days_of = { day: 1, week: 7, month: 28 };
const limit_bounds = `must be an integer from 1 to ${most_rows}`;

const filter = (what: string) => z.string().min(1).max(2048).optional().describe(what);

/** The effect of filters that only sales have. */
const of_sales_alone = 'Clicks, referrals, leads and customers are then 0.';

const filters = {
  period: period.describe(
    'Narrows the window to this day, ISO week or month of `timezone`: `2026-09-14`, `2026-W38` or `2026-09`.',
  ),
  partner_id: filter('Only what is credited to this partner.'),
  group_id: filter('Only what is credited to partners who are in this group today. `none`: in no group.'),
  link_id: filter('Only what came through this link. `none`: through no link.'),
  coupon_id: filter(
    'Only what came with this coupon. `none`: with no coupon. `clicks` is then 0: clicks have no coupons.',
  ),
  country: countryValue
    .optional()
    .describe('Only what came from this country: an ISO 3166-1 alpha-2 code, such as `DE`. `none`: not known.'),
  landing_page: filter(
    'Only what came from visitors who arrived at this page: host and path, as in `acme.example.com/pricing`. `none`: not known.',
  ),
  product_id: filter(
    `Only sales of this product (your id), with their refunds and commissions. \`none\`: without a product. ${of_sales_alone}`,
  ),
  customer_id: filter(
    `Only sales to this customer, with their refunds and commissions. \`none\`: without a customer. ${of_sales_alone}`,
  ),
  batch_id: filter(
    'Only payouts of this batch. Only for the report `payouts`, whose other filters are `partner_id`, `group_id` and `period`.',
  ),
};

/** The query parameters that leave out some of what a report counts. */
export const filter_names = Object.keys(filters);

const query = {
  program_id: id('prg').describe('The program that the report is about.'),
  from: reportTime.describe('The start of the window, inclusive. Between the years 2000 and 2199.'),
  to: reportTime.describe('The end of the window, exclusive. Later than `from`, and between the years 2000 and 2199.'),
  interval: z
    .enum(intervals)
    .default('day')
    .describe(
      `What each row of an \`overview\` covers; weeks begin on Monday. Its window can have at most ${most_intervals.toLocaleString('en')} days by \`day\`, ${(most_intervals * days_of.week).toLocaleString('en')} by \`week\`, and ${(most_intervals * days_of.month).toLocaleString('en')} by \`month\`. Other reports ignore it.`,
    ),
  timezone: timezone.default('UTC'),
  compare: z
    .enum(['previous', 'none'])
    .default('previous')
    .describe(
      '`previous`: the response also has `previous_period`, the window immediately before, and `delta`, what changed. That window has the same number of local days if `from` and `to` are midnights in `timezone`, otherwise the same duration. `none`: neither. `csv` and `ndjson` never have them.',
    ),
  ...filters,
  sort: z
    .string()
    .regex(/^-?[a-z_]+$/, 'must be a metric of the report, with - in front of it for descending')
    .optional()
    .meta({
      description:
        'The metric that rows are ordered by, with `-` in front of it for descending. Rows with the same value are ordered by their key. The default is `-revenue_minor`, `-paid_minor` for `payouts`, and the order of time for an `overview`.',
      examples: ['-revenue_minor'],
    }),
  limit: z
    .preprocess(
      (given) => (typeof given === 'string' && /^[0-9]+$/.test(given) ? Number(given) : given),
      z.int(limit_bounds).min(1, limit_bounds).max(most_rows, limit_bounds).optional(),
    )
    .describe(
      `The maximum number of rows. \`totals\` include all rows. The default is ${default_rows}; an \`overview\` has all. \`csv\` and \`ndjson\` return all rows, and do not take it.`,
    ),
  ...formatFields,
};

const key = (what: string, nothing = 'none') => text.nullable().optional().describe(`${what} Null: ${nothing}.`);

const example_window = { from: '2026-11-01T00:00:00.000Z', to: '2026-12-01T00:00:00.000Z' };

const Row = z
  .object({
    period: text.optional().describe('The day, ISO week or month: `2026-09-14`, `2026-W38` or `2026-09`.'),
    from: timestamp.optional().describe('When the period begins, within the window.'),
    to: timestamp.optional().describe('When the period ends, within the window.'),
    partner_id: key('The partner.'),
    group_id: key('The group.'),
    link_id: key('The link.'),
    coupon_id: key('The coupon.'),
    customer_id: key('The customer.'),
    product_id: key('Your id of the product.'),
    country: key('ISO 3166-1 alpha-2 country code.', 'not known'),
    landing_page: key('Host and path of the page where the visitor arrived, at most 500 characters.', 'not known'),
    handle: key("The partner's handle."),
    status: key("The partner's status, or `deleted`."),
    name: key("The group's name."),
    url: key("The link's URL."),
    code: key("The coupon's code."),
    batch_id: key('The batch of payouts.'),
    due_at: timestamp.nullable().optional().describe('When the payouts of the batch are due.'),
    ...metric_fields,
    other_currencies,
  })
  .meta({
    id: 'ReportRow',
    description: "A row of a report: its key, and the report's metrics.",
    examples: [{ period: '2026-11', ...example_window, ...example_metrics }],
  });

const Totals = z.object({ ...metric_fields, other_currencies }).meta({
  id: 'ReportTotals',
  description: 'The metrics of all rows together, including those that `limit` leaves out.',
  examples: [example_metrics],
});

const Report = z
  .object({
    object: objectName('report'),
    report,
    program_id: id('prg'),
    currency: storedCurrency.describe(
      "The program's currency, which all amounts are in, except those in `other_currencies`.",
    ),
    timezone: text.meta({ description: 'The time zone of the window and its periods.', examples: ['UTC'] }),
    from: timestamp.meta({ description: 'When the window begins.', examples: [example_window.from] }),
    to: timestamp.meta({ description: 'When the window ends.', examples: [example_window.to] }),
    totals: Totals,
    rows: z
      .array(Row)
      .describe(
        'The rows, in the order of `sort`. A partner, link or other key with nothing in the window has no row; an `overview` has all periods.',
      ),
    previous_period: z
      .object({
        from: timestamp.describe('When the window before begins.'),
        to: timestamp.describe('When it ends: the beginning of the window.'),
        totals: Totals,
        rows: z.array(Row).describe('Its own rows, in the same order and with the same limit.'),
      })
      .optional()
      .describe('The window before. Left out with `compare=none`.'),
    delta: z
      .record(z.string(), MetricDelta)
      .optional()
      .describe('What changed in the totals, by metric. Left out with `compare=none`.'),
    drill_down_config: z
      .object({
        field: text.meta({ description: 'The property of a row to read.', examples: ['period'] }),
        filter_type: text.meta({
          description: 'The query parameter that its value becomes; null becomes `none`.',
          examples: ['period'],
        }),
        value_prop: text.meta({ description: 'The property that holds the value.', examples: ['period'] }),
        list: text.meta({
          description:
            "The list with the same filter, whose `total_count` is the row's number of sales, clicks or payouts.",
          examples: ['sales'],
        }),
      })
      .describe(
        'How to look into a row: send its value of `field` as `filter_type` to the same report or to the list, with the same `from`, `to` and `timezone`.',
      ),
  })
  .meta({ id: 'Report', description: 'What happened in a window of time, by partner, link, country and so on.' });

/** A report as it is asked for. */
export const reportQuery = z.strictObject({ report, ...query });
type Query = z.output<typeof reportQuery>;
export type ReportReply = z.output<typeof Report>;

const doc = `A report counts each fact, such as a click or a sale, at the time when it happened and for the partner who is credited with it today. Deleted objects are not counted. Where nothing matches, such as an unknown \`partner_id\`, there are no rows and the totals are 0. What was committed before the request is counted, unless the service reads a replica, which may lag by some seconds. A report that takes longer than ${statement_s} seconds answers \`invalid_parameter\`: ask for a shorter window, or with fewer filters. Money in other currencies is in \`other_currencies\`. With \`csv\` and \`ndjson\` there are no totals, and each row also has \`currency\`, the program's.`;

export const reportOperations: Operation[] = [
  operation({
    name: 'reports.run',
    method: 'GET',
    path: '/v1/reports',
    scope: 'reports:read',
    may_lag: true,
    summary: 'Runs the report that `report` names.',
    doc,
    query: reportQuery,
    reply: Report,
    run: ({ tx, query }) => runReport(tx, query as Query),
    stream: ({ tx, query, format }) => streamReport(tx, query as Query, format),
  }),
  operation({
    name: 'reports.get',
    title: 'Run a named report',
    method: 'GET',
    path: '/v1/reports/{report}',
    scope: 'reports:read',
    may_lag: true,
    summary: 'Runs a report: the same as `GET /v1/reports` with `report`.',
    doc,
    params: z.strictObject({ report }),
    query: z.strictObject(query),
    reply: Report,
    run: ({ tx, params, query }) => runReport(tx, { ...(query as Query), report: params.report }),
    stream: ({ tx, params, query, format }) => streamReport(tx, { ...(query as Query), report: params.report }, format),
  }),
];

/** @throws Problem resource_not_found; invalid_parameter */
export async function runReport(tx: Tx, query: Query): Promise<ReportReply> {
  const kind: Kind = kinds[query.report];
  if (query.from >= query.to) throw invalid('to', "'to' must be later than 'from'.");
  const { metric, descending } = orderOf(kind, query.sort);
  const program = await programs.get(tx, query.program_id, { param: 'program_id' });
  const windows = await windowsOf(tx, query);
  if (kind.key === 'period') refuseManyIntervals(windows.current, query.interval);
  const { current, previous } = await readReport(tx, program, {
    ...{ kind, windows, metric, descending },
    filters: filtersOf(kind, query),
    timezone: query.timezone,
    interval: query.interval,
    limit: query.limit ?? (kind.key === 'period' ? Number.MAX_SAFE_INTEGER : default_rows),
  });
  return {
    object: 'report',
    report: query.report,
    program_id: program.id,
    currency: program.currency,
    timezone: query.timezone,
    ...windows.current,
    ...(current as object as Pick<ReportReply, 'rows' | 'totals'>),
    ...(windows.previous && previous
      ? {
          previous_period: {
            ...windows.previous,
            ...(previous as object as Pick<ReportReply, 'rows' | 'totals'>),
          },
          delta: deltaOf(current.totals, previous.totals),
        }
      : {}),
    drill_down_config: { field: kind.key, filter_type: kind.key, value_prop: kind.key, list: kind.list },
  };
}

const invalid = (param: string, message: string): Problem => new Problem('invalid_parameter', message, { param });

function orderOf({ metrics }: Kind, sort: string | undefined): { metric: Metric | undefined; descending: boolean } {
  if (sort === undefined) return { metric: undefined, descending: false };
  const metric = sort.replace(/^-/, '') as Metric;
  if (!metrics.includes(metric))
    throw invalid('sort', `'sort' must be one of the report's metrics: ${metrics.join(', ')}.`);
  return { metric, descending: sort.startsWith('-') };
}

const day_ms = 86_400_000;

function refuseManyIntervals({ from, to }: { from: string; to: string }, interval: keyof typeof days_of): void {
  const most = most_intervals * days_of[interval];
  if ((Date.parse(to) - Date.parse(from)) / day_ms <= most) return;
  throw invalid('interval', `The window has more than ${most} days. Use a longer 'interval', or a shorter window.`);
}

const payout_filters = ['partner_id', 'group_id', 'batch_id'] as const;
const fact_filters = [...dimensions, 'group_id'] as const;

/** @throws Problem invalid_parameter for a filter that the report does not have */
function filtersOf({ list }: Kind, query: Query): Filters {
  const known: readonly string[] = list === 'payouts' ? payout_filters : fact_filters;
  const given = [...fact_filters, 'batch_id' as const].filter((name) => query[name] !== undefined);
  const unknown = given.find((name) => !known.includes(name));
  if (unknown) throw invalid(unknown, `The report '${query.report}' does not filter by '${unknown}'. Leave it out.`);
  return Object.fromEntries(given.map((name) => [name, query[name]]));
}

/** All rows of the window, each with the currency of its amounts. */
export async function streamReport(tx: Tx, query: Query, format: StreamFormat): Promise<RowStream> {
  if (query.limit !== undefined)
    throw invalid('limit', `'limit' applies to JSON only, and ${format} returns all rows. Leave it out.`);
  const kind: Kind = kinds[query.report];
  const { currency, rows } = await runReport(tx, { ...query, compare: 'none', limit: Number.MAX_SAFE_INTEGER });
  const keys = kind.key === 'period' ? ['period', 'from', 'to'] : [kind.key, ...(kind.labels?.fields ?? [])];
  const columns = [...keys, ...kind.metrics, 'currency', 'other_currencies'];
  const ordered = rows.map((row) => ({ ...row, currency }));
  return rowStream(`${query.report}_report`, columns, ordered);
}
