import sql from 'sql-template-tag';
import { textOf } from '../../core/formats/row_stream.ts';
import { run } from '../../core/postgres/database.ts';
import { transaction } from '../../core/postgres/transaction.ts';
import { readTimeZones } from '../../core/resource/time_zones.ts';
import { Problem } from '../../core/values/problem.ts';
import { validationProblem } from '../../core/values/validation.ts';
import { kinds, type ReportName } from '../../program/reports/kind.ts';
import { filter_names, reportQuery, runReport, streamReport } from '../../program/reports/report.ts';
import { type Opened, UsageError, withStore } from '../command.ts';
import { readDemo } from '../demo.ts';
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
export const report = (name: string, options: ReportOptions): Promise<void> =>
  withStore(async (opened) => {
    const { id: program_id, organization_id } = await chosenProgram(opened, options.program);
    await readTimeZones(opened.store.database);
    await transaction(opened.store, { organization_id, request_id: null, one_state: true }, async (tx) => {
      const query = queryOf(name as ReportName, program_id, options, tx.now);
      if (options.csv) {
        for await (const text of textOf(await streamReport(tx, query, 'csv'), 'csv')) process.stdout.write(text);
        return;
      }
      const found = await runReport(tx, query);
      console.log(options.json ? JSON.stringify(found, null, 2) : linesOf(found, options.sort).join('\n'));
    }).catch(saidForTheCommandLine);
  });

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

interface Chosen {
  id: string;
  organization_id: string;
}

/** The one that was asked for, else the demo's, else the only one. */
async function chosenProgram({ store, config }: Opened, asked: string | undefined): Promise<Chosen> {
  const programs = await run<Chosen>(
    store.database,
    sql`select t.id, t.organization_id from program.program t where ${asked ?? null}::text is null or t.id = ${asked ?? null} order by t.id`,
  );
  if (asked !== undefined && programs.length === 0) throw new UsageError(`There is no program '${asked}'.`);
  const demo = programs.length > 1 ? await readDemo(config) : undefined;
  const chosen = programs.length === 1 ? programs[0] : programs.find(({ id }) => id === demo?.program_id);
  if (chosen) return chosen;
  throw new UsageError(
    programs.length === 0 ? 'There is no program yet.' : 'There are several programs: name one with --program.',
  );
}
