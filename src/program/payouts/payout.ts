import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { lockOf, resource, tenant } from '../../core/resource/resource.ts';
import { statusSchema } from '../../core/resource/states.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { minor, minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { Problem } from '../../core/values/problem.ts';
import { program_id } from '../events/fields.ts';
import { partners } from '../partners/partner.ts';
import { groupFilter, timeFilters } from '../programs/period.ts';
import { payout_methods, programs } from '../programs/program.ts';
import { type PayoutBatch, payoutBatches } from './payout_batch.ts';
import { changes_by_hand, payout_states } from './payout_state.ts';
import { payout_error_codes } from './rails/rail.ts';

export const payouts = resource({
  object: 'payout',
  plural: 'payouts',
  table: 'program.payout',
  unique: { payout_statement_number: null },
  doc: 'What a partner is paid at once, in one currency: the sum of the commissions in it.',
  soft_delete: true,
  relations: { partner: partners, batch: payoutBatches },
  fields: {
    id: id('pyt'),
    object: objectName('payout'),
    program_id,
    batch_id: id('batch').describe('The batch that it was created in.'),
    partner_id: id('part'),
    amount_minor: minor.describe('The sum of its commissions, in minor units of the currency.'),
    fee_minor: minorNotNegative
      .nullable()
      .describe('What the rail charged, in minor units of the currency, where it reports that. Null: not known.'),
    currency: storedCurrency,
    status: statusSchema(payout_states),
    livemode: z
      .boolean()
      .describe(
        'False: it is sent through a rail in test mode. It never counts as paid, and its commissions are due again when it ends.',
      ),
    method: z.enum(payout_methods).describe("The partner's payout method."),
    external_id: text.nullable().describe("The rail's id of the payment. Null: none."),
    destination_hint: text.nullable().describe('The last four characters of the account that it is paid to.'),
    period_start: timestamp.describe('When the oldest of its commissions was created, or matured if that was earlier.'),
    period_end: timestamp.describe("The batch's cut-off."),
    due_at: timestamp.describe('When it is due.'),
    submitted_at: timestamp.nullable().describe('When it was last sent. Null: not yet.'),
    paid_at: timestamp.nullable().describe('When it settled. Null: not paid.'),
    failed_at: timestamp.nullable().describe('When it failed. Null: not failed.'),
    attempt: z.int().min(0).describe('How often it was sent. Each attempt has an idempotency key of its own.'),
    error_code: z.enum(payout_error_codes).nullable().describe('Why it failed. Null: not failed.'),
    error_message: text.nullable().describe('The error in words. Null: not failed.'),
    commission_count: z.int().min(0).describe('How many commissions are in it.'),
    in_progress: z
      .enum(changes_by_hand)
      .nullable()
      .describe(
        'What was requested and a worker is still doing: a payout of more than 2,000 commissions is marked as paid, marked as returned or deleted after the response. Until then it has its status of before, and nothing else can be done with it. If the worker fails for half an hour, it is null again, nothing was changed, and the owner is emailed. Null: nothing.',
      ),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Payout = z.infer<typeof payouts.record>;

export const payoutOperations: Operation[] = readOperations({
  resource: payouts,
  within: programs,
  by: ['status', 'partner_id', 'batch_id', 'method', 'currency'],
  filters: { group_id: groupFilter, ...timeFilters({ at: sql`t.created_at`, name: 'created_at' }) },
});

/**
 * Locks a payout whose money is to move. Its batch is locked before: it must be ready, and is not deleted meanwhile.
 * @param check throws where the payout's own status does not allow it, which is reported first
 * @throws Problem payout_locked
 */
export async function lockApproved(tx: Tx, payout_id: string, check: (payout: Payout) => unknown): Promise<Payout> {
  const { batch_id } = await payouts.get(tx, payout_id);
  const [batch, payout] = await atOnce(tx, async () => [
    await payoutBatches.find(tx, sql`${tenant(tx)} and t.id = ${batch_id}`, lockOf('share')),
    await payouts.get(tx, payout_id, { lock: true }),
  ]);
  check(payout);
  if (!batch)
    throw new Problem('payout_locked', `The batch ${batch_id} is deleted, and its payouts are being deleted.`);
  requireReady(batch);
  return payout;
}

/**
 * Locks without a long wait. A payout that a worker settles stays locked until it is done, which takes longer for thousands of commissions than a
 * request should wait.
 * @throws Problem payout_locked
 */
export async function atOnce<Locked>(tx: Tx, lock: () => Promise<Locked>): Promise<Locked> {
  await tx.all(sql`set local lock_timeout = '1s'`);
  try {
    const locked = await lock();
    await tx.all(sql`set local lock_timeout = default`);
    return locked;
  } catch (error) {
    if ((error as { code?: string }).code !== '55P03') throw error;
    throw new Problem('payout_locked', 'The payout or its batch is being changed. Try again in a few seconds.', {
      headers: { 'Retry-After': '5' },
    });
  }
}

/** A batch whose payouts can be sent, or were: it is not deleted meanwhile. @throws Problem payout_locked */
export async function lockReady(tx: Tx, batch_id: string): Promise<PayoutBatch> {
  const batch = await atOnce(tx, () => payoutBatches.get(tx, batch_id, { lock: 'share' }));
  requireReady(batch);
  return batch;
}

/** @throws Problem payout_locked */
function requireReady({ id: batch_id, status }: PayoutBatch): void {
  if (status === 'awaiting_approval')
    throw new Problem('payout_locked', `The batch ${batch_id} is not approved yet. Approve it first.`);
  if (status === 'generating')
    throw new Problem(
      'payout_locked',
      `The batch ${batch_id} is still being created. Try again when its status is ready.`,
    );
}
