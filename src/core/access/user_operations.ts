import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../postgres/transaction.ts';
import { DeletedMarker } from '../resource/deleted_marker.ts';
import { type Caller, idParams, type Operation, operation, readOperations } from '../resource/operation.ts';
import { tenant } from '../resource/resource.ts';
import { email, enumOf, oneLine, requireState } from '../values/fields.ts';
import { newId } from '../values/id.ts';
import { alreadyExists, Problem } from '../values/problem.ts';
import { userOf } from './api_key.ts';
import { role, user_statuses, users } from './user.ts';

type User = z.infer<typeof users.record>;

const name = oneLine(200).nullable().describe('The name of the person.');

export const userOperations: Operation[] = [
  ...readOperations({
    resource: users,
    by: ['role', 'email'],
    filters: {
      status: {
        schema: enumOf(user_statuses).optional(),
        where: (value: string) => sql`(${users.computed?.status}) = ${value}`,
      },
    },
    list_doc: 'Includes people who were removed, so that the ids in records and in the audit log can be resolved.',
  }),
  operation({
    name: 'users.create',
    method: 'POST',
    path: '/v1/users',
    scope: 'users:write',
    summary: 'Adds a person to the organization.',
    doc: 'A person who was removed is added again with the same id. No email is sent, and no key is created. The person can sign in to the dashboard at `/dashboard`, where the role says what they may do; a key that the operator creates for them with `npx --no rail key create --user` may do what its scopes say. Only a key of an owner, or of no user, can add owners. In the recruitment service, the person is a team member at once.',
    body: z.strictObject({ email, name: name.optional(), role: role.default('member') }),
    reply: users.schema,
    status: 201,
    errors: ['resource_already_exists', 'key_not_allowed'],
    async run({ tx, body, caller }) {
      await lockOwners(tx);
      if (body.role === 'owner') await requireOwner(tx, caller);
      const known = await users.find(tx, sql`${tenant(tx)} and lower(t.email) = lower(${body.email})`);
      if (known?.status === 'active')
        throw alreadyExists('email', 'A user with this email address already exists.', known);
      if (!known) return (await users.insert(tx, { id: newId('usr'), name: null, ...body })) as User;
      const { name: new_name = known.name, role: new_role } = body;
      return users.update(tx, known.id, { removed_at: null, name: new_name, role: new_role });
    },
  }),
  operation({
    name: 'users.update',
    method: 'PATCH',
    path: '/v1/users/{id}',
    scope: 'users:write',
    summary: 'Updates the name or the role of a person.',
    doc: 'The last owner keeps the role. Only a key of an owner, or of no user, can change who is an owner.',
    params: idParams,
    body: z.strictObject({ name, role }).partial(),
    reply: users.schema,
    errors: ['invalid_state_transition', 'key_not_allowed'],
    async run({ tx, params, body, caller }) {
      const owners = await lockOwners(tx);
      const user = await users.get(tx, params.id, { lock: true });
      requireState(user.status === 'active', 'The person was removed. Add them again first.');
      if (body.role !== undefined && body.role !== user.role) {
        await requireOwner(tx, caller);
        requireAnotherOwner(user, owners, 'keeps the role');
      }
      return users.update(tx, user.id, body);
    },
  }),
  operation({
    name: 'users.delete',
    method: 'DELETE',
    path: '/v1/users/{id}',
    scope: 'users:write',
    summary: 'Removes a person from the organization and revokes their API keys.',
    doc: 'The keys are refused within a second. The last owner cannot be removed. The person stays in the list with the status `removed`, and is removed from the recruitment team too.',
    params: idParams,
    reply: DeletedMarker,
    errors: ['invalid_state_transition', 'key_not_allowed'],
    async run({ tx, params, caller }) {
      const owners = await lockOwners(tx);
      const user = await users.get(tx, params.id, { lock: true });
      if (user.status === 'active') {
        if (user.role === 'owner') await requireOwner(tx, caller);
        requireAnotherOwner(user, owners, 'cannot be removed');
        await removeUser(tx, user.id);
      }
      return { id: user.id, object: 'user', deleted: true as const };
    },
  }),
];

/**
 * Removes a person with their keys, their sessions and the app that makes their codes: one who is added again signs in again, and sets one up. What they
 * are in products ends by a job.
 */
export async function removeUser(tx: Tx, user_id: string): Promise<void> {
  await users.update(tx, user_id, { removed_at: tx.now });
  await tx.all(sql`
    update core.api_key t set revoked_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.user_id = ${user_id} and t.revoked_at is null`);
  await tx.all(sql`
    update core.session t set revoked_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.user_id = ${user_id} and t.revoked_at is null`);
  const { organization_id, request_id } = tx;
  tx.enqueue('core/remove_user', { organization_id, request_id, user_id }, { job_key: `remove_user:${user_id}` });
}

/** Locks the owners: who adds, changes or removes people of an organization waits for whoever does so already. @returns their ids */
async function lockOwners(tx: Tx): Promise<string[]> {
  const owners = await tx.all<{ id: string }>(sql`
    select t.id from ${users.from}
    where ${tenant(tx)} and t.role = 'owner' and t.removed_at is null order by t.id for no key update of t`);
  return owners.map(({ id }) => id);
}

function requireAnotherOwner({ id, role }: User, owners: string[], what: string): void {
  const is_last = role === 'owner' && owners.every((owner) => owner === id);
  requireState(!is_last, `The last owner ${what}. Make another person an owner first.`);
}

/** @throws Problem key_not_allowed for a key of a user who is no owner */
async function requireOwner(tx: Tx, caller: Caller): Promise<void> {
  // The command line has no key.
  const user_id = caller.api_key_id === '' ? null : await userOf(tx, caller);
  if (user_id === null || (await users.get(tx, user_id)).role === 'owner') return;
  throw new Problem(
    'key_not_allowed',
    'The key of this request belongs to a user who is no owner. Use the key of one.',
    {
      param: 'role',
    },
  );
}
