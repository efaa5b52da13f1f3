import { z } from 'zod';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { requireState, text } from '../../core/values/fields.ts';
import { changeCommission, commissions } from './commission.ts';
import { underChange } from './commission_change.ts';
import { by_dispute, isDisputed, releaseCommission } from './disputed.ts';

/** Commissions that are not paid for now. `commission.updated` tells it. */
export const commissionHoldOperations: Operation[] = [
  operation({
    name: 'commissions.hold',
    title: 'Put a commission on hold',
    method: 'POST',
    path: '/v1/commissions/{id}/hold',
    scope: 'commissions:write',
    summary: 'Puts an unpaid commission on hold: it is not paid until it is released.',
    doc: 'Its `mature_at` stays. It can still be edited, rejected, voided and deleted, and refunds and corrections of its sale change it. A clawback cannot be put on hold: void it to forgive it.',
    params: idParams,
    body: z
      .strictObject({
        reason: text
          .trim()
          .min(1)
          .max(200)
          .refine(
            (reason) => reason !== by_dispute,
            `'${by_dispute}' is the reason of open disputes. Open a dispute of the sale instead.`,
          )
          .default('held_by_hand')
          .describe('The `hold_reason` of the commission, which the partner can read.'),
      })
      .prefault({}),
    reply: commissions.schema,
    errors: ['commission_locked', 'invalid_state_transition'],
    async run({ tx, params, body }) {
      const { before, status } = await underChange(tx, params.id, 'hold');
      requireState(before.kind !== 'clawback', 'A clawback cannot be put on hold. Void it to forgive it.');
      return changeCommission(tx, before, { status, hold_reason: body.reason, held_at: tx.now });
    },
  }),
  operation({
    name: 'commissions.release',
    title: 'Release a commission',
    method: 'POST',
    path: '/v1/commissions/{id}/release',
    scope: 'commissions:write',
    summary: 'Releases a commission that is on hold.',
    doc: 'It is `due` if its holding period is over, and else what it was before. While a dispute of its sale is open, it is refused: close the dispute first.',
    params: idParams,
    reply: commissions.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const { before } = await underChange(tx, params.id, 'release');
      requireState(
        before.sale_id === null || !(await isDisputed(tx, before.sale_id)),
        before.hold_reason === by_dispute
          ? 'A dispute of its sale is open. Close the dispute, and the commission is released.'
          : 'A dispute of its sale is open. Close the dispute first.',
      );
      return releaseCommission(tx, before);
    },
  }),
];
