/** Searches for prospects over REST, and their results. A result names the page that was found; a prospect that several pages lead to has several results. */
import sql, { raw } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { nestedListOperation } from '../../core/resource/nested_list.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import {
  documentedEnum,
  enumOf,
  id,
  meaningsOf,
  objectName,
  requireState,
  text,
  timestamp,
} from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { Problem } from '../../core/values/problem.ts';
import { brands } from '../brands/brand.ts';
import { base_path } from '../events/base_path.ts';
import { refundCredit, spendCredit } from '../plan/credit.ts';
import { provider_currency } from '../plan/limits.ts';
import { prospects } from '../prospects/prospect.ts';
import { requireMonthly, requireUnspentCeiling } from '../runs/monthly_limit.ts';
import { isOpen, lockRun, updateRun } from '../runs/run.ts';
import { channels, provider_names } from '../search_providers/provider.ts';
import { availableProviders } from '../search_providers/provider_access.ts';
import { Body, request_fields, requireComplete, type SearchRequest } from './search_request.ts';
import { skip_reasons } from './skip.ts';

const states = {
  queued: 'no provider has answered yet',
  running: 'providers are being asked',
  done: 'it finished',
  stopped_at_ceiling: 'it ended at `ceiling_minor`, or at the spending ceiling of the plan',
  cancelled: 'it was cancelled',
  failed: 'no provider could start it, and its credit was refunded',
} as const;

const { filters, ...asked } = request_fields;
const asked_fields = { ...asked, filters };
const nullable = ['query', 'competitor_domain', 'like_prospect_id'];

