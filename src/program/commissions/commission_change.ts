import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Values } from '../../core/postgres/write.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { allows, transition } from '../../core/resource/states.ts';
import { id, requireState, text, timestampInput } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { currency } from '../../core/values/money.ts';
import { Problem } from '../../core/values/problem.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { partner_states, partnerOf } from '../partners/partner.ts';
import { programs } from '../programs/program.ts';
import { type Sale, sales } from '../sales/sale.ts';
import { earnsNothing, keptOfEdit, takeBackCommissions } from './adjust.ts';
import { because, type Commission, changeCommission, commissions } from './commission.ts';
import { type CommissionAction, commission_states, not_on_hold, statusAt } from './commission_state.ts';
import { voidCommission } from './commission_void.ts';
import { followDisputes } from './disputed.ts';

const note = text.max(1000);
const positive = z.int().min(1).describe('The amount, in minor units of the currency.');

const cancelling =
  'Later refunds and corrections of its sale do not create it again. The clawbacks and bonuses that corrected the commission are deleted, unless they are paid or in a payout: then another one balances them.';

/** Operations on commissions by hand. */
export const commissionChangeOperations: Operation[] = [
  operation({
    name: 'commissions.create',
    title: 'Create a bonus',
    method: 'POST',
    path: '/v1/commissions',
    scope: 'commissions:write',
    summary: 'Creates a bonus for a partner.',
    doc: 'The partner must be active. The bonus is due immediately, unless `mature_at` is given.',
    body: z.strictObject({
      program_id,
      partner_id: id('part'),
      amount_minor: positive,
      currency: currency.optional().describe("The default is the program's currency."),
      mature_at: timestampInput.optional().describe('When the bonus is due. The default is the current time.'),
      note: note.optional(),
    }),
    reply: commissions.schema,
    status: 201,
    errors: ['invalid_state_transition'],
    async run({ tx, body }) {
      const program = await programs.get(tx, body.program_id, { param: 'program_id' });
      const partner = await partnerOf(tx, program, body.partner_id, 'share');
      requireState(
        allows(partner_states, partner.status, 'earn'),
        `The partner is '${partner.status}', and only an active partner can get a bonus. Activate the partner first.`,
      );
      return createBonus(tx, { currency: program.currency, mature_at: tx.now, ...body });
    },
  }),
  operation({
    name: 'commissions.update',
    method: 'PATCH',
    path: '/v1/commissions/{id}',
    scope: 'commissions:write',
    summary: "Changes an unpaid commission's amount or note.",
    doc: 'An edited amount stays edited: a later refund or correction of the sale scales it by what is left of the amount that it was computed from. A commission of a sale of which nothing is left cannot be edited.',
    params: idParams,
    body: z
      .strictObject({
        amount_minor: z
          .int()
          .describe(
            'The amount, in minor units of the currency: negative for a clawback, 0 or more for any other commission.',
          ),
        note: note.nullable(),
      })
      .partial(),
    reply: commissions.schema,
    errors: ['commission_locked', 'invalid_state_transition'],
    async run({ tx, params, body }) {
      const sale = body.amount_minor === undefined ? undefined : await holdSale(tx, params.id);
      const { before } = await underChange(tx, params.id, 'edit');
      if (body.amount_minor !== undefined && body.amount_minor < 0 !== (before.kind === 'clawback')) {
        throw new Problem(
          'invalid_parameter',
          "'amount_minor' must be negative for a clawback, and 0 or more for any other commission.",
          {
            param: 'amount_minor',
          },
        );
      }
      if (body.amount_minor === undefined) return changeCommission(tx, before, body);
      requireState(
        before.kind !== 'sale' || !(await earnsNothing(tx, before, sale)),
        'Nothing is left of the sale that the commission is of. Void the commission, or create a bonus for the partner.',
      );
      const kept = await keptOfEdit(tx, before, sale, body.amount_minor);
      because(tx, 'edited_by_hand');
      return changeCommission(tx, before, { ...body, ...kept, edited_by_hand: true });
    },
  }),
  operation({
    name: 'commissions.approve',
    method: 'POST',
    path: '/v1/commissions/{id}/approve',
    scope: 'commissions:write',
    summary: 'Approves a pending commission.',
    doc: 'It becomes due when its holding period ends.',
    params: idParams,
    reply: commissions.schema,
    errors: ['commission_locked', 'invalid_state_transition'],
    async run({ tx, params }) {
      const { before, status } = await underChange(tx, params.id, 'approve');
      return changeCommission(tx, before, { status, approved_at: tx.now });
    },
  }),
  operation({
    name: 'commissions.reject',
    method: 'POST',
    path: '/v1/commissions/{id}/reject',
    scope: 'commissions:write',
    summary: 'Rejects an unpaid commission.',
    doc: cancelling,
    params: idParams,
    body: z.strictObject({ note: note.optional() }).default({}),
    reply: commissions.schema,
    errors: ['commission_locked', 'invalid_state_transition'],
    async run({ tx, params, body }) {
      return cancel(tx, params.id, 'reject', (before, kept, status) =>
        changeCommission(tx, before, { ...body, ...kept, ...not_on_hold, status }),
      );
    },
  }),
  operation({
    name: 'commissions.void',
    method: 'POST',
    path: '/v1/commissions/{id}/void',
    scope: 'commissions:write',
    summary: 'Voids an unpaid commission.',
    doc: `${cancelling} Void a clawback to forgive it.`,
    params: idParams,
    body: z
      .strictObject({
        reason: text.min(1).max(200).default('voided_by_hand').describe('The `void_reason` of the commission.'),
      })
      .prefault({}),
    reply: commissions.schema,
    errors: ['commission_locked', 'invalid_state_transition'],
    async run({ tx, params, body }) {
      return cancel(tx, params.id, 'void', (before, kept) => voidCommission(tx, before, body.reason, kept));
    },
  }),
  operation({
    name: 'commissions.delete',
    method: 'DELETE',
    path: '/v1/commissions/{id}',
    scope: 'commissions:write',
    summary: 'Deletes an unpaid commission.',
    doc: cancelling,
    params: idParams,
    reply: DeletedMarker,
    errors: ['commission_locked', 'invalid_state_transition'],
    async run({ tx, params }) {
      await cancel(tx, params.id, 'delete', async (commission, kept) => {
        await commissions.update(tx, commission.id, { ...kept, deleted_at: tx.now });
        tx.emit(event('commission.deleted', commission));
      });
      return { id: params.id, object: 'commission', deleted: true as const };
    },
  }),
];

