import sql from 'sql-template-tag';
import { type Database, run } from '../postgres/database.ts';
import type { Tx } from '../postgres/transaction.ts';
import { email } from '../values/fields.ts';
import { newId } from '../values/id.ts';

export interface Organization {
  id: string;
  name: string;
  /** The address that mail about the organization goes to. */
  owner_email: string | null;
  created_at: string;
}

/** The email address of the first owner of the organization `o`. */
const first_owner_email = sql`(
  select u.email from core.user_account u where u.organization_id = o.id and u.role = 'owner' and u.removed_at is null order by u.id limit 1
)`;

/** Creates a tenant, with the person who is emailed when something is wrong. */
export async function createOrganization(
  database: Database,
  { name, owner_email }: { name: string; owner_email: string },
): Promise<Organization> {
  const [organization] = await run<Organization>(
    database,
    sql`
      with organization as (
        insert into core.organization (id, name) values (${newId('org')}, ${name}) returning id, name, created_at
      ),
      owner as (
        insert into core.user_account (organization_id, id, email, role)
        select o.id, ${newId('usr')}, ${owner_email}, 'owner' from organization o
      )
      select id, name, ${owner_email} as owner_email, created_at from organization`,
  );
  return organization as Organization;
}

export const listOrganizations = (database: Database): Promise<Organization[]> =>
  run(
    database,
    sql`select o.id, o.name, ${first_owner_email} as owner_email, o.created_at from core.organization o order by o.id`,
  );

/** The email address of an organization's owner; null where it is not valid. Only for transactions of the whole service. */
export async function ownerEmail(tx: Tx, organization_id: string): Promise<string | null> {
  const owner = await tx.maybe<{ address: string }>(
    sql`select ${first_owner_email} as address from core.organization o where o.id = ${organization_id}`,
  );
  return email.safeParse(owner?.address).data ?? null;
}
