/** The task of a search: asks providers, emits that it finished, and begins the scan behind it. */
import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Services } from '../../core/resource/services.ts';
import { type Brand, brands } from '../brands/brand.ts';
import { event } from '../events/event.ts';
import { refundCredit } from '../plan/credit.ts';
import { type Run, type SearchType, updateRun } from '../runs/run.ts';
import { provider_names } from '../search_providers/provider.ts';
import { availableProviders } from '../search_providers/provider_access.ts';
import { type Asking, askProviders } from './ask_providers.ts';
import { queueScanOf } from './scan_visits.ts';
import { requestOf } from './search.ts';
import { type SearchRequest, urlsOf } from './search_request.ts';
import { planSteps, type Step, textsOfCompetitor, type Wanted } from './steps.ts';

const most_words_alike = 8;
const no_answer = 'No search provider answered.';
const no_provider =
  'No search provider is set up. Set credentials with PUT /recruitment/v1/search_providers/{name}, or ask the operator.';

interface SearchId {
  organization_id: string;
  id: string;
}

export const runSearch = (search: SearchId, context: TaskContext): Promise<void> =>
  askProviders(search, context, askingOf(search, context));

const askingOf = (search: SearchId, { services }: TaskContext): Asking => ({
  async plan(tx, run) {
    const request = await requestOf(tx, run.id);
    const available = await availableProviders(tx, services);
    const names = (request.providers ?? provider_names).filter((name) => available.has(name));
    return planSteps(await wantedBy(tx, request, await brandOf(tx, run)), names);
  },
  async selection(tx, run) {
    const { filters, channels, max_results } = await requestOf(tx, run.id);
    const { website_url = '', competitors = [] } = (await brandOf(tx, run)) ?? {};
    return { filters, channels, own_sites: [website_url, ...competitors], most_results: max_results };
  },
  finish: (tx, run, steps) => finish(tx, run, steps, services),
  giveUp: (tx, run) => (run.state === 'queued' ? fail(tx, run, no_answer) : complete(tx, run, 'done')),
  again: (tx) => tx.enqueue('recruitment/run_search', search),
});

const brandOf = (tx: Tx, { brand_id }: Run): Promise<Brand | undefined> =>
  brands.find(tx, sql`t.organization_id = ${tx.organization_id} and t.id = ${brand_id}`);

async function wantedBy(tx: Tx, request: SearchRequest, brand: Brand | undefined): Promise<Wanted> {
  const { search_type, query, competitor_domain, countries, languages } = request;
  const texts: Record<SearchType, () => string[] | Promise<string[]>> = {
    keyword: () => [query as string],
    competitor: () => [...textsOfCompetitor(competitor_domain as string), ...(query ? [query] : [])],
    lookalike: () => textsLike(tx, request.like_prospect_id as string),
    channel: () => (query ? [query] : (brand?.keywords ?? [])),
    url_list: () => [],
  };
  return {
    ...{ texts: await texts[search_type](), channels: request.channels },
    countries: countries.length > 0 ? countries : (brand?.countries ?? []),
    languages: languages.length > 0 ? languages : (brand?.languages ?? []),
    ...(search_type === 'competitor' ? { links_to: competitor_domain as string } : {}),
    ...(search_type === 'url_list' ? { urls: urlsOf(query as string) } : {}),
  };
}

/** The words in which a prospect describes itself, a few of them. */
async function textsLike(tx: Tx, prospect_id: string): Promise<string[]> {
  const like = await tx.maybe<{ name: string | null; description: string | null; keywords: string[] }>(sql`
    select t.name, t.description,
      array(select distinct split_part(e ->> 'text', ':', 1) from jsonb_array_elements(t.evidence) as e where e ->> 'kind' = 'keyword') as keywords
    from recruitment.prospect t
    where t.organization_id = ${tx.organization_id} and t.id = ${prospect_id}`);
  if (!like) return [];
  const words = (text: string | null) => (text ?? '').match(/[\p{L}\p{N}][\p{L}\p{N}'-]{3,}/gu) ?? [];
  const said = [...new Set(words(like.description))].slice(0, most_words_alike).join(' ');
  return [...new Set([said, like.keywords.slice(0, 3).join(' '), like.name ?? ''])].filter((text) => text !== '');
}

/** Ends a search. Without an answer it could not start, unless a ceiling was in the way. */
async function finish(tx: Tx, run: Run, steps: Step[], services: Services): Promise<void> {
  const is_stopped = steps.some(({ over }) => over === 'ceiling');
  if (run.state === 'queued' && !is_stopped) return fail(tx, run, await errorOf(tx, steps, services));
  await complete(tx, run, is_stopped ? 'stopped_at_ceiling' : 'done');
}

/** Lists of URLs need no provider to be set up. */
async function errorOf(tx: Tx, steps: Step[], services: Services): Promise<string> {
  const available = await availableProviders(tx, services);
  const can_ask = [...available].some((name) => name !== 'url_list');
  return steps.length === 0 && !can_ask ? no_provider : no_answer;
}

async function complete(tx: Tx, run: Run, state: 'done' | 'stopped_at_ceiling'): Promise<void> {
  const { id: search_id, brand_id, search_type, found } = run;
  await updateRun(tx, search_id, sql`state = ${state}, finished_at = ${tx.now}::timestamptz`);
  await queueScanOf(tx, run);
  const about = { search_id, brand_id, search_type: search_type as SearchType, state, found };
  tx.emit(event('search.completed', tx.organization_id, about));
}

async function fail(tx: Tx, { id: search_id }: Run, error: string): Promise<void> {
  await updateRun(
    tx,
    search_id,
    sql`state = 'failed', error = ${error}, credit = 'refunded', finished_at = ${tx.now}::timestamptz`,
  );
  await refundCredit(tx, 'search', { search_id });
  tx.emit(event('search.failed', tx.organization_id, { search_id, credit_refunded: true }));
}
