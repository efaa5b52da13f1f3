import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { statusSchema } from '../../core/resource/states.ts';
import { text } from '../../core/values/fields.ts';
import { type Actor, actorOf } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import type { Stage } from '../events/fields.ts';
import { stages } from '../events/stages.ts';
import { isSample } from '../samples/sample.ts';
import { moveSample } from '../samples/sample_action.ts';
import { stopSequences } from '../sequences/stop.ts';
import { recordActivity } from './activity.ts';
import { type Prospect, prospects, requireLiveKey } from './prospect.ts';

/** The cause of a move. People's own words stay in the activity. */
export type StageReason =
  | 'manual'
  | 'message_sent'
  | 'reply_received'
  | 'unsubscribed'
  | 'deal_created'
  | 'deal_agreed'
  | 'activated'
  | 'signed_up';

interface Move {
  to: Stage;
  reason: StageReason;
  /** Nobody where outreach moves it. */
  by: Actor;
  /** The note of whoever moved it. */
  words?: string | undefined;
}

/** In these nobody is sent emails of campaigns: moving a prospect there stops their sequences. */
const stages_without_outreach: Stage[] = ['negotiating', 'agreed', 'active', 'lost'];

/** Moves a prospect, whose row the caller has locked. A prospect that is there already emits nothing. @returns it as it is now */
export async function moveStage(tx: Tx, prospect: Prospect, { to, reason, by, words }: Move): Promise<Prospect> {
  const { id: prospect_id, stage: from } = prospect;
  if (stages_without_outreach.includes(to)) await stopSequences(tx, [prospect_id]);
  if (from === to) return prospect;
  tx.emit(
    event('affiliate.stage_changed', tx.organization_id, { prospect_id, from, to, by_user_id: by.user_id, reason }),
  );
  const data = { from, to, reason, ...(words === undefined ? {} : { text: words }) };
  recordActivity(tx, 'stage_changed', by, [{ prospect_id, data }]);
  return prospects.update(tx, prospect_id, { stage: to });
}

export const words = text.min(1).max(500).optional();

export const stageOperations: Operation[] = [
  operation({
    name: 'prospects.move',
    method: 'POST',
    path: `${base_path}/prospects/{id}/move`,
    scope: 'prospects:write',
    summary: 'Moves a prospect to another stage of the pipeline.',
    doc: 'A person can move a prospect to any stage. Emits `affiliate.stage_changed`, unless the prospect is in this stage already.',
    params: idParams,
    body: z.strictObject({
      stage: statusSchema(stages),
      reason: words.describe('Why, in your own words. It is shown in the activity, and never included in an event.'),
    }),
    reply: prospects.schema,
    test_keys: true,
    errors: ['test_key_not_allowed'],
    async run({ tx, params, body, caller }) {
      const by = await actorOf(tx, caller);
      if (isSample(params.id)) return moveSample(tx, params.id, body.stage, by);
      requireLiveKey(caller);
      const prospect = await prospects.get(tx, params.id, { lock: true });
      return moveStage(tx, prospect, { to: body.stage, reason: 'manual', by, words: body.reason });
    },
  }),
];
