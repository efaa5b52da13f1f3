import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { Problem } from '../../core/values/problem.ts';
import { currentAccount } from '../plan/credit.ts';
import { included, monthOf, nextMonth } from '../plan/limits.ts';
import { isCeilingSpent } from './spending.ts';

/** The work that counts towards each limit. The ledger knows all work that took a credit this month and did not give it back. */
const counted = { searches_monthly: 'search', reveals_monthly: 'reveal' } as const;

/**
 * Checks that the plan allows one more this month. Holds the lock of the organization's plan, so that nobody takes it meanwhile.
 * @throws Problem plan_limit_reached
 */
export async function requireMonthly(tx: Tx, limit_name: keyof typeof counted): Promise<void> {
  const { name } = await currentAccount(tx);
  const limit = included[name].limits[limit_name];
  if (limit === null) return;
  const begun = sql`(${monthOf(tx.now)}::timestamp at time zone 'UTC')`;
  const { used } = await tx.one<{ used: number }>(sql`
    select coalesce(-sum(t.amount), 0)::integer as used
    from recruitment.credit_entry t
    where t.organization_id = ${tx.organization_id} and t.reason = ${counted[limit_name]}
      and t.created_at >= ${begun} and t.id >= 'fcr_' || core.id_time_part(${begun} - interval '1 hour')`);
  if (used < limit) return;
  throw new Problem(
    'plan_limit_reached',
    `The plan '${name}' includes ${limit} ${limit_name.replace('_monthly', '')} a month, and all are used. Wait until ${nextMonth(tx.now).slice(0, 10)}, or ask the operator of the service for another plan.`,
  );
}

/** @throws Problem plan_limit_reached when nothing is left of what the plan may spend this month */
export async function requireUnspentCeiling(tx: Tx): Promise<void> {
  if (!(await isCeilingSpent(tx))) return;
  throw new Problem(
    'plan_limit_reached',
    'The spending ceiling of this month is reached. Raise `spending_ceiling_minor` with PATCH /recruitment/v1/plan, or wait for the next month.',
  );
}
