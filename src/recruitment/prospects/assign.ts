import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { id } from '../../core/values/fields.ts';
import { notFound } from '../../core/values/problem.ts';
import { type Actor, actorOf, nobody } from '../brands/acting.ts';
import { teamMembers } from '../brands/team_member.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import { recordActivity } from './activity.ts';
import { type Prospect, prospects } from './prospect.ts';

/** Makes a member the assignee of a prospect, whose row the caller has locked; null: nobody. */
export async function assign(tx: Tx, prospect: Prospect, member_id: string | null, by: Actor): Promise<Prospect> {
  const { assignee_member_id: previous_member_id } = prospect;
  if (previous_member_id === member_id) return prospect;
  emitAssigned(tx, [{ ...prospect, previous_member_id }], member_id, by);
  return prospects.update(tx, prospect.id, { assignee_member_id: member_id });
}

/** A member whom prospects can be assigned to, and who is not removed before the transaction ends. @throws Problem resource_not_found */
export async function requireMember(tx: Tx, member_id: string | null): Promise<void> {
  if (member_id === null) return;
  const { status } = await teamMembers.get(tx, member_id, { param: 'member_id', lock: 'share' });
  if (status === 'removed') throw notFound('team member', member_id, 'member_id');
}

/**
 * Takes prospects from a member who was removed, at most `most`: "affiliate.assigned, assignee null, by null". None from one who was added again.
 * @returns how many; `most` where there may be more
 */
export async function unassign(tx: Tx, member_id: string, most: number): Promise<number> {
  const { status } = await teamMembers.get(tx, member_id, { lock: 'share' });
  if (status !== 'removed') return 0;
  const unassigned = await tx.all<Pick<Prospect, 'id' | 'brand_id'>>(sql`
    with owned as (
      select t.id from recruitment.prospect t
      where ${tenant(tx)} and t.assignee_member_id = ${member_id}
      order by t.id
      limit ${most}
      for no key update
    ),
    changed as (
      update recruitment.prospect t set assignee_member_id = null, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.id = any(array(select o.id from owned o))
      returning t.id, t.brand_id
    )
    select c.id, c.brand_id from changed c order by c.id`);
  emitAssigned(
    tx,
    unassigned.map((row) => ({ ...row, previous_member_id: member_id })),
    null,
    nobody,
  );
  return unassigned.length;
}

type Reassigned = Pick<Prospect, 'id' | 'brand_id'> & { previous_member_id: string | null };

function emitAssigned(tx: Tx, rows: Reassigned[], assignee_member_id: string | null, by: Actor): void {
  for (const { id: prospect_id, brand_id, previous_member_id } of rows) {
    const members = { assignee_member_id, previous_member_id, by_member_id: by.member_id };
    tx.emit(event('affiliate.assigned', tx.organization_id, { prospect_id, brand_id, ...members }));
  }
  const entries = rows.map(({ id: prospect_id, previous_member_id }) => ({
    ...{ prospect_id, data: { assignee_member_id, previous_member_id } },
  }));
  recordActivity(tx, 'assigned', by, entries);
}

export const assignOperations: Operation[] = [
  operation({
    name: 'prospects.assign',
    method: 'POST',
    path: `${base_path}/prospects/{id}/assign`,
    scope: 'prospects:write',
    summary: 'Makes a team member the assignee of a prospect.',
    doc: 'Emits `affiliate.assigned`, unless the assignee stays the same.',
    params: idParams,
    body: z.strictObject({
      member_id: id('tm').nullable().describe('A team member who was not removed. Null: the prospect has no assignee.'),
    }),
    reply: prospects.schema,
    errors: ['sample_prospect'],
    async run({ tx, params, body, caller }) {
      await requireMember(tx, body.member_id);
      const prospect = await prospects.get(tx, params.id, { lock: true });
      return assign(tx, prospect, body.member_id, await actorOf(tx, caller));
    },
  }),
];
