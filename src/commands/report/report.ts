import { jsonText } from '../../core/formats/json_text.ts';
import { textOf } from '../../core/formats/row_stream.ts';
import { transaction } from '../../core/postgres/transaction.ts';
import { readTimeZones } from '../../core/resource/time_zones.ts';
import { Problem } from '../../core/values/problem.ts';
import { validationProblem } from '../../core/values/validation.ts';
import { kinds, type ReportName } from '../../program/reports/kind.ts';
import { filter_names, reportQuery, runReport, streamReport } from '../../program/reports/report.ts';
import { choose } from '../chosen.ts';
import { UsageError, withStore } from '../command.ts';
import { linesOf } from './picture.ts';

export const report_names = Object.keys(kinds) as ReportName[];

export interface ReportOptions {
  program?: string;
  from?: string;
  to?: string;
  days: number;
  interval: string;
  timezone: string;
  sort?: string;
  limit?: number;
  filter: string[];
  csv?: boolean;
  json?: boolean;
}

/** An overview has a row for each interval. */
const default_rows = 20;

/** `rail report`: a report as a table with bars, or as CSV or JSON. */
export async function report(name: string | undefined, options: ReportOptions): Promise<void> {
  if (name === undefined) throw new UsageError(`Give the name of a report: ${report_names.join(', ')}.`);
  await withStore(async (opened) => {
    const { id: program_id, organization_id } = await choose(opened, 'program', options.program, { or_demo: true });
    await readTimeZones(opened.store.database);
    await transaction(opened.store, { organization_id, request_id: null, one_state: true }, async (tx) => {
      const query = queryOf(name as ReportName, program_id, options, tx.now);
      if (options.csv) {
        for await (const text of textOf(await streamReport(tx, query, 'csv'), 'csv')) process.stdout.write(text);
        return;
      }
      const found = await runReport(tx, query);
      console.log(options.json ? jsonText(found, 2) : linesOf(found, options.sort).join('\n'));
    }).catch(saidForTheCommandLine);
  });
}

/** @throws UsageError for what the API would refuse */
function queryOf(name: ReportName, program_id: string, options: ReportOptions, now: string) {
  const { from, to, interval, timezone, sort } = options;
  const limit = options.limit ?? (name === 'overview' ? undefined : default_rows);
  const until = to ?? now;
  const given = {
    ...filtersOf(options.filter),
    ...{ program_id, report: name, to: until, interval, timezone },
    from: from ?? new Date(Date.parse(until) - options.days * 86_400_000).toISOString(),
    ...(sort === undefined ? {} : { sort }),
    ...(limit === undefined || options.csv ? {} : { limit }),
  };
  const query = reportQuery.safeParse(given);
  if (query.success) return query.data;
  throw new UsageError(validationProblem(query.error, 'querystring', given).message);
}

/** @throws UsageError for what is no filter: other parameters have options of their own */
function filtersOf(given: string[]): Record<string, string> {
  const filters: Record<string, string> = {};
  for (const filter of given) {
    const [name = '', ...value] = filter.split('=');
    if (value.length === 0)
      throw new UsageError(`--filter '${filter}' must be a name and a value, such as country=DE.`);
    if (!filter_names.includes(name))
      throw new UsageError(`--filter '${filter}': the name must be one of ${filter_names.join(', ')}.`);
    if (name in filters) throw new UsageError(`--filter '${filter}': '${name}' can be given once.`);
    filters[name] = value.join('=');
  }
  return filters;
}

function saidForTheCommandLine(error: unknown): never {
  throw error instanceof Problem ? new UsageError(error.message) : error;
}
