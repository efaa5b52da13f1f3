import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { DeletedMarker } from '../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { memberToRemove, teamMembers } from './brands/team_member.ts';
import { base_path } from './events/base_path.ts';
import { event } from './events/event.ts';

export const removeMemberOperations: Operation[] = [
  operation({
    name: 'team.delete',
    title: 'Remove a team member',
    method: 'DELETE',
    path: `${base_path}/team/{id}`,
    scope: 'team:write',
    summary: 'Removes a person from the team and unassigns their prospects.',
    doc: 'Emits `affiliate.assigned` for each prospect. The owner cannot be removed. The member stays in the list with the status `removed`; API keys of the person stay valid until they are revoked.',
    params: idParams,
    reply: DeletedMarker,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const member = await memberToRemove(tx, params.id);
      if (member.status !== 'removed') {
        await teamMembers.update(tx, member.id, { removed_at: tx.now });
        await unassign(tx, member.id);
      }
      return { id: member.id, object: 'team_member', deleted: true as const };
    },
  }),
];

/** "Deleting unassigns (`affiliate.assigned`, assignee null, by null)." Who assigns locks the member's row, so that nothing is assigned meanwhile. */
async function unassign(tx: Tx, member_id: string): Promise<void> {
  const prospects = await tx.all<{ prospect_id: string; brand_id: string }>(sql`
    with unassigned as (
      update recruitment.prospect p set assignee_member_id = null, updated_at = ${tx.now}::timestamptz
      where p.organization_id = ${tx.organization_id} and p.assignee_member_id = ${member_id}
      returning p.id, p.brand_id
    )
    select u.id as prospect_id, u.brand_id from unassigned u order by u.id`);
  for (const prospect of prospects) {
    tx.emit(
      event('affiliate.assigned', tx.organization_id, {
        ...prospect,
        ...{ assignee_member_id: null, previous_member_id: member_id, by_member_id: null },
      }),
    );
  }
}
