import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import {
  documentedEnum,
  email,
  enumOf,
  id,
  objectName,
  oneLine,
  requireState,
  text,
  timestamp,
} from '../../core/values/fields.ts';
import { alreadyExists } from '../../core/values/problem.ts';
import { base_path } from '../events/base_path.ts';
import { requireRoom } from '../plan/plan.ts';

const statuses = {
  invited: 'the person has no API key of their own yet',
  active: 'the person has an API key of their own',
  removed: 'the person was removed from the team',
} as const;
const status = sql`
  case
    when t.removed_at is not null then 'removed'
    when exists (select from core.api_key k where k.organization_id = t.organization_id and k.user_id = t.user_id) then 'active'
    else 'invited'
  end`;

export const teamMembers = resource({
  object: 'team_member',
  plural: 'team',
  listed_as: 'team members',
  base_path,
  table: 'recruitment.team_member',
  unique: { team_member_user_unique: 'email' },
  doc: 'A person who recruits affiliates. Prospects are assigned to team members.',
  fields: {
    id: id('tm'),
    object: objectName('team_member'),
    user_id: id('usr').describe('The user. Events name the member or the user.'),
    name: text.nullable().describe('The name of the person. Null if not provided.'),
    email: text.describe('The email address of the person.'),
    role: z
      .enum(['owner', 'admin', 'member', 'viewer'])
      .describe("The person's role in the team. What a request may do depends on the scopes of its key."),
    status: documentedEnum(statuses),
    created_at: timestamp,
    updated_at: timestamp,
  },
  computed: { status },
});

export type TeamMember = z.infer<typeof teamMembers.record>;

const name = oneLine(200).nullable();
const role = z.enum(['admin', 'member', 'viewer']);
const owner_stays = "The owner of the organization cannot be removed, and keeps the role 'owner'.";

export const teamOperations: Operation[] = [
  ...readOperations({
    resource: teamMembers,
    by: ['role', 'user_id'],
    filters: {
      status: {
        schema: enumOf(statuses).optional(),
        where: (value: string): Sql => sql`(${status}) = ${value}`,
      },
    },
    list_doc: 'Includes members who were removed, so that the ids in events can be resolved.',
  }),
  operation({
    name: 'team.create',
    title: 'Add a team member',
    method: 'POST',
    path: `${base_path}/team`,
    scope: 'team:write',
    summary: 'Adds a person to the team.',
    doc: 'A person who was removed is added again with the same id. No email is sent; create an API key for the user with `npx --no rail key create --user`.',
    body: z.strictObject({ email, name: name.optional(), role: role.default('member') }),
    reply: teamMembers.schema,
    status: 201,
    errors: ['plan_limit_reached', 'resource_already_exists'],
    async run({ tx, body }) {
      await requireRoom(tx, 'seats', countMembers);
      const known = await teamMembers.find(tx, sql`${tenant(tx)} and lower(t.email) = lower(${body.email})`);
      if (known && known.status !== 'removed') {
        throw alreadyExists('email', 'A team member with this email address already exists.', known);
      }
      const member_id = known?.id ?? (await addMember(tx, body.email));
      return teamMembers.update(tx, member_id, {
        ...{ role: body.role, removed_at: null },
        ...(body.name === undefined ? {} : { name: body.name }),
      });
    },
  }),
  operation({
    name: 'team.update',
    title: 'Update a team member',
    method: 'PATCH',
    path: `${base_path}/team/{id}`,
    scope: 'team:write',
    summary: 'Updates the name or role of a team member.',
    doc: 'The role of the owner cannot be changed.',
    params: idParams,
    body: z.strictObject({ name, role }).partial(),
    reply: teamMembers.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params, body }) {
      const member = await teamMembers.get(tx, params.id, { lock: true });
      requireState(member.role !== 'owner' || body.role === undefined, owner_stays);
      requireState(member.status !== 'removed', 'The team member was removed. Add them again first.');
      return teamMembers.update(tx, params.id, body);
    },
  }),
];

/** Locks a member who is to be removed. @throws Problem invalid_state_transition for the owner */
export async function memberToRemove(tx: Tx, member_id: string): Promise<TeamMember> {
  const member = await teamMembers.get(tx, member_id, { lock: true });
  requireState(member.role !== 'owner', owner_stays);
  return member;
}

/** Adds a user, who is a member at once (sql/live/recruitment/team.sql), or finds the user with this address. @returns the member's id */
async function addMember(tx: Tx, address: string): Promise<string> {
  const { id } = await tx.one<{ id: string }>(sql`select recruitment.member_with_email(${address}) as id`);
  return id;
}

const countMembers = (tx: Tx) =>
  tx.one<{ count: number }>(
    sql`select count(*)::integer as count from ${teamMembers.from} where ${tenant(tx)} and t.removed_at is null`,
  );
