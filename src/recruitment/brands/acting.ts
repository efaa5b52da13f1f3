import sql from 'sql-template-tag';
import { userOf } from '../../core/access/api_key.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Caller } from '../../core/resource/operation.ts';

/** The actor: the person whose key calls. A key of no person is the API: both are null. */
export interface Actor {
  user_id: string | null;
  member_id: string | null;
}

export const nobody: Actor = { user_id: null, member_id: null };

/** "A plain key is the API. A key made for a user acts as that person." */
export async function actorOf(tx: Tx, caller: Caller): Promise<Actor> {
  const user_id = await userOf(tx, caller);
  if (user_id === null) return nobody;
  const member = await tx.maybe<{ id: string }>(sql`
    select m.id from recruitment.team_member m
    where m.organization_id = ${tx.organization_id} and m.user_id = ${user_id} and m.removed_at is null`);
  return { user_id, member_id: member?.id ?? null };
}
