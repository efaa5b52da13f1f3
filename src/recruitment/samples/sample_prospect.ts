import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { notFound } from '../../core/values/problem.ts';
import type { HiddenReason, Stage } from '../events/fields.ts';
import { sample_brand_id, samples } from './sample.ts';

/** The fields of a sample that an organization can change. */
interface State {
  stage: Stage;
  saved: boolean;
  hidden: boolean;
  hidden_reason: HiddenReason | null;
}

type StoredState = State & { id: string; updated_at: string };

export type SampleProspect = ReturnType<typeof prospectOf>;

/** All of them, as the organization left them. */
export async function readSamples(tx: Tx): Promise<SampleProspect[]> {
  const stored = await tx.all<StoredState>(sql`
    select t.id, t.stage, t.saved, t.hidden, t.hidden_reason, t.updated_at
    from recruitment.sample_prospect t
    where t.organization_id = ${tx.organization_id}`);
  return samples.map((sample) =>
    prospectOf(
      sample,
      stored.find(({ id }) => id === sample.id),
    ),
  );
}

/** @throws Problem resource_not_found */
export async function readSample(tx: Tx, sample_id: string): Promise<SampleProspect> {
  const sample = (await readSamples(tx)).find(({ id }) => id === sample_id);
  if (!sample) throw notFound('sample prospect', sample_id);
  return sample;
}

/** The sample, which nobody else changes until the transaction ends. @throws Problem resource_not_found */
export async function lockSample(tx: Tx, sample_id: string): Promise<SampleProspect> {
  const sample = samples.find(({ id }) => id === sample_id);
  if (!sample) throw notFound('sample prospect', sample_id);
  await tx.all(sql`
    insert into recruitment.sample_prospect (organization_id, id, stage, saved, hidden, updated_at)
    values (${tx.organization_id}, ${sample_id}, ${sample.stage}, false, false, ${tx.now}) on conflict do nothing`);
  await tx.all(sql`
    select from recruitment.sample_prospect t
    where t.organization_id = ${tx.organization_id} and t.id = ${sample_id}
    for no key update`);
  return readSample(tx, sample_id);
}

/** Changes a sample that is locked. @returns it as it is now */
export async function writeSample(tx: Tx, sample: SampleProspect, changes: Partial<State>): Promise<SampleProspect> {
  const after = { ...sample, ...changes, updated_at: tx.now };
  await tx.all(sql`
    update recruitment.sample_prospect t
    set stage = ${after.stage}, saved = ${after.saved}, hidden = ${after.hidden}, hidden_reason = ${after.hidden_reason},
      updated_at = ${tx.now}::timestamptz
    where t.organization_id = ${tx.organization_id} and t.id = ${sample.id}`);
  return after;
}

const made_at = '2026-11-01T08:00:00.000Z';

/** A sample as a record: it has all fields of a prospect. */
function prospectOf(sample: (typeof samples)[number], stored: StoredState | undefined) {
  const { id, stage, ...known } = sample;
  const initial = { id, stage, saved: false, hidden: false, hidden_reason: null, updated_at: made_at };
  const { updated_at, id: _, ...state }: StoredState = stored ?? initial;
  return {
    ...{
      id,
      object: 'prospect' as const,
      brand_id: sample_brand_id,
      ...known,
      evidence: [],
      source: 'sample' as const,
    },
    ...{ source_run_id: null, ...state, assignee_member_id: null, do_not_contact: null, unsubscribed_at: null },
    ...{
      invited_at: null,
      invitation_token: null,
      signed_up_at: null,
      partner_id: null,
      deal_id: null,
      email_status: 'none' as const,
    },
    ...{ custom: {}, created_at: made_at, updated_at },
  };
}
