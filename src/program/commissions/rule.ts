import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { changesOf } from '../../core/postgres/write.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { type AnyResource, resource, tenant } from '../../core/resource/resource.ts';
import { externalId, id, objectName, text, timestamp, timestampInput, withDefaults } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { minorNotNegative } from '../../core/values/money.ts';
import { notInProgram, Problem } from '../../core/values/problem.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { groups } from '../partners/group.ts';
import { links } from '../partners/link.ts';
import { type Partner, partners } from '../partners/partner.ts';
import { tags } from '../partners/tag.ts';
import { programs } from '../programs/program.ts';
import { isWithinBounds, rate_bound, rate_units, rule_bound_schema } from '../tracking/link.ts';

const rate_types = ['percent', 'fixed'] as const;
const statuses = ['active', 'inactive'] as const;
const applies_to = ['all', 'first', 'renewals'] as const;
const tier_metrics = ['sales_count', 'revenue_minor'] as const;
const tierFields = {
  from: z.int().min(0).describe('The number of sales, or the revenue, from which the tier applies. See `tier_metric`.'),
  rate_value: z.int().min(0).describe(rate_units),
};

export const rules = resource({
  object: 'rule',
  plural: 'rules',
  table: 'program.rule',
  doc: 'How much a sale earns. One rule applies to a sale: a rule that names the partner before one that names the link, one that names a group or tag of the partner, and any other.',
  soft_delete: true,
  fields: {
    id: id('flw'),
    object: objectName('rule'),
    program_id,
    name: text.describe('The name of the rule.'),
    rate_type: z
      .enum(rate_types)
      .describe(
        "`percent`: a share of the sale. `fixed`: an amount for each sale, in the program's currency. A sale in another currency earns nothing by a fixed rate.",
      ),
    rate_value: z.int().describe(rate_units),
    priority: z
      .int()
      .describe('Of rules that match equally closely, the one with the highest priority applies; then the oldest.'),
    status: z.enum(statuses).describe('`active`: the rule applies. `inactive`: it does not.'),
    applies_to: z
      .enum(applies_to)
      .describe("The customer's sales that the rule applies to: `first`, `renewals` (all after the first), or `all`."),
    partner_ids: z.array(text).describe('The rule applies only to these partners. Empty: any.'),
    group_ids: z.array(text).describe('The rule applies only to partners in these groups. Empty: any.'),
    tag_ids: z.array(text).describe('The rule applies only to partners with one of these tags. Empty: any.'),
    link_ids: z.array(text).describe('The rule applies only to sales by these links. Empty: any.'),
    product_ids: z
      .array(text)
      .describe('The rule applies only to sales with one of these `product_id` values. Empty: any.'),
    duration_months: z
      .int()
      .nullable()
      .describe("The rule applies for this many months after the customer's first sale. Null: no limit."),
    max_payments: z
      .int()
      .nullable()
      .describe('The rule applies to at most this many sales of a customer. Null: no limit.'),
    min_sale_minor: minorNotNegative
      .nullable()
      .describe(
        "The rule applies only to sales of at least this amount, in minor units of the sale's currency. Null: any.",
      ),
    max_commission_minor: minorNotNegative
      .nullable()
      .describe("The most that the rule pays for a sale, in minor units of the sale's currency. Null: no limit."),
    tiers: z
      .array(z.object(tierFields))
      .describe(
        'Other rates for partners who sell more. The tier with the highest `from` that the partner reached in the month before the sale sets the rate; below the lowest tier, `rate_value` does. Empty: one rate for all.',
      ),
    tier_metric: z
      .enum(tier_metrics)
      .nullable()
      .describe(
        "What `from` of the tiers counts in the calendar month (UTC) of the sale, before the sale. `sales_count`: the partner's sales. `revenue_minor`: their amounts in the sale's currency, in minor units. Required with tiers. Null: no tiers.",
      ),
    starts_at: timestamp.nullable().describe('The rule applies to sales from this time on. Null: no start date.'),
    ends_at: timestamp.nullable().describe('The rule applies to sales before this time. Null: no end date.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Rule = z.infer<typeof rules.record>;

const ids = z.array(text.min(1).max(255)).max(1000);
/** The highest priority that a request may give, and the lowest below 0. The rule of a deal can have a higher one. */
const most_priority = 1_000_000;

const fields = {
  name: text.min(1).max(200),
  rate_type: z.enum(rate_types),
  rate_value: z.int().min(0),
  priority: z.int().min(-most_priority).max(most_priority),
  status: z.enum(statuses),
  applies_to: z
    .enum(applies_to)
    .describe("`first`: the customer's first sale. `renewals`: all after the first. `all`: both."),
  partner_ids: ids,
  group_ids: ids,
  tag_ids: ids,
  link_ids: ids,
  product_ids: z.array(externalId).max(1000),
  duration_months: z.int().min(1).max(1200).nullable(),
  max_payments: z.int().min(1).max(1_000_000).nullable(),
  min_sale_minor: minorNotNegative.nullable(),
  max_commission_minor: minorNotNegative.nullable(),
  tiers: z.array(z.strictObject(tierFields)).max(50),
  tier_metric: z.enum(tier_metrics).nullable(),
  starts_at: timestampInput.nullable(),
  ends_at: timestampInput.nullable(),
};
const { name, rate_type, rate_value, ...optional } = fields;

/** The rule applies to every sale, without end, unless these are given. */
const defaults = {
  priority: 0,
  status: 'active',
  applies_to: 'all',
  partner_ids: [],
  group_ids: [],
  tag_ids: [],
  link_ids: [],
  product_ids: [],
  duration_months: null,
  max_payments: null,
  min_sale_minor: null,
  max_commission_minor: null,
  tiers: [],
  tier_metric: null,
  starts_at: null,
  ends_at: null,
} satisfies Partial<Rule>;

export const ruleOperations: Operation[] = [
  ...readOperations({ resource: rules, within: programs, by: ['status'] }),
  operation({
    name: 'rules.create',
    method: 'POST',
    path: '/v1/rules',
    scope: 'rules:write',
    summary: 'Creates a commission rule.',
    doc: 'An empty list means any. `min_sale_minor` and `max_commission_minor` are in the currency of the sale.',
    body: z
      .strictObject({ program_id, name, rate_type, rate_value, ...withDefaults(optional, defaults) })
      .meta(rule_bound_schema),
    reply: rules.schema,
    status: 201,
    async run({ tx, body }) {
      await programs.get(tx, body.program_id, { param: 'program_id' });
      refuseContradiction(body);
      refuseExcess(body);
      await requireNamed(tx, body.program_id, body);
      const rule = await insertRule(tx, body);
      mailChange(tx, null, rule);
      return rule;
    },
  }),
  operation({
    name: 'rules.update',
    method: 'PATCH',
    path: '/v1/rules/{id}',
    scope: 'rules:write',
    summary: 'Changes a commission rule.',
    doc: 'The change applies to every later payment, renewals included. Existing commissions keep the rate that they were computed with.',
    params: idParams,
    body: z.strictObject(fields).partial().meta(rule_bound_schema),
    reply: rules.schema,
    async run({ tx, params, body }) {
      const before = await rules.get(tx, params.id, { lock: true });
      refuseContradiction({ ...before, ...body });
      if (body.rate_type ?? body.rate_value ?? body.tiers) refuseExcess({ ...before, ...body });
      await requireNamed(tx, before.program_id, body);
      const after = await rules.update(tx, before.id, { ...body, tiers: jsonb(body.tiers) });
      if (after.status !== before.status) tx.emit(event('rule.status_changed', after));
      if (changesOf(before, after).some((field) => field !== 'status')) {
        tx.emit(event('rule.updated', after, { before: rateOf(before), after: rateOf(after) }));
      }
      mailChange(tx, before, after);
      return after;
    },
  }),
  operation({
    name: 'rules.delete',
    method: 'DELETE',
    path: '/v1/rules/{id}',
    scope: 'rules:write',
    summary: 'Deletes a commission rule.',
    doc: 'If it was the last rule that applied, the next renewal earns no commission. Existing commissions are unchanged.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      const rule = await rules.get(tx, params.id, { lock: true });
      await rules.update(tx, rule.id, { deleted_at: tx.now });
      tx.emit(event('rule.deleted', rule));
      mailChange(tx, rule, null);
      return { id: rule.id, object: 'rule', deleted: true as const };
    },
  }),
];

/** Has a job look for the partners whose rate is another one by this, and email them. A rule for links or products is nobody's rate. */
function mailChange(tx: Tx, before: Rule | null, after: Rule | null): void {
  const paying = [before, after].map((one) => (one?.status === 'active' && isOfAll(one) ? one : null));
  const [was, is] = paying;
  if (!was && !is) return;
  if (was && is && changesOf(was, is).every((field) => field === 'name')) return;
  const { organization_id, now: at } = tx;
  const { program_id } = (is ?? was) as Rule;
  tx.enqueue('program/mail_rate_change', {
    organization_id,
    program_id,
    id: newId('mail'),
    at,
    before: was,
    after: is,
  });
}

const isOfAll = ({ link_ids, product_ids }: Rule): boolean => link_ids.length === 0 && product_ids.length === 0;

type NewRule = Pick<Rule, 'program_id' | 'name' | 'rate_type' | 'rate_value'> &
  Partial<Rule> & { of_activation?: true };

/** Adds a rule that has been checked. What is left out has its default. */
const insertRule = async (tx: Tx, rule: NewRule): Promise<Rule> =>
  (await rules.insert(tx, { ...defaults, ...rule, tiers: jsonb(rule.tiers ?? []), id: newId('flw') })) as Rule;

/** Adds the rule of an activation for one partner, whose row the caller has locked. It comes before the other active rules that name the partner. */
export async function insertRuleOfPartner(tx: Tx, partner_id: string, rule: NewRule): Promise<Rule> {
  const { highest } = await tx.one<{ highest: number | null }>(sql`
    select max(t.priority) as highest
    from program.rule t
    where ${tenant(tx)} and t.program_id = ${rule.program_id} and t.deleted_at is null and t.status = 'active'
      and ${partner_id} = any(t.partner_ids)`);
  const priority = highest === null ? 0 : highest + 1;
  return insertRule(tx, { ...rule, priority, partner_ids: [partner_id], of_activation: true });
}

/**
 * Ends the rules of earlier activations of a partner, whose row the caller has locked: they are deactivated, or apply until a later time from
 * which on others do.
 */
export async function endRulesOfPartner(
  tx: Tx,
  { id: partner_id, program_id }: Pick<Partner, 'id' | 'program_id'>,
  at: string | null,
): Promise<void> {
  const later = at !== null && at > tx.now ? at : null;
  const ended = await tx.all<Rule>(sql`
    update program.rule t
    set
      status = case when t.starts_at >= ${later}::timestamptz or ${later}::timestamptz is null then 'inactive' else t.status end,
      ends_at = least(t.ends_at, ${later}::timestamptz),
      updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.program_id = ${program_id} and t.deleted_at is null and t.status = 'active'
      and ${partner_id} = any(t.partner_ids) and t.of_activation
    returning ${rules.columns}`);
  for (const rule of ended) if (rule.status === 'inactive') tx.emit(event('rule.status_changed', rule));
}

const rateOf = ({ rate_type, rate_value, priority, status }: Rule) => ({ rate_type, rate_value, priority, status });

const jsonb = (value: unknown): string | undefined => (value === undefined ? undefined : JSON.stringify(value));

const named: Record<string, AnyResource> = { partner_ids: partners, group_ids: groups, tag_ids: tags, link_ids: links };

/** @throws Problem resource_not_found: a rule for an id that is not the program's would never apply */
async function requireNamed(tx: Tx, program_id: string, body: Partial<Record<string, unknown>>): Promise<void> {
  for (const [param, { object, from, alive }] of Object.entries(named)) {
    const wanted = (body[param] ?? []) as string[];
    if (wanted.length === 0) continue;
    const rows = await tx.all<{ id: string }>(
      sql`select t.id from ${from} where ${tenant(tx)} and t.program_id = ${program_id} and t.id = any(${wanted}) and ${alive}`,
    );
    const known = new Set(rows.map((row) => row.id));
    const missing = wanted.find((wanted_id) => !known.has(wanted_id));
    if (missing !== undefined) throw notInProgram(object, missing, param);
  }
}

type Bounds = Pick<Rule, 'tiers' | 'tier_metric' | 'starts_at' | 'ends_at'>;

/** @throws Problem invalid_parameter when a percent rate is out of bounds */
function refuseExcess({ rate_type, rate_value, tiers }: Pick<Rule, 'rate_type' | 'rate_value' | 'tiers'>): void {
  const refuse = (param: string) => {
    throw new Problem('invalid_parameter', `'${param}' ${rate_bound}.`, { param });
  };
  if (!isWithinBounds({ rate_type, rate_value })) refuse('rate_value');
  if (!tiers.every((tier) => isWithinBounds({ rate_type, rate_value: tier.rate_value }))) refuse('tiers');
}

/** @throws Problem missing_parameter, invalid_parameter */
function refuseContradiction({ tiers, tier_metric, starts_at, ends_at }: Bounds): void {
  if (tiers.length > 0 && tier_metric === null) {
    throw new Problem('missing_parameter', "'tier_metric' is required with tiers: sales_count or revenue_minor.", {
      param: 'tier_metric',
    });
  }
  if (new Set(tiers.map(({ from }) => from)).size < tiers.length) {
    throw new Problem('invalid_parameter', "Two tiers have the same 'from'. Remove one of them.", { param: 'tiers' });
  }
  if (starts_at !== null && ends_at !== null && ends_at <= starts_at) {
    throw new Problem('invalid_parameter', "'ends_at' must be after 'starts_at'.", { param: 'ends_at' });
  }
}
