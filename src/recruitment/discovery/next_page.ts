/** Decides which page of a run is asked for next, and reserves it: its price is spent before it is asked for. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { type Run, updateRun } from '../runs/run.ts';
import { release, reserve } from '../runs/spending.ts';
import type { ProviderName } from '../search_providers/provider.ts';
import { providers } from '../search_providers/providers.ts';
import { afterPage, nextStep, type Step, without } from './steps.ts';

/** A page that is reserved. */
export interface ReservedPage {
  number: number;
  place: number;
  step: Step;
  price_micros: number;
  reserved_at: string;
}

const most_pages = 200;

export async function stepsOf(tx: Tx, run_id: string): Promise<Step[] | null> {
  const { steps } = await tx.one<{ steps: Step[] | null }>(sql`
    select t.steps from recruitment.run t where t.organization_id = ${tx.organization_id} and t.id = ${run_id}`);
  return steps;
}

export const keepSteps = (tx: Tx, run_id: string, steps: Step[]): Promise<object[]> =>
  updateRun(tx, run_id, sql`steps = ${JSON.stringify(steps)}::jsonb`);

/**
 * Reserves the next page of a run, which is locked. Steps whose page does not fit under a ceiling are over; free ones go on. A page that a
 * dead worker had reserved and that costs nothing is asked for again.
 * @returns undefined where nothing is left to ask for
 */
export async function reserveNextPage(tx: Tx, run: Run, most_results: number): Promise<ReservedPage | undefined> {
  if (run.results >= most_results || run.pages >= most_pages) return undefined;
  let steps = (await stepsOf(tx, run.id)) ?? [];
  const begun = await reservedPage(tx, run.id, steps);
  if (begun) return begun;
  for (let place = nextStep(steps); place !== undefined; place = nextStep(steps)) {
    const step = steps[place] as Step;
    const price_micros = providers[step.provider].price;
    if (await reserve(tx, run, price_micros)) return insertPage(tx, run, place, step, price_micros);
    steps = without(steps, place, 'ceiling', true);
    await keepSteps(tx, run.id, steps);
  }
  return undefined;
}

async function insertPage(tx: Tx, run: Run, place: number, step: Step, price_micros: number): Promise<ReservedPage> {
  const number = run.pages + 1;
  await insert(tx, 'recruitment.run_page', {
    ...{ run_id: run.id, number, step: place, provider: step.provider, state: 'reserved', price_micros },
    reserved_at: tx.now,
  });
  await updateRun(tx, run.id, sql`pages = ${number}`);
  return { number, place, step, price_micros, reserved_at: tx.now };
}

interface PageRow {
  number: number;
  step: number;
  provider: ProviderName;
  price_micros: number;
  reserved_at: string;
}

async function reservedPage(tx: Tx, run_id: string, steps: Step[]): Promise<ReservedPage | undefined> {
  const [row] = await reservedRows(tx, run_id);
  if (!row) return undefined;
  const { number, step: place, price_micros, reserved_at } = row;
  return { number, place, step: steps[place] as Step, price_micros, reserved_at };
}

const reservedRows = (tx: Tx, run_id: string): Promise<PageRow[]> =>
  tx.all<PageRow>(sql`
    select p.number, p.step, p.provider, p.price_micros, p.reserved_at
    from recruitment.run_page p
    where p.organization_id = ${tx.organization_id} and p.run_id = ${run_id} and p.state = 'reserved'
    order by p.number`);

/**
 * Settles pages after an interruption: one that costs money may have been paid for, so that it is never asked for again, and its step goes on behind it.
 * It stays spent.
 */
export async function giveUpPaidPages(tx: Tx, run_id: string): Promise<void> {
  const paid = (await reservedRows(tx, run_id)).filter(({ price_micros }) => price_micros > 0);
  if (paid.length === 0) return;
  let steps = (await stepsOf(tx, run_id)) ?? [];
  for (const { number, step: place, provider } of paid) {
    const next = providers[provider].skip?.(steps[place]?.cursor ?? undefined) ?? null;
    steps = afterPage(steps, place, next);
    await settlePage(tx, run_id, number, 'lost');
  }
  await keepSteps(tx, run_id, steps);
}

export const settlePage = (
  tx: Tx,
  run_id: string,
  number: number,
  state: 'stored' | 'released' | 'lost',
  hits = 0,
): Promise<object[]> =>
  tx.all(sql`
    update recruitment.run_page p
    set state = ${state}, hits = ${hits}
    where p.organization_id = ${tx.organization_id} and p.run_id = ${run_id} and p.number = ${number} and p.state = 'reserved'`);

/** Gives the price of a page back that was not billed. */
export async function releasePage(
  tx: Tx,
  run: Run,
  { number, price_micros, reserved_at }: ReservedPage,
): Promise<void> {
  await settlePage(tx, run.id, number, 'released');
  await tx.all(sql`
    update recruitment.run_page p
    set price_micros = 0
    where p.organization_id = ${tx.organization_id} and p.run_id = ${run.id} and p.number = ${number}`);
  await release(tx, run, price_micros, reserved_at);
}
