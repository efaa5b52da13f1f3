import sql from 'sql-template-tag';
import { createUser, listUsers, type User } from '../../core/access/user.ts';
import { userOperations } from '../../core/access/user_operations.ts';
import { run } from '../../core/postgres/database.ts';
import type { Operation } from '../../core/resource/operation.ts';
import { choose } from '../chosen.ts';
import { answer, type Opened, UsageError, warnWithoutWorker, withStore } from '../command.ts';
import { table } from '../output/table.ts';
import { callOperation } from '../recruitment/call.ts';
import { requireEmail } from './email.ts';

interface NewUserOptions {
  organization?: string;
  email: string;
  name?: string;
  json?: boolean;
}

export const createOrgUser = (options: NewUserOptions): Promise<void> =>
  withStore(async (opened) => {
    const { id: organization_id } = await choose(opened, 'organization', options.organization);
    const user = await createUser(opened.store.database, {
      organization_id,
      email: requireEmail(options.email, '--email'),
      name: options.name ?? null,
    });
    const next = `Next: npx --no rail key create --organization ${user.organization_id} --user ${user.id} --name '${user.name ?? user.email}'`;
    answer(user, { json: options.json, lines: [`Created ${user.id} (${user.email}).`, next] });
  });

interface UserOptions {
  name?: string;
  role?: 'owner' | 'member';
  json?: boolean;
}

/** @throws UsageError where nothing is to be changed */
export async function updateOrgUser(id: string, { name, role, json }: UserOptions): Promise<void> {
  if (name === undefined && role === undefined) throw new UsageError('Say what to change. Example: --role owner.');
  await withStore(async (opened) => {
    const body = { ...(name === undefined ? {} : { name }), ...(role === undefined ? {} : { role }) };
    const user = await callOnUser<User>(opened, id, 'update', body);
    answer(user, { json, lines: [`Updated ${user.id} (${user.email}): ${user.role}.`] });
  });
}

export const removeOrgUser = (id: string, { json }: { json?: boolean }): Promise<void> =>
  withStore(async (opened) => {
    const removed = await callOnUser(opened, id, 'delete');
    answer(removed, { json, lines: [`Removed ${id}, and revoked their keys.`] });
    await warnWithoutWorker(opened.store, 'the person stays in the recruitment team');
  });

/** Does what the API does to a user. */
async function callOnUser<Reply extends object>(
  opened: Opened,
  id: string,
  verb: 'update' | 'delete',
  body: object = {},
): Promise<Reply> {
  const [found] = await run<{ organization_id: string }>(
    opened.store.database,
    sql`select organization_id from core.user_account where id = ${id}`,
  );
  if (!found) throw new Error(`There is no user '${id}': 'npx --no rail user list' shows them.`);
  const operation = userOperations.find(({ name }) => name === `users.${verb}`) as Operation;
  return callOperation<Reply>(opened, found.organization_id, operation, { params: { id }, body });
}

export const listOrgUsers = ({ organization, json }: { organization?: string; json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const users = await listUsers(store.database, organization);
    const columns = ['ID', 'ORGANIZATION', 'EMAIL', 'NAME', 'ROLE', 'STATE', 'CREATED AT'];
    const rows = users.map(({ id, organization_id, email, name, role, status, created_at }) => [
      ...[id, organization_id, email, name ?? '', role, status, created_at],
    ]);
    answer(users, { json, lines: table(columns, rows, 'There is no user.') });
  });
