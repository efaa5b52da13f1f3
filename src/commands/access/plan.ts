import { logCommand } from '../../core/access/audit_log.ts';
import { transaction } from '../../core/postgres/transaction.ts';
import type { PlanName } from '../../recruitment/plan/limits.ts';
import { choose } from '../chosen.ts';
import { answer, withStore } from '../command.ts';

interface PlanOptions {
  organization?: string;
  plan?: PlanName;
  json?: boolean;
}

/** Shows the plan of an organization, after changing it where a new one is given. */
export const showPlan = ({ organization, plan, json }: PlanOptions): Promise<void> =>
  withStore(async (opened) => {
    const { store } = opened;
    const { id: organization_id } = await choose(opened, 'organization', organization);
    const { changePlan } = await import('../../recruitment/change_plan.ts');
    const { planName } = await import('../../recruitment/plan/plan.ts');
    const { writeEvents } = await import('../../products.ts');
    const now = await transaction({ ...store, writeEvents }, { organization_id, request_id: null }, async (tx) => {
      if (plan) {
        await changePlan(tx, plan);
        logCommand(tx, 'plan.update', null, ['plan']);
      }
      return planName(tx);
    });
    answer({ organization_id, plan: now }, { json, lines: [`${organization_id} has the plan ${now}.`] });
  });
