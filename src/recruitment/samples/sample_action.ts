/** Actions on a sample: each emits a real event in test mode, which only test endpoints receive. */
import type { EventDraft, Tx } from '../../core/postgres/transaction.ts';
import { newId } from '../../core/values/id.ts';
import type { Actor } from '../brands/acting.ts';
import { event } from '../events/event.ts';
import type { HiddenReason, Stage } from '../events/fields.ts';
import { lockSample, type SampleProspect, writeSample } from './sample_prospect.ts';

const emitTest = (tx: Tx, draft: EventDraft): void => tx.emit({ ...draft, livemode: false });

export async function saveSample(tx: Tx, sample_id: string): Promise<SampleProspect> {
  const sample = await lockSample(tx, sample_id);
  if (sample.saved) return sample;
  const { id: prospect_id, channel, key } = sample;
  emitTest(tx, event('affiliate.saved', tx.organization_id, { prospect_id, channel, key, list_id: null }));
  return writeSample(tx, sample, { saved: true });
}

export async function hideSample(tx: Tx, sample_id: string, reason: HiddenReason): Promise<SampleProspect> {
  const sample = await lockSample(tx, sample_id);
  if (sample.hidden_reason === reason) return sample;
  emitTest(tx, event('affiliate.hidden', tx.organization_id, { prospect_id: sample.id, reason }));
  return writeSample(tx, sample, { hidden: true, hidden_reason: reason });
}

export async function moveSample(tx: Tx, sample_id: string, to: Stage, { user_id }: Actor): Promise<SampleProspect> {
  const sample = await lockSample(tx, sample_id);
  if (sample.stage === to) return sample;
  const moved = { prospect_id: sample.id, from: sample.stage, to, by_user_id: user_id, reason: 'manual' as const };
  emitTest(tx, event('affiliate.stage_changed', tx.organization_id, moved));
  return writeSample(tx, sample, { stage: to });
}

/** Adds a note, which is not kept. @returns its id */
export async function noteSample(tx: Tx, sample_id: string, { member_id }: Actor): Promise<string> {
  const { id: prospect_id, brand_id } = await lockSample(tx, sample_id);
  const note_id = newId('fcn');
  emitTest(
    tx,
    event('note.added', tx.organization_id, { prospect_id, brand_id, note_id, author_member_id: member_id }),
  );
  return note_id;
}
