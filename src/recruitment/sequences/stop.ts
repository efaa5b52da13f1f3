import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';

/** The ends of sequences that have not failed. */
export type End = 'completed' | 'replied' | 'bounced' | 'unsubscribed' | 'stopped';

/**
 * Ends all open sequences of prospects, silently: "These stop all open sequences of a prospect, silently: hide, do not contact, a reply, a
 * deal made, signed up, activated, erased, the stages negotiating, agreed, active, lost." Waits for a message that is being claimed, and once
 * this has committed no message of theirs begins to be sent.
 */
export const stopSequences = (tx: Tx, prospect_ids: string[], end: End = 'stopped'): Promise<string[]> =>
  prospect_ids.length === 0 ? Promise.resolve([]) : endSequences(tx, sql`t.prospect_id = any(${prospect_ids})`, end);

/**
 * Ends the open sequences that a condition on `t` names, in the order of their ids, each by `end` of `t`.
 * @param most null: all
 * @returns their ids
 */
export async function endSequences(tx: Tx, where: Sql, end: End | Sql, most: number | null = null): Promise<string[]> {
  const ended = await tx.all<{ id: string }>(sql`
    with open as materialized (
      select t.id from recruitment.sequence t
      where ${tenant(tx)} and t.open and ${where}
      order by t.id
      limit ${most}::integer
      for no key update
    ), ended as (
      update recruitment.sequence t
      set state = ${end}, ended_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.id = any(array(select open.id from open))
      returning t.id
    ), cancelled as (
      update recruitment.message t set state = 'cancelled', updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.sequence_id = any(array(select open.id from open)) and t.purpose = 'sequence' and t.state = 'planned'
    )
    select e.id from ended e`);
  return ended.map(({ id }) => id);
}

/** Ends these sequences, each in its own way. */
export async function endEach(tx: Tx, sequences: { id: string; end: End }[]): Promise<void> {
  for (const [end, those] of Map.groupBy(sequences, (one) => one.end))
    await endSequences(tx, sql`t.id = any(${those.map(({ id }) => id)})`, end);
}
