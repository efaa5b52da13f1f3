import sql from 'sql-template-tag';
import { z } from 'zod';
import { declareUnique } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { tenant } from '../../core/resource/resource.ts';
import { text } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Sale, sales } from './sale.ts';

declareUnique('refund', { refund_external_id_unique: 'external_refund_id' });

/** A refund as callers send it. */
export const NewRefund = z.strictObject({
  amount_minor: z
    .int()
    .min(1)
    .optional()
    .describe("The amount to refund, in minor units of the sale's currency. The whole remaining amount when left out."),
  external_refund_id: text
    .min(1)
    .max(255)
    .optional()
    .describe("The processor's id of the refund. Unique in the program: a repeated id answers 409."),
  reason: text.max(1000).optional().describe('The reason, for your records.'),
});

export type NewRefund = z.infer<typeof NewRefund>;

/** @throws Problem resource_already_exists when a refund of this id was faster */
export async function recordRefund(tx: Tx, sale: Sale, fields: NewRefund): Promise<void> {
  const row = { ...fields, id: newId('rfd'), program_id: sale.program_id, sale_id: sale.id, created_at: tx.now };
  if (await insert(tx, 'program.refund', row, { on_conflict: sql`on conflict do nothing` })) return;
  await refuseRepeatedRefund(tx, sale, fields.external_refund_id);
  // The sale of the other one was deleted meanwhile.
  await recordRefund(tx, sale, fields);
}

export async function refuseRepeatedRefund(tx: Tx, sale: Sale, external_refund_id: string | undefined): Promise<void> {
  if (external_refund_id === undefined) return;
  const repeated = await tx.maybe<{ sale_id: string }>(sql`
    select t.sale_id from program.refund t
    where ${tenant(tx)} and t.program_id = ${sale.program_id} and t.external_refund_id = ${external_refund_id}
      and t.deleted_at is null`);
  if (!repeated) return;
  const existing = await sales.find(tx, sql`${tenant(tx)} and t.id = ${repeated.sale_id}`);
  throw new Problem(
    'resource_already_exists',
    `The refund '${external_refund_id}' is already recorded in this program.`,
    {
      param: 'external_refund_id',
      ...(existing ? { existing } : {}),
    },
  );
}

/** Deletes the refunds of a deleted sale: their ids are free again. */
export const deleteRefunds = (tx: Tx, { id: sale_id }: Sale) =>
  tx.all(sql`
    update program.refund t set deleted_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.sale_id = ${sale_id}`);
