/**
 * Asks providers for the pages of a run, one after another. Each page is three steps: a transaction reserves it (its price, under the run's row), the call is made in
 * no transaction, and a transaction stores its results, new prospects and where the run goes on. A task that takes over begins where the last commit left off.
 *
 * - After an interruption, a page that was reserved and costs money is never asked for again, since it may have been billed: it stays spent as `lost`. A
 *   page that is free is asked for again. "Pays no page twice."
 * - A page that was surely not billed (not reached, refused, 429, 5xx) gives its price back. 429 is waited for up to five seconds, three times.
 * - A provider that fails is asked no more in this run; the others go on. A query that a provider refuses ends that step alone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { isOpen, lockRun, type Run } from '../runs/run.ts';
import { ProviderFailure, type SearchPage } from '../search_providers/provider.ts';
import { accessTo, dispatcherFor, markUsedUp, spendUnits } from '../search_providers/provider_access.ts';
import { providers } from '../search_providers/providers.ts';
import { claimRun, heldRun, releaseRun } from './claim.ts';
import {
  giveUpPaidPages,
  keepSteps,
  type ReservedPage,
  releasePage,
  reserveNextPage,
  settlePage,
  stepsOf,
} from './next_page.ts';
import { findPagesOf } from './page_index.ts';
import { type Step, without } from './steps.ts';
import { type Selection, storePage } from './store_page.ts';

const call_timeout_ms = 15_000;
/** The times that a page is asked for that cost nothing and did not come. */
const most_tries = 3;
const longest_wait_ms = 5_000;

/** The parts that a kind of run has of its own. */
export interface Asking {
  /** Plans who is asked what. Called once. */
  plan(tx: Tx, run: Run): Promise<Step[]>;
  selection(tx: Tx, run: Run): Promise<Selection>;
  /** All that could be asked for was. The run is locked and open. */
  finish(tx: Tx, run: Run, steps: Step[]): Promise<void>;
  /** Workers died of it too often. */
  giveUp(tx: Tx, run: Run): Promise<void>;
  /** Enqueues the same task again, for another worker. */
  again(tx: Tx): void;
}

type Context = Pick<TaskContext, 'store' | 'services' | 'log' | 'worker_id' | 'stopping' | 'cut_off'>;

/** @throws RunIsHeld to be tried again */
export async function askProviders(
  { organization_id, id }: { organization_id: string; id: string },
  context: Context,
  asking: Asking,
): Promise<void> {
  const within = <T>(work: (tx: Tx) => Promise<T>) =>
    transaction(context.store, { organization_id, request_id: null }, work);
  const claim = await within((tx) => begin(tx, id, context, asking));
  if (claim === undefined) return;
  for (;;) {
    if (context.stopping.aborted) return void (await within((tx) => handOver(tx, id, claim, asking)));
    const page = await within((tx) => reserveOrFinish(tx, id, claim, asking));
    if (page === undefined) return;
    const answer = await call(organization_id, page, context);
    await within((tx) => settle(tx, id, claim, { page, answer }, context, asking));
  }
}

class RunIsHeld extends Error {
  override readonly name = 'RunIsHeld';
  constructor(id: string) {
    super(`${id} is asked about by another task; this one looks again later.`);
  }
}

async function begin(tx: Tx, id: string, { worker_id }: Context, asking: Asking): Promise<string | undefined> {
  const claimed = await claimRun(tx, id, worker_id);
  if (claimed.is === 'held') throw new RunIsHeld(id);
  if (claimed.is === 'over') return undefined;
  if (claimed.is === 'interrupted') {
    await giveUpPaidPages(tx, id);
    await asking.giveUp(tx, claimed.run);
    return undefined;
  }
  await giveUpPaidPages(tx, id);
  if ((await stepsOf(tx, id)) === null) await keepSteps(tx, id, await asking.plan(tx, claimed.run));
  return claimed.claim;
}

