import sql from 'sql-template-tag';
import { run } from '../../core/postgres/database.ts';
import { transaction } from '../../core/postgres/transaction.ts';
import type { PlanName } from '../../recruitment/plan/limits.ts';
import { answer, withStore } from '../command.ts';

interface PlanOptions {
  organization: string;
  plan?: PlanName;
  json?: boolean;
}

/** Shows the plan of an organization, after changing it where a new one is given. */
export const showPlan = ({ organization: organization_id, plan, json }: PlanOptions): Promise<void> =>
  withStore(async ({ store }) => {
    const [known] = await run(
      store.database,
      sql`select o.id from core.organization o where o.id = ${organization_id}`,
    );
    if (!known) throw new Error(`No organization '${organization_id}' exists. 'rail org list' lists them.`);
    const { changePlan } = await import('../../recruitment/change_plan.ts');
    const { planName } = await import('../../recruitment/plan/plan.ts');
    const { writeEvents } = await import('../../products.ts');
    const now = await transaction({ ...store, writeEvents }, { organization_id, request_id: null }, async (tx) => {
      if (plan) await changePlan(tx, plan);
      return planName(tx);
    });
    answer({ organization_id, plan: now }, { json, lines: [`${organization_id} has the plan ${now}.`] });
  });
