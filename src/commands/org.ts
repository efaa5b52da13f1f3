import { createOrganization, listOrganizations } from '../core/access/organization.ts';
import { email } from '../core/values/fields.ts';
import { answer, table, UsageError, withStore } from './command.ts';

export const createOrg = (options: { name: string; ownerEmail: string; json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const owner_email = requireEmail(options.ownerEmail);
    const organization = await createOrganization(store.database, { name: options.name, owner_email });
    const next = `Next: rail key create --org ${organization.id} --name 'First key'`;
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

/** @throws UsageError where mail could not be sent to it */
function requireEmail(address: string): string {
  const { data } = email.safeParse(address);
  if (data !== undefined) return data;
  throw new UsageError(`'${address}' is no email address: give --owner-email one, as in ada@acme.example.com.`);
}
