import { createOrganization, listOrganizations } from '../../core/access/organization.ts';
import { answer, withStore } from '../command.ts';
import { table } from '../output/table.ts';
import { requireEmail } from './email.ts';

export const createOrg = (options: { name: string; ownerEmail: string; json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const owner_email = requireEmail(options.ownerEmail, '--owner-email');
    const organization = await createOrganization(store.database, { name: options.name, owner_email });
    const next = `Next: npx --no rail key create --organization ${organization.id} --name 'First key'`;
    answer(organization, { json: options.json, lines: [`Created ${organization.id} (${organization.name}).`, next] });
  });

export const listOrgs = ({ json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const organizations = await listOrganizations(store.database);
    const columns = ['ID', 'NAME', 'OWNER', 'CREATED AT'];
    const rows = organizations.map(({ id, name, owner_email, created_at }) => [
      id,
      name,
      owner_email ?? '',
      created_at,
    ]);
    answer(organizations, { json, lines: table(columns, rows, 'There is no organization yet.') });
  });
