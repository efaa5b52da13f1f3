import { createOrganization, listOrganizations } from '../core/organization.ts';
import { answer, table, withStore } from './command.ts';

export const createOrg = (options: { name: string; ownerEmail: string; json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const made = await createOrganization(store.database, { name: options.name, owner_email: options.ownerEmail });
    const next = `Next: rail key create --org ${made.id} --name 'First key'`;
    answer(made, { json: options.json, lines: [`Created ${made.id} (${made.name}).`, next] });
  });

export const listOrgs = ({ json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const organizations = await listOrganizations(store.database);
    const rows = organizations.map(({ id, name, created_at }) => [id, name, created_at]);
    answer(organizations, { json, lines: table(['ID', 'NAME', 'CREATED AT'], rows, 'There is no organization yet.') });
  });
