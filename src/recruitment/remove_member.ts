import { most_at_once } from '../core/jobs/task.ts';
import { DeletedMarker } from '../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { memberToRemove, teamMembers } from './brands/team_member.ts';
import { base_path } from './events/base_path.ts';
import { unassign } from './prospects/assign.ts';

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
      if (member.status !== 'removed') {
        await teamMembers.update(tx, member.id, { removed_at: tx.now });
        if ((await unassign(tx, member.id, most_at_once)) >= most_at_once) {
          const { organization_id, request_id } = tx;
          const job_key = `unassign:${member.id}`;
          tx.enqueue('recruitment/unassign_member', { organization_id, request_id, id: member.id }, { job_key });
        }
      }
      return { id: member.id, object: 'team_member', deleted: true as const };
    },
  }),
];
