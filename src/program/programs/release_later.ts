import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';

/** Has events of a billing processor worked on that waited for ids which are known now, or whose refusal may be gone. */
export const releaseLater = (tx: Tx, program_id: string, external_ids: string[]): void =>
  tx.enqueue('program/release_processor_events', { organization_id: tx.organization_id, program_id, external_ids });

/** The same for events `t` that wait for an id. */
export async function releaseWaiting(tx: Tx, program_id: string, which: Sql): Promise<void> {
  const waiting = await tx.all<{ id: string }>(sql`
    select distinct t.waiting_for as id from program.processor_event t
    where ${tenant(tx)} and t.program_id = ${program_id} and t.waiting_for is not null and ${which}`);
  if (waiting.length > 0)
    releaseLater(
      tx,
      program_id,
      waiting.map(({ id }) => id),
    );
}
