import { createUser, listUsers } from '../../core/access/user.ts';
import { choose } from '../chosen.ts';
import { answer, withStore } from '../command.ts';
import { table } from '../output/table.ts';
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

export const listOrgUsers = ({ organization, json }: { organization?: string; json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const users = await listUsers(store.database, organization);
    const columns = ['ID', 'ORGANIZATION', 'EMAIL', 'NAME', 'ROLE', 'CREATED AT'];
    const rows = users.map(({ id, organization_id, email, name, role, created_at }) => [
      ...[id, organization_id, email, name ?? '', role, created_at],
    ]);
    answer(users, { json, lines: table(columns, rows, 'There is no user.') });
  });
