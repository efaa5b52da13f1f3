import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { type States, statusSchema } from '../../core/resource/states.ts';
import { never_absent } from '../../core/values/absent.ts';
import {
  externalId,
  id,
  knownExternalId,
  objectName,
  pastTimestamp,
  text,
  timestamp,
} from '../../core/values/fields.ts';
import { minor, storedCurrency } from '../../core/values/money.ts';
import { alreadyExists, Problem } from '../../core/values/problem.ts';
import { program_id } from '../events/fields.ts';
import { programs } from '../programs/program.ts';
import { refunds } from './refund.ts';
import { type Sale, sales } from './sale.ts';

/** An outcome is the status that it leads to. */
export const outcomes = ['won', 'lost'] as const;
type Outcome = (typeof outcomes)[number];

export const dispute_states: States<'open' | Outcome, Outcome> = {
  open: { doc: 'the bank has not decided yet', on: { won: 'won', lost: 'lost' } },
  won: {
    doc: 'you keep the money',
    on: {},
    refusal: 'The dispute is already won. If the customer disputes the charge again, open another dispute.',
  },
  lost: {
    doc: 'the customer got the money back',
    on: { won: 'won' },
    refusal: 'The dispute is already lost. It can only be won, if the money came back.',
  },
};

export const disputes = resource({
  object: 'dispute',
  plural: 'disputes',
  scoped_as: 'sales',
  table: 'program.dispute',
  unique: { dispute_external_id_unique: 'external_dispute_id' },
  doc: 'A charge that the customer disputes at their bank (a chargeback). While it is open, the unpaid commissions of the sale are on hold.',
  soft_delete: true,
  relations: { sale: sales, refund: refunds },
  fields: {
    id: id('dsp'),
    object: objectName('dispute'),
    program_id,
    sale_id: id('sale').describe('The sale that is disputed.'),
    amount_minor: minor.describe('The amount that is disputed, in minor units of the currency.'),
    currency: storedCurrency,
    external_dispute_id: text
      .nullable()
      .describe("The processor's id of the dispute. Unique in the program. Null if not provided."),
    reason: text.nullable().describe('The reason, as you sent it. Null if not provided.'),
    status: statusSchema(dispute_states),
    refund_id: id('rfd')
      .nullable()
      .describe(
        'The refund that took the amount when the dispute was lost. Null if it was not lost, or if nothing was left of the sale.',
      ),
    opened_at: timestamp.describe('When the customer disputed the charge.'),
    closed_at: timestamp.nullable().describe('When the dispute was decided. Null while `open`.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  computed: {
    currency: sql`(select s.currency from program.sale s where s.organization_id = t.organization_id and s.id = t.sale_id)`,
  },
});

export type Dispute = z.infer<typeof disputes.record>;

export const disputeReadOperations: Operation[] = readOperations({
  resource: disputes,
  within: programs,
  by: ['status', 'sale_id'],
  filters: {
    external_dispute_id: {
      schema: knownExternalId.optional(),
      where: (value: string) => sql`t.external_dispute_id = ${value}`,
      is_of_few: true,
    },
  },
});

/** A dispute as callers send it. */
export const NewDispute = z.strictObject({
  sale_id: id('sale').describe('The sale that is disputed.'),
  amount_minor: z
    .int()
    .min(1)
    .optional()
    .describe(
      "The amount that is disputed, in minor units of the sale's currency. The default is what is not refunded of the sale.",
    )
    .register(never_absent),
  external_dispute_id: externalId
    .optional()
    .describe("The processor's id of the dispute. Unique in the program: a repeated id answers 409."),
  reason: text.max(1000).optional().describe('The reason, for your records.'),
  opened_at: pastTimestamp
    .optional()
    .describe('When the customer disputed the charge. The default is the current time.'),
});

/** @throws Problem invalid_parameter when more is disputed than was charged */
export function disputedAmount({ amount_minor }: z.infer<typeof NewDispute>, sale: Sale): number {
  const left = sale.amount_minor - sale.refunded_minor;
  const disputed = amount_minor ?? (left === 0 ? sale.amount_minor : left);
  if (disputed > 0 && disputed <= sale.amount_minor) return disputed;
  throw new Problem(
    'invalid_parameter',
    sale.amount_minor === 0
      ? 'The amount of the sale is 0, so there is nothing to dispute.'
      : `At most the amount of the sale can be disputed: ${sale.amount_minor} minor units.`,
    { param: sale.amount_minor === 0 ? 'sale_id' : 'amount_minor' },
  );
}

export async function refuseRepeatedDispute(
  tx: Tx,
  { program_id }: Sale,
  external_dispute_id: string | undefined,
): Promise<void> {
  if (external_dispute_id === undefined) return;
  const existing = await disputes.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.external_dispute_id = ${external_dispute_id}`,
  );
  if (!existing) return;
  throw alreadyExists(
    'external_dispute_id',
    `The dispute '${external_dispute_id}' is already recorded in this program.`,
    existing,
  );
}

/** Deletes the disputes of a deleted sale: their ids are free again. */
export const deleteDisputes = (tx: Tx, { id: sale_id }: Sale) =>
  tx.all(sql`
    update program.dispute t set deleted_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.sale_id = ${sale_id}`);
