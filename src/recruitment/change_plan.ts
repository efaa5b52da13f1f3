import type { Tx } from '../core/postgres/transaction.ts';
import { resumeEndpoints, stopEndpoints } from '../webhooks/endpoints/entitlement.ts';
import { pauseForPlan } from './campaigns/pause.ts';
import { included, type PlanName } from './plan/limits.ts';
import { setPlan } from './plan/plan.ts';
import { wakeInboxesOfPlan } from './sequences/wake_inbox.ts';
import { events } from './webhooks.ts';

/** Changes the plan of an organization, for the operator, and what follows from it. @returns the plan before */
export async function changePlan(tx: Tx, name: PlanName): Promise<PlanName> {
  const before = await setPlan(tx, name);
  const [had, has] = [before, name].map((plan) => included[plan as PlanName].features.webhooks);
  if (included[before].features.outreach && !included[name].features.outreach) await pauseForPlan(tx);
  if (had && !has) stopEndpoints(tx, events);
  if (!had && has) await resumeEndpoints(tx, events);
  await wakeInboxesOfPlan(tx);
  return before;
}