/** The sale that a commission is of, which stays as it is until the change is written: locked before the commission, as refunds do it. */
async function holdSale(tx: Tx, commission_id: string): Promise<Sale | undefined> {
  const { sale_id } = await commissions.get(tx, commission_id);
  if (sale_id === null) return undefined;
  return sales.find(tx, sql`${tenant(tx)} and t.id = ${sale_id}`, lockOf(true));
}

/**
 * Cancels a commission by hand. With one that a sale earned goes what corrects it, which would take back what was not earned; of a correction it is
 * kept what it is measured from.
 * @param write writes what is kept, and what else becomes of the commission
 * @throws Problem commission_locked, invalid_state_transition
 */
async function cancel<Written>(
  tx: Tx,
  commission_id: string,
  action: CommissionAction,
  write: (before: Commission, kept: Values, status: Commission['status']) => Promise<Written>,
): Promise<Written> {
  const sale = await holdSale(tx, commission_id);
  const { before, status } = await underChange(tx, commission_id, action);
  const { kind, sale_id, partner_id } = before;
  const measure = kind === 'sale' ? {} : await keptOfEdit(tx, before, sale, 0);
  because(tx, 'edited_by_hand');
  const written = await write(before, { ...measure, edited_by_hand: true }, status);
  if (kind === 'sale' && sale_id !== null) {
    await takeBackCommissions(tx, { id: sale_id, partner_id }, 'edited_by_hand');
    await followDisputes(tx, sale_id);
  }
  return written;
}

/**
 * The commission, locked, and the status that the action leads to.
 * @throws Problem commission_locked, invalid_state_transition
 */
export async function underChange(tx: Tx, commission_id: string, action: CommissionAction) {
  const before = await commissions.get(tx, commission_id, { lock: true });
  if (before.status !== 'paid' && before.payout_id !== null) {
    throw new Problem(
      'commission_locked',
      `The commission is in the payout ${before.payout_id}. Delete the payout first, or wait until it is paid.`,
    );
  }
  return { before, status: transition(commission_states, before.status, action) };
}

type Bonus = Pick<Commission, 'program_id' | 'partner_id' | 'amount_minor' | 'currency' | 'mature_at'> & {
  note?: string | undefined;
};

/** Creates a bonus for an active partner, whose row the caller has locked, and emits `commission.created`. */
export async function createBonus(tx: Tx, bonus: Bonus): Promise<Commission> {
  const status = statusAt(bonus.mature_at, tx.now);
  const values = { ...bonus, id: newId('com'), kind: 'bonus', status };
  const commission = (await commissions.insert(tx, values)) as Commission;
  tx.emit(event('commission.created', commission));
  return commission;
}
