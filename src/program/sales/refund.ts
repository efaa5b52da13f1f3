import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
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
import { newId } from '../../core/values/id.ts';
import { minor, storedCurrency } from '../../core/values/money.ts';
import { alreadyExists, Problem } from '../../core/values/problem.ts';
import { program_id } from '../events/fields.ts';
import { programs } from '../programs/program.ts';
import { releaseWaiting } from '../programs/release_later.ts';
import { type Sale, sales } from './sale.ts';

export const refunds = resource({
  object: 'refund',
  plural: 'refunds',
  scoped_as: 'sales',
  table: 'program.refund',
  unique: { refund_external_id_unique: 'external_refund_id' },
  doc: 'A refund of a sale, in whole or in part. What it changed is in the sale and its commissions.',
  soft_delete: true,
  relations: { sale: sales },
  fields: {
    id: id('rfd'),
    object: objectName('refund'),
    program_id,
    sale_id: id('sale').describe('The sale that was refunded.'),
    amount_minor: minor.describe('The amount of this refund, in minor units of the currency.'),
    currency: storedCurrency,
    external_refund_id: text
      .nullable()
      .describe("The processor's id of the refund. Unique in the program. Null if not provided."),
    reason: text.nullable().describe('The reason, as you sent it. Null if not provided.'),
    refunded_at: timestamp.describe('When the charge was refunded.'),
    reversed_at: timestamp
      .nullable()
      .describe(
        'When it was reversed: the customer did not get the money after all, and the sale counts it no more. Null: it stands.',
      ),
    reversal_reason: text
      .nullable()
      .describe('Why it was reversed, as you sent it. Null if it stands, or if no reason was provided.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  computed: {
    currency: sql`(select s.currency from program.sale s where s.organization_id = t.organization_id and s.id = t.sale_id)`,
    refunded_at: sql`coalesce(t.refunded_at, t.created_at)`,
  },
});

export type Refund = z.infer<typeof refunds.record>;

export const refundReadOperations: Operation[] = readOperations({
  resource: refunds,
  within: programs,
  by: ['sale_id'],
  filters: {
    external_refund_id: {
      schema: knownExternalId.optional(),
      where: (value: string) => sql`t.external_refund_id = ${value}`,
      is_of_few: true,
    },
  },
});

/** A refund as callers send it. */
export const NewRefund = z.strictObject({
  amount_minor: z
    .int()
    .min(1)
    .optional()
    .describe("The amount to refund, in minor units of the sale's currency. The default is the amount that is left.")
    .register(never_absent),
  external_refund_id: externalId
    .optional()
    .describe("The processor's id of the refund. Unique in the program: a repeated id answers 409."),
  reason: text.max(1000).optional().describe('The reason, for your records.'),
  refunded_at: pastTimestamp
    .optional()
    .describe(
      'When the charge was refunded: not before the `occurred_at` of the sale, if that was sent, and at most a day from now. The default is the current time.',
    ),
});

export type NewRefund = z.infer<typeof NewRefund>;

const day_ms = 86_400_000;

/**
 * A refund comes after its sale. Of a sale that was recorded without its time, `occurred_at` is only when it was recorded, which may be after
 * both.
 * @throws Problem invalid_parameter
 */
export function refuseImpossibleTime(tx: Tx, { occurred_at, created_at }: Sale, refunded_at: string | undefined): void {
  if (refunded_at === undefined) return;
  const latest = new Date(Date.parse(tx.now) + day_ms).toISOString();
  if ((refunded_at >= occurred_at || occurred_at === created_at) && refunded_at <= latest) return;
  throw new Problem(
    'invalid_parameter',
    `'refunded_at' must be between the time of the sale (${occurred_at}) and a day from now.`,
    { param: 'refunded_at' },
  );
}

/** @throws Problem resource_already_exists when a refund of this id was faster */
export async function recordRefund(tx: Tx, sale: Sale, fields: NewRefund): Promise<Refund> {
  const { program_id, id: sale_id } = sale;
  const row = { refunded_at: tx.now, ...fields, id: newId('rfd'), program_id, sale_id };
  const refund = await refunds.insert(tx, row, sql`on conflict do nothing`);
  if (refund) return refund;
  await refuseRepeatedRefund(tx, sale, fields.external_refund_id);
  // The sale of the other one was deleted meanwhile.
  return recordRefund(tx, sale, fields);
}

export async function refuseRepeatedRefund(tx: Tx, sale: Sale, external_refund_id: string | undefined): Promise<void> {
  if (external_refund_id === undefined) return;
  const existing = await refunds.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${sale.program_id} and t.external_refund_id = ${external_refund_id}`,
  );
  if (!existing) return;
  throw alreadyExists(
    'external_refund_id',
    `The refund '${external_refund_id}' is already recorded in this program.`,
    existing,
  );
}

/** Has refunds worked on again that a billing processor told and that were refused because too little was left of the sale. */
export const retryRefunds = (tx: Tx, { id, program_id, external_charge_id }: Sale): Promise<void> =>
  releaseWaiting(
    tx,
    program_id,
    sql`t.reason in ('sale_already_refunded', 'refund_exceeds_sale') and t.waiting_for = any(
      array(
        select o.external_id from program.processor_object o where o.organization_id = ${tx.organization_id} and o.object_id = ${id}
      ) || ${external_charge_id}::text
    )`,
  );

/** Deletes the refunds of a deleted sale: their ids are free again. */
export const deleteRefunds = (tx: Tx, { id: sale_id }: Sale) =>
  tx.all(sql`
    update program.refund t set deleted_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.sale_id = ${sale_id}`);
