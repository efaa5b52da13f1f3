import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { middlePartner, no_end, type Sums } from './selection.ts';

/** Partners of a batch: all of them (0), or one of two halves (1, 2). */
export interface RangeKey {
  batch_id: string;
  number: number;
}

/** A range as its generation sees it, with what its batch says. */
export interface Range extends RangeKey, Omit<Sums, 'payouts'> {
  program_id: string;
  cutoff: string;
  due_at: string;
  approval_required: boolean;
  last_partner_id: string;
  up_to_partner_id: string;
}

/** A batch of fewer commissions is not split. */
const least_split = 1_000;

/**
 * Splits a batch that is to be generated into ranges, once.
 * @returns the ranges; none where there is nothing to generate
 */
export async function splitBatch(tx: Tx, batch_id: string): Promise<RangeKey[]> {
  const batch = await tx.maybe<{ program_id: string; last_partner_id: string }>(sql`
    select t.program_id, t.last_partner_id
    from program.payout_batch t
    where ${tenant(tx)} and t.id = ${batch_id} and t.stage = 'generating' and t.deleted_at is null
    for no key update`);
  if (!batch) return [];
  const existing = await tx.all<RangeKey>(sql`
    select t.batch_id, t.number from program.payout_batch_range t where ${tenant(tx)} and t.batch_id = ${batch_id} order by t.number`);
  return existing.length > 0 ? existing : insertRanges(tx, batch_id, batch);
}

async function insertRanges(
  tx: Tx,
  batch_id: string,
  { program_id, last_partner_id }: { program_id: string; last_partner_id: string },
): Promise<RangeKey[]> {
  await tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${`payout batches of ${program_id}`}, 0))`);
  const middle =
    (await middleOfOthers(tx, program_id)) ??
    (await middlePartner(tx, { program_id }, { after: last_partner_id, least: least_split }));
  const ranges =
    middle === undefined
      ? [{ number: 0, after: last_partner_id, up_to: no_end }]
      : [
          { number: 1, after: last_partner_id, up_to: middle },
          { number: 2, after: middle > last_partner_id ? middle : last_partner_id, up_to: no_end },
        ];
  return tx.all<RangeKey>(sql`
    insert into program.payout_batch_range as t (organization_id, batch_id, number, last_partner_id, up_to_partner_id)
    select ${tx.organization_id}, ${batch_id}, r.number, r.after, r.up_to
    from json_to_recordset(${JSON.stringify(ranges)}::json) as r (number smallint, after text, up_to text)
    returning t.batch_id, t.number`);
}

/** Batches of a program that are generated at the same time are split at the same partner, so that their halves can take turns. */
async function middleOfOthers(tx: Tx, program_id: string): Promise<string | undefined> {
  const first = await tx.maybe<{ middle: string }>(sql`
    select r.up_to_partner_id as middle
    from program.payout_batch t
    join program.payout_batch_range r on r.organization_id = t.organization_id and r.batch_id = t.id and r.number = 1
    where ${tenant(tx)} and t.program_id = ${program_id} and t.stage = 'generating' and t.deleted_at is null
    limit 1`);
  return first?.middle;
}

/**
 * Locks a range for a step. Batches of a program take turns in each half of the partners, a step each.
 * @returns undefined where the range is done
 */
export async function lockRange(tx: Tx, { batch_id, number }: RangeKey): Promise<Range | undefined> {
  const range = await tx.maybe<Range>(sql`
    select t.batch_id, t.number, t.last_partner_id, t.up_to_partner_id, t.amounts, t.not_eligible,
      b.program_id, b.cutoff, b.due_at, b.approval_required
    from program.payout_batch_range t
    join program.payout_batch b on b.organization_id = t.organization_id and b.id = t.batch_id
    where ${tenant(tx)} and t.batch_id = ${batch_id} and t.number = ${number} and not t.is_done
      and b.stage = 'generating' and b.deleted_at is null
    for no key update of t`);
  if (!range) return undefined;
  for (const half of range.number === 0 ? [1, 2] : [range.number]) {
    const lock = `payout batches of ${range.program_id}, half ${half}`;
    await tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${lock}, 0))`);
  }
  return range;
}

/** Writes how far a range is, and what it came to so far. */
export async function noteRange(
  tx: Tx,
  { batch_id, number }: RangeKey,
  noted: Sums & { partners: number; last_partner_id: string; is_done: boolean },
): Promise<void> {
  await tx.all(sql`
    update program.payout_batch_range t
    set last_partner_id = ${noted.last_partner_id}, is_done = ${noted.is_done},
      partners_looked_at = t.partners_looked_at + ${noted.partners}, payouts = t.payouts + ${noted.payouts},
      amounts = ${JSON.stringify(noted.amounts)}, not_eligible = ${JSON.stringify(noted.not_eligible)}
    where ${tenant(tx)} and t.batch_id = ${batch_id} and t.number = ${number}`);
}

/**
 * "`generating` → `awaiting_approval` (where the program demands it) → `ready`"; a batch without payouts is completed at once.
 * @throws Error where a range is not done
 */
export async function finishBatch(tx: Tx, batch_id: string): Promise<void> {
  const batch = await tx.maybe<{ is_done: boolean }>(sql`
    select not exists (
      select from program.payout_batch_range r
      where r.organization_id = t.organization_id and r.batch_id = t.id and not r.is_done
    ) as is_done
    from program.payout_batch t
    where ${tenant(tx)} and t.id = ${batch_id} and t.stage = 'generating' and t.deleted_at is null
    for no key update of t`);
  if (!batch) return;
  if (!batch.is_done) throw new Error(`Not all ranges of the batch ${batch_id} are done.`);
  await tx.all(sql`
    update program.payout_batch t
    set partners_looked_at = s.partners_looked_at, payouts = s.payouts, amounts = s.amounts, not_eligible = s.not_eligible,
      stage = case when t.approval_required and s.payouts > 0 then 'awaiting_approval' else 'ready' end,
      generated_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    from program.payout_batch b
    cross join lateral program.payout_batch_sums(b) s
    where ${tenant(tx)} and t.id = ${batch_id} and b.organization_id = t.organization_id and b.id = t.id`);
  await tx.all(sql`delete from program.payout_batch_range t where ${tenant(tx)} and t.batch_id = ${batch_id}`);
}
