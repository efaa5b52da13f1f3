import { isDeepStrictEqual } from 'node:util';
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import type { Campaign } from './campaign.ts';
import type { Step } from './step.ts';

/**
 * "Steps already sent are frozen": a step that has an email, but not one that was stopped before it was sent, keeps its place, its texts and its delay.
 * @throws Problem invalid_state_transition, which names the step
 */
export async function requireFrozenSteps(tx: Tx, { id, steps }: Campaign, changed: Step[]): Promise<void> {
  const sent = await tx.all<{ step_index: number }>(sql`
    select given.step_index from generate_series(0, ${steps.length - 1}::integer) as given (step_index)
    where exists (
      select from recruitment.message t
      where ${tenant(tx)} and t.campaign_id = ${id} and t.step_index = given.step_index and t.purpose = 'sequence'
        and t.state <> 'cancelled')
    order by given.step_index`);
  const frozen = sent.find(({ step_index }) => !isDeepStrictEqual(steps[step_index], changed[step_index]));
  if (!frozen) return;
  const { step_index } = frozen;
  throw new Problem(
    'invalid_state_transition',
    `Step ${step_index} ('${steps[step_index]?.id}') was sent already and cannot be changed, moved or removed. Send it as it is, with its id, at the same place.`,
    { param: `steps.${step_index}` },
  );
}