async function handOver(tx: Tx, id: string, claim: string, asking: Asking): Promise<void> {
  if (!(await heldRun(tx, id, claim))) return;
  await releaseRun(tx, id);
  asking.again(tx);
}

async function reserveOrFinish(tx: Tx, id: string, claim: string, asking: Asking): Promise<ReservedPage | undefined> {
  const run = await heldRun(tx, id, claim);
  if (!run) return undefined;
  const { most_results } = await asking.selection(tx, run);
  const page = await reserveNextPage(tx, run, most_results);
  if (page) return page;
  await releaseRun(tx, id);
  await asking.finish(tx, run, (await stepsOf(tx, id)) ?? []);
  return undefined;
}

type Answer = SearchPage | ProviderFailure;

/** A page that costs money is called for again only where the provider surely did not count the call. */
async function call(organization_id: string, page: ReservedPage, context: Context): Promise<Answer> {
  for (let tried = 1; ; tried++) {
    const answer = await callOnce(organization_id, page, context);
    const is_final = !(answer instanceof ProviderFailure) || tried === most_tries || context.stopping.aborted;
    if (is_final || !canTryAgain(answer, page)) return answer;
    if (answer.kind === 'rate_limited')
      await sleep(answer.retry_after_ms ?? 1_000, undefined, { signal: context.stopping }).catch(() => {});
  }
}

function canTryAgain(
  { kind, may_be_billed, retry_after_ms = 0 }: ProviderFailure,
  { price_micros }: ReservedPage,
): boolean {
  if (kind === 'rate_limited') return retry_after_ms <= longest_wait_ms;
  if (kind === 'unavailable') return true;
  return kind === 'lost' && !(may_be_billed && price_micros > 0);
}

async function callOnce(organization_id: string, { step }: ReservedPage, context: Context): Promise<Answer> {
  const { store, services, cut_off } = context;
  const provider = providers[step.provider];
  const access = await transaction(store, { organization_id, request_id: null }, (tx) =>
    accessTo(tx, step.provider, services),
  );
  if (!access) return new ProviderFailure('refused', `${provider.title} is not set up.`);
  const { units } = provider;
  if (units !== undefined && !(await spendUnits(store, step.provider, access.credentials, units))) {
    return new ProviderFailure('quota_exhausted', `The daily quota at ${provider.title} is used up.`);
  }
  const dispatcher = await dispatcherFor(access, services);
  const findPages = findPagesOf(store, organization_id);
  const given = { ...access, dispatcher, cut_off, timeout_ms: call_timeout_ms, findPages };
  try {
    const pages = provider.search(step.query, given, step.cursor ?? undefined)[Symbol.asyncIterator]();
    return (await pages.next()).value ?? { hits: [], next: null };
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error;
    if (error.kind === 'quota_exhausted' && units !== undefined)
      await markUsedUp(store, step.provider, access.credentials);
    return error;
  }
}

async function settle(
  tx: Tx,
  id: string,
  claim: string,
  { page, answer }: { page: ReservedPage; answer: Answer },
  { services, log }: Context,
  asking: Asking,
): Promise<void> {
  const run = await heldRun(tx, id, claim);
  if (!run) return settleLate(tx, id, page);
  if (!(answer instanceof ProviderFailure)) {
    return storePage(tx, services.vault, run, page, answer, await asking.selection(tx, run));
  }
  log.warn({ run: id, provider: page.step.provider, kind: answer.kind }, answer.message);
  const is_of_query = answer.kind === 'invalid';
  await keepSteps(tx, id, without((await stepsOf(tx, id)) ?? [], page.place, 'failed', !is_of_query));
  if (answer.may_be_billed) await settlePage(tx, id, page.number, 'lost');
  else await releasePage(tx, run, page);
}

/** The run was cancelled meanwhile: what may have been billed stays spent. A task that took the run over settles the page itself. */
async function settleLate(tx: Tx, id: string, { number }: ReservedPage): Promise<void> {
  const run = await lockRun(tx, id);
  if (run && !isOpen(run)) await settlePage(tx, id, number, 'lost');
}
