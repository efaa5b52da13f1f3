import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Values } from '../../core/postgres/write.ts';
import { type Caller, idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { requireState } from '../../core/values/fields.ts';
import { actorOf } from '../brands/acting.ts';
import { finishCampaigns } from '../campaigns/end.ts';
import { base_path } from '../events/base_path.ts';
import { type ActivityKind, recordActivity } from '../prospects/activity.ts';
import { type Sequence, sequences } from '../sequences/sequence.ts';
import { endSequences } from '../sequences/stop.ts';

export const sequenceOperations: Operation[] = [
  ...readOperations({
    resource: sequences,
    by: ['brand_id', 'campaign_id', 'prospect_id', 'inbox_id', 'state'],
  }),
  operation({
    name: 'sequences.pause',
    method: 'POST',
    path: `${base_path}/sequences/{id}/pause`,
    scope: 'sequences:write',
    summary: 'Pauses a sequence, until it is resumed.',
    doc: 'No email of it is sent meanwhile, except one that is already being sent. A sequence that has ended answers 409.',
    params: idParams,
    reply: sequences.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params, caller }) {
      const sequence = await requireOpen(tx, params.id, 'paused');
      if (sequence.pause_causes.includes('user')) return sequence;
      return change(tx, caller, sequence, 'sequence_paused', { paused_by_user: true });
    },
  }),
  operation({
    name: 'sequences.resume',
    method: 'POST',
    path: `${base_path}/sequences/{id}/resume`,
    scope: 'sequences:write',
    summary:
      'Resumes a sequence that was paused by request, by an automatic reply, or because its first email may not have been sent.',
    doc: 'If its campaign is paused or its inbox is disconnected, the sequence stays paused: `pause_causes` says why. A sequence that has ended answers 409.',
    params: idParams,
    reply: sequences.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params, caller }) {
      const sequence = await requireOpen(tx, params.id, 'resumed');
      if (!sequence.pause_causes.some((cause) => ended_by_resume.includes(cause))) return sequence;
      return change(tx, caller, sequence, 'sequence_resumed', {
        ...{ paused_by_user: false, paused_until: null, is_held: false },
      });
    },
  }),
  operation({
    name: 'sequences.stop',
    method: 'POST',
    path: `${base_path}/sequences/{id}/stop`,
    scope: 'sequences:write',
    summary: 'Stops a sequence for good.',
    doc: 'No further email of it is sent. If it was the last one of its campaign, `campaign.finished` is emitted. A sequence that has ended stays as it is.',
    params: idParams,
    reply: sequences.schema,
    async run({ tx, params, caller }) {
      const sequence = await sequences.get(tx, params.id, { lock: true });
      if (sequence.ended_at !== null) return sequence;
      await endSequences(tx, sql`t.id = ${sequence.id}`, 'stopped');
      const stopped = await change(tx, caller, sequence, 'sequence_stopped', {});
      await finishCampaigns(tx, [sequence.campaign_id]);
      return stopped;
    },
  }),
];

const ended_by_resume: Sequence['pause_causes'] = ['user', 'auto_reply', 'unknown_email'];

async function requireOpen(tx: Tx, sequence_id: string, action: string): Promise<Sequence> {
  const sequence = await sequences.get(tx, sequence_id, { lock: true });
  requireState(
    sequence.ended_at === null,
    `The sequence has ended with the state '${sequence.state}' and cannot be ${action}. Add the prospect to another campaign to write again.`,
  );
  return sequence;
}

async function change(
  tx: Tx,
  caller: Caller,
  { id: sequence_id, prospect_id }: Sequence,
  kind: ActivityKind,
  values: Values,
): Promise<Sequence> {
  const by = await actorOf(tx, caller);
  if (prospect_id !== null) recordActivity(tx, kind, by, [{ prospect_id, data: { sequence_id } }]);
  return sequences.update(tx, sequence_id, values);
}
