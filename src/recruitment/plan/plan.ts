import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, operation } from '../../core/resource/operation.ts';
import { objectName, timestamp } from '../../core/values/fields.ts';
import { ceiling, minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { Problem } from '../../core/values/problem.ts';
import { base_path } from '../events/base_path.ts';
import { type Account, currentAccount, lockAccount, refill } from './credit.ts';
import {
  creditsOf,
  type Feature,
  Features,
  included,
  Limits,
  monthOf,
  nextMonth,
  type PlanName,
  plan_names,
  provider_currency,
} from './limits.ts';

const spending_ceiling_doc =
  'The most that searches and scans together may spend on search providers in a calendar month (UTC), in US cents. Null: no limit.';

const Plan = z
  .object({
    object: objectName('plan'),
    name: z.enum(plan_names).describe('The plan. The operator of the service sets it.'),
    features: Features.describe('What the plan includes.'),
    limits: Limits.describe('The limits of the plan.'),
    credits: z
      .object({
        balance: z.int().nullable().describe('Credits that are left this month. Null if they are not limited.'),
        spent: z.int().describe('Credits that were spent this month.'),
        refunded: z.int().describe('Credits that were refunded this month.'),
        resets_at: timestamp.nullable().describe('When the credits are renewed. Null if they are not limited.'),
      })
      .describe('A search, a scan that you request and a reveal cost a credit each.'),
    spending_ceiling_minor: minorNotNegative.nullable().describe(spending_ceiling_doc),
    spent_minor: minorNotNegative.describe(
      'What searches and scans spent on search providers this calendar month (UTC), in US cents, rounded up.',
    ),
    currency: storedCurrency,
  })
  .meta({
    id: 'Plan',
    description: 'What an organization may do in the recruitment service, and what it did this month.',
  });

export const planOperations: Operation[] = [
  operation({
    name: 'plan.get',
    title: 'Retrieve the plan',
    method: 'GET',
    path: `${base_path}/plan`,
    scope: 'plan:read',
    summary: 'Retrieves the plan of the organization, with its limits and credits.',
    reply: Plan,
    writes: true,
    run: async ({ tx }) => read(tx, await currentAccount(tx)),
  }),
  operation({
    name: 'plan.update',
    title: 'Update the plan',
    method: 'PATCH',
    path: `${base_path}/plan`,
    scope: 'plan:write',
    summary: 'Changes the spending ceiling of the organization.',
    body: z
      .strictObject({
        spending_ceiling_minor: ceiling.nullable().describe(spending_ceiling_doc),
      })
      .partial(),
    reply: Plan,
    async run({ tx, body }) {
      const account = await currentAccount(tx);
      const { spending_ceiling_minor = account.spending_ceiling_minor } = body;
      await tx.all(sql`
        update recruitment.plan
        set spending_ceiling_minor = ${spending_ceiling_minor}, updated_at = ${tx.now}::timestamptz
        where organization_id = ${tx.organization_id}`);
      return read(tx, { ...account, spending_ceiling_minor });
    },
  }),
];

async function read(tx: Tx, account: Account): Promise<z.infer<typeof Plan>> {
  const { name, spending_ceiling_minor, credit_balance } = account;
  const used = await tx.one<{ spent: number; refunded: number }>(sql`
    select
      coalesce(-sum(t.amount) filter (where t.kind = 'spend'), 0)::bigint as spent,
      coalesce(sum(t.amount) filter (where t.kind = 'refund'), 0)::bigint as refunded
    from recruitment.credit_entry t
    where t.organization_id = ${tx.organization_id} and t.created_at >= ${monthOf(tx.now)}::timestamp at time zone 'UTC'`);
  const { spent_minor } = await tx.one<{ spent_minor: number }>(sql`
    select coalesce(ceil(sum(t.spent_micros) / 10000), 0)::bigint as spent_minor
    from recruitment.spending t
    where t.organization_id = ${tx.organization_id} and t.month = ${monthOf(tx.now)}::date`);
  const limited = creditsOf(name) !== null;
  return {
    ...{ object: 'plan', name, ...included[name] },
    credits: { balance: limited ? credit_balance : null, ...used, resets_at: limited ? nextMonth(tx.now) : null },
    ...{ spending_ceiling_minor, spent_minor, currency: provider_currency },
  };
}

/** @throws Problem feature_not_in_plan */
export async function requireFeature(tx: Tx, feature: Feature): Promise<void> {
  const name = await planName(tx);
  if (included[name].features[feature]) return;
  throw new Problem(
    'feature_not_in_plan',
    `The plan '${name}' does not include ${feature.replaceAll('_', ' ')}. Ask the operator of the service for another plan.`,
  );
}

/**
 * Checks that one more is within a limit of the plan. Holds the lock of the organization's plan, so that nobody adds one meanwhile.
 * @throws Problem plan_limit_reached
 */
export async function requireRoom(
  tx: Tx,
  what: 'brands' | 'inboxes' | 'seats',
  count: (tx: Tx) => Promise<{ count: number }>,
): Promise<void> {
  const { name } = await lockAccount(tx);
  const limit = included[name].limits[what];
  if (limit === null || (await count(tx)).count < limit) return;
  throw new Problem('plan_limit_reached', noRoom(name, what, limit));
}

/** A unit of each limit, and what can be removed to free one. */
const units = {
  brands: { unit: 'brand', removed: 'a brand' },
  inboxes: { unit: 'inbox', removed: 'an inbox' },
  seats: { unit: 'seat', removed: 'a team member' },
} as const;

function noRoom(name: PlanName, what: keyof typeof units, limit: number): string {
  const { unit, removed } = units[what];
  if (limit === 0) return `The plan '${name}' includes no ${what}. Ask the operator of the service for another plan.`;
  const used = limit === 1 ? `1 ${unit}, which is in use` : `${limit} ${what}, and all are in use`;
  return `The plan '${name}' includes ${used}. Remove ${removed}, or ask the operator for another plan.`;
}

/** The plan of the organization. */
export async function planName(tx: Tx): Promise<PlanName> {
  const plan = await tx.maybe<{ name: PlanName }>(
    sql`select p.name from recruitment.plan p where p.organization_id = ${tx.organization_id}`,
  );
  return plan?.name ?? 'enterprise';
}

/** Changes the plan, for the operator. @returns it as it was before */
export async function setPlan(tx: Tx, name: PlanName): Promise<PlanName> {
  const account = await lockAccount(tx);
  if (account.name === name) return name;
  await tx.all(sql`
    update recruitment.plan set name = ${name}, updated_at = ${tx.now}::timestamptz where organization_id = ${tx.organization_id}`);
  await refill(tx, { ...account, name }, 'plan_changed');
  return account.name;
}
