import { randomBytes } from 'node:crypto';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { requireState } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Actor, actorOf } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import { recordActivity } from './activity.ts';
import { type Prospect, prospects } from './prospect.ts';
import { moveStage } from './stage.ts';

/** Marks a prospect, whose row the caller has locked, as invited. @throws Problem suppressed where they are marked or unsubscribed */
export async function markInvited(tx: Tx, prospect: Prospect, by: Actor): Promise<Prospect> {
  const { id: prospect_id, brand_id, invited_at } = prospect;
  if (invited_at !== null) return prospect;
  if (prospect.do_not_contact !== null || prospect.unsubscribed_at !== null) throw suppressed(prospect);
  tx.emit(event('affiliate.invited', tx.organization_id, { prospect_id, brand_id, by_member_id: by.member_id }));
  recordActivity(tx, 'invited', by, [{ prospect_id }]);
  return prospects.update(tx, prospect_id, { invited_at: tx.now, invitation_token: randomBytes(16).toString('hex') });
}

const suppressed = ({ do_not_contact }: Prospect): Problem =>
  new Problem(
    'suppressed',
    do_not_contact === null
      ? 'The prospect unsubscribed, and cannot be invited.'
      : `The prospect is marked Do not contact (${do_not_contact.reason}), and cannot be invited. Lift the mark first.`,
  );

/**
 * Notes that an invited prospect, whose row the caller has locked, joined the affiliate program.
 * @param source `rail` where their joining was observed
 * @throws Problem invalid_state_transition
 */
export async function signUp(tx: Tx, prospect: Prospect, source: 'manual' | 'rail', by: Actor): Promise<Prospect> {
  const { id: prospect_id, brand_id, invited_at, signed_up_at } = prospect;
  if (signed_up_at !== null) return prospect;
  requireState(invited_at !== null, 'The prospect was never invited. Invite them first.');
  tx.emit(event('affiliate.signed_up', tx.organization_id, { prospect_id, brand_id, source }));
  recordActivity(tx, 'signed_up', by, [{ prospect_id, data: { source } }]);
  const signed_up = await prospects.update(tx, prospect_id, { signed_up_at: tx.now });
  return moveStage(tx, signed_up, { to: 'active', reason: 'signed_up', by });
}

export const signUpOperations: Operation[] = [
  operation({
    name: 'prospects.signed_up',
    title: 'Mark a prospect as signed up',
    method: 'POST',
    path: `${base_path}/prospects/{id}/signed_up`,
    scope: 'prospects:write',
    summary: 'Notes that an invited prospect joined the affiliate program.',
    doc: 'Emits `affiliate.signed_up`, then `affiliate.stage_changed`: the stage is `active` from then on. A prospect who was never invited answers 409.',
    params: idParams,
    reply: prospects.schema,
    errors: ['sample_prospect', 'invalid_state_transition'],
    async run({ tx, params, caller }) {
      const prospect = await prospects.get(tx, params.id, { lock: true });
      return signUp(tx, prospect, 'manual', await actorOf(tx, caller));
    },
  }),
];
