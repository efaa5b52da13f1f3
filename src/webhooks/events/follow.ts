/** Reads the events of one product for another: in the strict sequence, from a position on. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';

export interface FollowedEvent {
  position: number;
  created_at: string;
  data: Record<string, unknown>;
}

interface Followed {
  subject_id: string;
  types: string[];
  /** The last position that was read before. */
  after: number;
  most: number;
}

/**
 * The next events of a subject, of these types. No event is given before all that precede it are visible, so that who goes on from the
 * position of the last one misses none, and reads none twice.
 */
export async function nextEvents(tx: Tx, { subject_id, types, after, most }: Followed): Promise<FollowedEvent[]> {
  const complete = await tx.one<{ position: number }>(
    sql`select webhooks.complete_position(${tx.organization_id}) as position`,
  );
  return tx.all<FollowedEvent>(sql`
    select t.position, t.created_at, t.body::json -> 'data' as data
    from webhooks.event t
    where ${tenant(tx)} and t.program_id = ${subject_id} and t.type = any(${types})
      and t.position > ${after} and t.position <= ${complete.position}
    order by t.position
    limit ${most}`);
}
