import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { changesOf, type Values } from '../../core/postgres/write.ts';
import { list } from '../../core/resource/list.ts';
import { type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { statusSchema } from '../../core/resource/states.ts';
import { id, objectName, text, timestamp, timestampInput } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { minor, storedCurrency } from '../../core/values/money.ts';
import { customers } from '../customers/customer.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { partners } from '../partners/partner.ts';
import { type Program, programs } from '../programs/program.ts';
import { totalOf } from '../programs/tally.ts';
import { type Sale, sales } from '../sales/sale.ts';
import {
  type CommissionStatus,
  commission_states,
  matureAt,
  statusAt,
  uncounted_statuses,
} from './commission_state.ts';
import { rules } from './rule.ts';
import type { CommissionOutcome } from './rule_choice.ts';

export const commissions = resource({
  object: 'commission',
  plural: 'commissions',
  table: 'program.commission',
  unique: { commission_one_a_sale: null },
  total: totalOf('commission'),
  doc: 'What a partner earned by a sale or as a bonus, or has to return (a clawback, with a negative amount).',
  soft_delete: true,
  relations: { partner: partners, customer: customers, sale: sales, rule: rules },
  fields: {
    id: id('com'),
    object: objectName('commission'),
    program_id,
    partner_id: id('part'),
    customer_id: id('cus')
      .nullable()
      .describe('The customer of the sale. Null: a bonus, or a sale without a customer.'),
    sale_id: id('sale').nullable().describe('The sale that earned it. Null: a bonus.'),
    rule_id: id('flw').nullable().describe("The rule that applied. Null: a link's `rate_override`, or a bonus."),
    payout_id: id('pyt')
      .nullable()
      .describe('The payout that includes the commission; a commission in a payout is locked. Null: none.'),
    kind: z
      .enum(['sale', 'bonus', 'clawback'])
      .describe(
        '`sale`: earned by a sale. `bonus`: created by hand, or by a correction of the sale. `clawback`: takes back what was paid or is in a payout, with a negative amount.',
      ),
    clawback_of: id('com')
      .nullable()
      .describe('The commission that this clawback, or this bonus of a correction, belongs to. Null: none.'),
    amount_minor: minor.describe('The amount, in minor units of the currency. Negative only for a clawback.'),
    base_amount_minor: minor
      .nullable()
      .describe("The amount to which the rate was applied, in minor units of the sale's currency. Null: a bonus."),
    currency: storedCurrency,
    rate_type: z
      .enum(['percent', 'fixed'])
      .nullable()
      .describe(
        'The type of the rate that it was computed with. Later changes of the rule do not apply. Null: a bonus.',
      ),
    rate_value: z
      .int()
      .nullable()
      .describe(
        'The rate that it was computed with: basis points (2000 = 20 %) for `percent`, minor units for `fixed`. Null: a bonus.',
      ),
    status: statusSchema(commission_states),
    mature_at: timestamp.describe('When the holding period ends. Fixed at creation.'),
    approved_at: timestamp.nullable().describe('When it was approved by hand. Null: not approved.'),
    paid_at: timestamp.nullable().describe('When its payout settled. Null: not yet.'),
    voided_at: timestamp.nullable().describe('When it was voided. Null: not voided.'),
    void_reason: text
      .nullable()
      .describe(
        'Why it was voided: `sale_refunded`, `sale_corrected`, `partner_deleted`, `voided_by_hand`, or the reason that the request gave. Null: not voided.',
      ),
    hold_reason: text
      .nullable()
      .describe(
        'Why it is on hold: `dispute` while a dispute of its sale is open, or the reason that the request gave. Null: it is not on hold.',
      ),
    held_at: timestamp.nullable().describe('When it was put on hold. Null: it is not on hold.'),
    note: text.nullable().describe('Your note. Null: none.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Commission = z.infer<typeof commissions.record>;

/** The commissions, called `t`, of a payout. No index holds `payout_id`: see sql/live/program/payout_commission.sql. */
export const ofPayout = (payout_id: string): Sql => sql`(
  t.payout_id = ${payout_id} and (t.organization_id, t.id) in (
    select l.organization_id, l.commission_id from program.payout_commission l where l.payout_id = ${payout_id}
  ))`;

const maturing = list({
  resource: commissions,
  within: programs,
  by: ['partner_id', 'customer_id'],
  order: { by: 'mature_at', oldest_first: true },
  filters: {
    status: {
      schema: z
        .enum(Object.keys(commission_states) as [CommissionStatus])
        .optional()
        .describe('Only commissions with this `status`. The default is all but `voided` and `rejected`.'),
      where: (value: string) => sql`t.status = ${value}`,
      absent: {
        where: sql`t.status not in ${uncounted_statuses}`,
        total: totalOf('commission', sql`n.kind not like '% uncounted'`),
      },
    },
    from: {
      schema: timestampInput.optional().describe('Only commissions whose `mature_at` is this time or later.'),
      where: (value: string) => sql`t.mature_at >= ${value}::timestamptz`,
    },
    to: {
      schema: timestampInput.optional().describe('Only commissions whose `mature_at` is before this time.'),
      where: (value: string) => sql`t.mature_at < ${value}::timestamptz`,
    },
  },
});

export const commissionOperations: Operation[] = [
  operation({
    name: 'commissions.maturing',
    title: 'List maturing commissions',
    method: 'GET',
    path: '/v1/commissions/maturing',
    scope: 'commissions:read',
    summary: 'Lists commissions by when they mature, oldest first.',
    doc: 'Without `status`, those that are voided or rejected are left out: nobody will be paid for them. `from` (inclusive) and `to` (exclusive) apply to `mature_at`. `status=approved` lists the commissions that were approved by hand.',
    query: maturing.query,
    reply: maturing.reply,
    run: ({ tx, query, caller, counts_to }) =>
      maturing.page(tx, query as Record<string, unknown>, caller.scopes, counts_to),
    stream: ({ tx, query, caller, format }) =>
      maturing.stream(tx, query as Record<string, unknown>, caller.scopes, format),
  }),
  ...readOperations({
    resource: commissions,
    within: programs,
    by: ['status', 'kind', 'partner_id', 'customer_id', 'sale_id', 'rule_id'],
    filters: {
      payout_id: {
        schema: z
          .string()
          .min(1)
          .optional()
          .meta({ examples: id('pyt').meta()?.examples }),
        where: ofPayout,
      },
    },
  }),
];

/** The cause of a change of a commission's amount. */
export type Cause =
  | 'sale_refunded'
  | 'refund_reversed'
  | 'sale_corrected'
  | 'sale_deleted'
  | 'edited_by_hand'
  | 'partner_deleted'
  | 'payout_returned';

/** States why the next statement changes commissions, in the same round trip as that: their entries say so, and cannot be written without it. */
export const because = (tx: Tx, cause: Cause, refund_id = ''): void =>
  tx.send(sql`select program.because(${cause}, ${refund_id})`);

/** Changes a commission, and emits `commission.updated` where anything of it changed. */
export async function changeCommission(tx: Tx, before: Commission, changes: Values): Promise<Commission> {
  const after = await commissions.update(tx, before.id, changes);
  if (changesOf(before, after).length === 0) return after;
  tx.emit(event('commission.updated', after, { previous_status: before.status }));
  return after;
}

/** Returns the columns of a sale's commission. It starts `due` where no holding period is left, else `pending`. */
export function commissionOf(
  tx: Tx,
  program: Program,
  sale: Pick<Sale, 'id' | 'program_id' | 'partner_id' | 'customer_id' | 'occurred_at'>,
  { outcome: _, ...earned }: CommissionOutcome & { outcome: 'commission' },
) {
  const { program_id, partner_id, customer_id, id: sale_id } = sale;
  const mature_at = matureAt(sale.occurred_at, program.holding_period_days);
  return {
    ...earned,
    ...{ id: newId('com'), program_id, partner_id, customer_id, sale_id, kind: 'sale', mature_at },
    base_is_net: program.commission_on_net_revenue,
    status: statusAt(mature_at, tx.now),
  };
}

/** Records the commission of a sale, whose event the caller emits. */
export const createSaleCommission = async (...given: Parameters<typeof commissionOf>): Promise<Commission> =>
  (await commissions.insert(given[0], commissionOf(...given))) as Commission;