export const searches = resource({
  object: 'search',
  plural: 'searches',
  base_path,
  table: 'recruitment.search',
  doc: 'A search for prospects. It costs a credit.',
  relations: { brand: brands },
  fields: {
    id: id('fsc'),
    object: objectName('search'),
    brand_id: id('fbr').describe('The brand that prospects are searched for.'),
    ...asked_fields,
    query: text.nullable().describe(`${request_fields.query.description} Null if not provided.`),
    competitor_domain: text.nullable().describe('The domain of a competitor. Null if not provided.'),
    like_prospect_id: text.nullable().describe('The prospect that others should be like. Null if not provided.'),
    state: documentedEnum(states),
    error: text.nullable().describe('Why it failed, as a sentence. Null if it has not failed.'),
    results_count: z.int().describe('How many results it has that were not skipped.'),
    found: z.int().describe('How many new prospects it found.'),
    spent_minor: minorNotNegative.describe('What it spent on providers, in US cents, rounded up.'),
    currency: storedCurrency,
    credit_refunded: z.boolean().describe('Whether its credit was refunded.'),
    scan_id: id('fsc')
      .nullable()
      .describe('The scan that follows it and visits its results. Null if none has started.'),
    started_at: timestamp.nullable().describe('When the first provider answered. Null if none has.'),
    finished_at: timestamp.nullable().describe('When it ended. Null if it has not ended.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  computed: {
    currency: sql`${provider_currency}::text`,
    ...Object.fromEntries(
      Object.keys(asked_fields)
        .filter((field) => !['search_type', 'ceiling_minor'].includes(field))
        .map((field) => [
          field,
          nullable.includes(field) ? sql`t.request ->> '${raw(field)}'` : sql`t.request -> '${raw(field)}'`,
        ]),
    ),
  },
});
export type Search = z.infer<typeof searches.record>;

/** Reads the request of a search. */
export const requestOf = async (tx: Tx, search_id: string): Promise<SearchRequest> =>
  (
    await tx.one<{ request: SearchRequest }>(sql`
      select t.request from recruitment.run t where t.organization_id = ${tx.organization_id} and t.id = ${search_id}`)
  ).request;

export const searchOperations: Operation[] = [
  ...readOperations({ resource: searches, within: brands, by: ['search_type', 'state'] }),
  operation({
    name: 'searches.create',
    title: 'Start a search',
    method: 'POST',
    path: `${base_path}/searches`,
    scope: 'searches:write',
    summary: 'Starts a search for prospects. It runs as a job.',
    doc: 'The search costs a credit, which is refunded if no provider can start it or if it is cancelled before that. It emits `search.completed` or `search.failed` when it ends. The scan that follows it visits its results and emits `scan.completed` or `scan.failed`. The price of each page is reserved before the page is requested, so that neither `ceiling_minor` nor the `spending_ceiling_minor` of the plan is exceeded.',
    body: Body,
    reply: searches.schema,
    status: 202,
    errors: ['missing_parameter', 'invalid_parameter', 'plan_limit_reached', 'no_credits', 'sample_prospect'],
    async run({ tx, body: { brand_id, ...request }, services }) {
      await requireSetUp(tx, request.providers, services);
      return createSearch(tx, brand_id, request);
    },
  }),
  operation({
    name: 'searches.cancel',
    title: 'Cancel a search',
    method: 'POST',
    path: `${base_path}/searches/{id}/cancel`,
    scope: 'searches:write',
    summary: 'Cancels a search that is queued or running.',
    doc: 'Results so far are kept. If it is still queued, its credit is refunded. No event is emitted.',
    params: idParams,
    reply: searches.schema,
    errors: ['invalid_state_transition'],
    run: ({ tx, params }) => cancelSearch(tx, params.id),
  }),
];

/** The index is always set up: it has something to find once a page was visited. @throws Problem invalid_parameter */
async function requireSetUp(tx: Tx, names: SearchRequest['providers'], services: Services): Promise<void> {
  const available = await availableProviders(tx, services);
  const missing = names?.find((name) => name !== 'index' && !available.has(name));
  if (missing === undefined) return;
  throw new Problem(
    'invalid_parameter',
    `The search provider '${missing}' is not set up. Set credentials with PUT /recruitment/v1/search_providers/${missing}, or ask the operator.`,
    { param: 'providers' },
  );
}

/** @throws Problem missing_parameter, invalid_parameter, resource_not_found, plan_limit_reached, no_credits */
export async function createSearch(tx: Tx, brand_id: string, request: SearchRequest): Promise<Search> {
  requireComplete(request);
  await brands.get(tx, brand_id, { param: 'brand_id' });
  if (request.like_prospect_id !== undefined) {
    await prospects.get(tx, request.like_prospect_id, { param: 'like_prospect_id' });
  }
  await requireMonthly(tx, 'searches_monthly');
  await requireUnspentCeiling(tx);
  const search_id = newId('fsc');
  await spendCredit(tx, 'search', { search_id });
  const { search_type, ceiling_minor } = request;
  await insert(tx, 'recruitment.run', {
    ...{
      id: search_id,
      brand_id,
      kind: 'search',
      search_type,
      ceiling_minor,
      request,
      state: 'queued',
      credit: 'taken',
    },
    ...{ created_at: tx.now, updated_at: tx.now },
  });
  tx.enqueue('recruitment/run_search', { organization_id: tx.organization_id, id: search_id });
  return searches.get(tx, search_id);
}

/** @throws Problem resource_not_found; invalid_state_transition where it has ended */
export async function cancelSearch(tx: Tx, search_id: string): Promise<Search> {
  await searches.get(tx, search_id);
  const run = await lockRun(tx, search_id);
  if (!run || run.state === 'cancelled') return searches.get(tx, search_id);
  requireState(isOpen(run), `The search is '${run.state}': it can be cancelled while it is queued or running.`);
  const is_refunded = run.state === 'queued';
  const credit = is_refunded ? 'refunded' : run.credit;
  await updateRun(tx, search_id, sql`state = 'cancelled', finished_at = ${tx.now}::timestamptz, credit = ${credit}`);
  if (is_refunded) await refundCredit(tx, 'search', { search_id });
  return searches.get(tx, search_id);
}

const searchResults = resource({
  object: 'search_result',
  plural: 'search_results',
  base_path,
  scoped_as: 'searches',
  table: 'recruitment.run_result',
  unique: { run_result_once: null },
  doc: 'A page or a channel that a search found.',
  fields: {
    id: id('fsr'),
    object: objectName('search_result'),
    search_id: id('fsc').describe('The search.'),
    provider: z.enum(provider_names).describe('The provider that found it.'),
    url: text.describe('Its URL. With `not_a_prospect`: a name of the result.'),
    title: text.describe('Its title, as the provider has it.'),
    description: text.describe('What the provider says of it.'),
    channel: z.enum(channels).nullable().describe('The channel that it is in. Null: its URL names no prospect.'),
    key: text.nullable().describe('The prospect in its channel. Null: its URL names no prospect.'),
    prospect_id: id('fdi').nullable().describe('The prospect. Null if it was skipped.'),
    outcome: z
      .enum(['new', 'known', 'skipped'])
      .describe('`new`: it became a prospect. `known`: it was one. `skipped`: it was left out.'),
    skipped_because: enumOf(skip_reasons)
      .nullable()
      .describe(`Why it was skipped. ${meaningsOf(skip_reasons)} Null if it was not skipped.`),
    created_at: timestamp,
  },
  computed: {
    search_id: sql`t.run_id`,
    // Results that were stored before erased persons were stored like this.
    url: sql`case when t.skipped_because in ('erased', 'not_a_prospect') then 'urn:rail:skipped:' || t.id else t.url end`,
    title: sql`case when t.skipped_because = 'not_a_prospect' then '' else t.title end`,
    description: sql`case when t.skipped_because = 'not_a_prospect' then '' else t.description end`,
    skipped_because: sql`case t.skipped_because when 'erased' then 'not_a_prospect' else t.skipped_because end`,
  },
});

export const searchResultOperations: Operation[] = [
  nestedListOperation(
    {
      name: 'searches.results',
      title: 'List the results of a search',
      path: `${base_path}/searches/{id}/results`,
      scope: 'searches:read',
      summary: 'Lists what a search found, in the order in which it was found, skipped results included.',
    },
    {
      of: {
        resource: searchResults,
        by: ['outcome', 'provider', 'channel'],
        order: { by: 'created_at', oldest_first: true },
      },
      parent: ({ tx }, id) => searches.get(tx, id),
      where: (search_id) => sql`t.run_id = ${search_id}`,
    },
  ),
];
