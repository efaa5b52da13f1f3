import sql from 'sql-template-tag';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import { Problem } from '../../core/values/problem.ts';
import { reasonOf } from '../../core/values/validation.ts';
import { formatMoney } from '../../program/payouts/money_text.ts';
import type { Scan } from '../../recruitment/discovery/scan.ts';
import { cancelSearch, createSearch, type Search, searches } from '../../recruitment/discovery/search.ts';
import { Body, type SearchRequest } from '../../recruitment/discovery/search_request.ts';
import { choose } from '../chosen.ts';
import { answer, requireWorker, UsageError, withStore } from '../command.ts';
import { table } from '../output/table.ts';
import { grouped } from '../payouts/tables.ts';
import { catchStop } from '../process.ts';
import { type Followed, followScan, followSearch, leave, readSearch, requireNoFailure } from './follow.ts';
import { scanLines } from './scan.ts';
import { organizationOfBrand, organizationOfRun } from './tenant.ts';

const most_listed = 20;
const most_query_shown = 40;

interface Options {
  follow?: boolean;
  json?: boolean;
}

interface StartOptions extends Options {
  brand?: string;
  type: string;
  query?: string;
  competitor?: string;
  like?: string;
  channels: string[];
  countries: string[];
  languages: string[];
  maxResults?: number;
  ceilingMinor?: number;
}

/** `rail search`: starts a search. */
export async function startSearch(options: StartOptions): Promise<void> {
  const stopping = catchStop();
  await withStore(async (opened) => {
    const { store } = opened;
    const { id, organization_id } = await choose(opened, 'brand', options.brand);
    const { brand_id, ...request } = bodyOf({ ...options, brand: id });
    await requireWorker(store, 'nothing would run the search');
    const search = await create({ store, organization_id }, brand_id, request);
    await say({ store, organization_id, stopping }, search, options);
  });
}

/** The body of the API's request, with its defaults. @throws UsageError */
function bodyOf({ brand, type, query, competitor, like, channels, countries, languages, ...most }: StartOptions) {
  const given = Body.safeParse({
    ...{ brand_id: brand, search_type: type, query, competitor_domain: competitor, like_prospect_id: like },
    ...{ channels, countries, languages, max_results: most.maxResults, ceiling_minor: most.ceilingMinor },
  });
  if (given.success) return given.data;
  const [issue] = given.error.issues;
  const option = `--${optionOf(String(issue?.path[0]))}`;
  throw new UsageError(issue ? `${option} ${reasonOf(issue)}.` : 'The options are not valid.');
}

const optionOf = (field: string): string =>
  ({ brand_id: 'brand', search_type: 'type', competitor_domain: 'competitor', like_prospect_id: 'like' })[field] ??
  field.replaceAll('_', '-');

/** The message with the option in the place of the field. */
const inOptions = ({ message, details: { param } }: Problem): string =>
  param === undefined ? message : message.replace(`'${param}'`, `--${optionOf(param)}`);

/** @throws UsageError where the type of the search needs something else */
async function create(
  { store, organization_id }: Omit<Followed, 'stopping'>,
  brand_id: string,
  request: SearchRequest,
): Promise<Search> {
  try {
    return await transaction(store, { organization_id, request_id: null }, (tx) => createSearch(tx, brand_id, request));
  } catch (error) {
    const is_usage = error instanceof Problem && ['missing_parameter', 'invalid_parameter'].includes(error.code);
    throw is_usage ? new UsageError(inOptions(error)) : error;
  }
}

/** `rail search status`. */
export async function showSearch(id: string, options: Options): Promise<void> {
  const stopping = catchStop();
  await withStore(async ({ store }) => {
    const organization_id = await organizationOfRun(store.database, 'search', id);
    const followed = { store, organization_id, stopping };
    await say(followed, await readSearch(followed, id), options);
  });
}

async function say(followed: Followed, search: Search, { follow, json }: Options): Promise<void> {
  if (!follow) return answer(search, { json, lines: linesOf(search) });
  if (search.finished_at === null) console.error(`Following ${search.id}. Ctrl-C leaves it to the worker.`);
  const ended = await followSearch(followed, search.id);
  if (ended.finished_at === null) return leave('search', search.id);
  const scan = ended.scan_id === null ? null : await followScan(followed, ended.scan_id);
  if (scan?.finished_at === null) return leave('scan', scan.id);
  answer({ ...ended, scan }, { json, lines: [...linesOf(ended), ...behindLines(scan)] });
  requireNoFailure(ended);
  if (scan) requireNoFailure(scan);
}

const behindLines = (scan: Scan | null): string[] => (scan ? ['', ...scanLines(scan)] : []);

function linesOf({ id, state, error, results_count, found, spent_minor, credit_refunded }: Search): string[] {
  const refunded = credit_refunded ? ' Its credit was refunded.' : '';
  return [
    `${id} is ${state.replaceAll('_', ' ')}${error === null ? '.' : `: ${error}`}`,
    `${grouped(results_count)} results, ${grouped(found)} new prospects, ${formatMoney(spent_minor, 'USD')} spent.${refunded}`,
  ];
}

/** `rail search cancel`. */
export const stopSearch = (id: string, { json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const organization_id = await organizationOfRun(store.database, 'search', id);
    const search = await transaction(store, { organization_id, request_id: null }, (tx) => cancelSearch(tx, id));
    answer(search, { json, lines: linesOf(search) });
  });

/** `rail search list`: the latest searches. */
export const listSearches = ({ brand, json }: { brand?: string; json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const listed = await latest(store, brand);
    answer(listed, { json, lines: listLines(listed) });
  });

async function latest(store: Store, brand: string | undefined): Promise<Search[]> {
  const organization_id = brand === undefined ? null : await organizationOfBrand(store.database, brand);
  return transaction(store, { organization_id, request_id: null }, (tx) =>
    tx.all<Search>(sql`
      select ${searches.columns}
      from ${searches.from}
      where ${searches.alive} and (${brand ?? null}::text is null or t.brand_id = ${brand ?? null})
      order by t.created_at desc, t.id desc
      limit ${most_listed}`),
  );
}

function listLines(listed: Search[]): string[] {
  const rows = listed.map((search) => [
    ...[search.id, search.brand_id, search.created_at, search.search_type, search.state.replaceAll('_', ' ')],
    ...[grouped(search.results_count), grouped(search.found), formatMoney(search.spent_minor, 'USD'), wordsOf(search)],
  ]);
  const columns = ['SEARCH', 'BRAND', 'CREATED AT', 'TYPE', 'STATE', 'RESULTS', 'NEW', 'SPENT', 'FOR'];
  return table(columns, rows, 'There is no search.');
}

/** Returns the query of a search, on one line. */
function wordsOf({ query, competitor_domain, like_prospect_id }: Search): string {
  const words = (query ?? competitor_domain ?? like_prospect_id ?? '').replaceAll(/\s+/g, ' ');
  return words.length > most_query_shown ? `${words.slice(0, most_query_shown - 1)}…` : words;
}
