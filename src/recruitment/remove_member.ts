import sql from 'sql-template-tag';
import { most_at_once } from '../core/jobs/task.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import { DeletedMarker } from '../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { memberToRemove, type TeamMember, teamMembers } from './brands/team_member.ts';
import { base_path } from './events/base_path.ts';
import { unassign } from './prospects/assign.ts';

/** Removes a member who is not removed yet, and takes their prospects from them: beyond some hundred, a job does. */
async function removeMember(tx: Tx, member: TeamMember): Promise<void> {
  if (member.status === 'removed') return;
  await teamMembers.update(tx, member.id, { removed_at: tx.now });
  if ((await unassign(tx, member.id, most_at_once)) < most_at_once) return;
  const { organization_id, request_id } = tx;
  const job_key = `unassign:${member.id}`;
  tx.enqueue('recruitment/unassign_member', { organization_id, request_id, id: member.id }, { job_key });
}

/** Removes the member that a user is, who was removed from the organization. */
export async function removeMemberOf(tx: Tx, user_id: string): Promise<void> {
  const member = await teamMembers.find(tx, sql`${tenant(tx)} and t.user_id = ${user_id}`);
  if (member) await removeMember(tx, await teamMembers.get(tx, member.id, { lock: true }));
}

export const removeMemberOperations: Operation[] = [
  operation({
    name: 'team.delete',
    title: 'Remove a team member',
    method: 'DELETE',
    path: `${base_path}/team/{id}`,
    scope: 'team:write',
    summary: 'Removes a person from the team and unassigns their prospects.',
    doc: 'Emits `affiliate.assigned` for each prospect; beyond some hundred, a worker unassigns the others. The owner cannot be removed. The member stays in the list with the status `removed`; API keys of the person stay valid until they are revoked.',
    params: idParams,
    reply: DeletedMarker,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const member = await memberToRemove(tx, params.id);
      await removeMember(tx, member);
      return { id: member.id, object: 'team_member', deleted: true as const };
    },
  }),
];
