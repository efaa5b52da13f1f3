import sql from 'sql-template-tag';
import { type Database, run } from '../postgres/database.ts';
import { newId } from '../values/id.ts';

export interface User {
  id: string;
  organization_id: string;
  email: string;
  name: string | null;
  role: 'owner' | 'member';
  created_at: string;
}

const user_columns = sql`id, organization_id, email, name, role, created_at`;

/**
 * Adds a person to an organization, whom keys can belong to. An email is one person: who approves payouts is another than who created them.
 * @throws Error when there is no such organization, or it has a user with this email
 */
export async function createUser(
  database: Database,
  { organization_id, email, name = null }: { organization_id: string; email: string; name?: string | null },
): Promise<User> {
  const known = (await listUsers(database, organization_id)).find(
    (one) => one.email.toLowerCase() === email.toLowerCase(),
  );
  if (known) throw new Error(`${organization_id} has a user with this email address already: ${known.id}.`);
  const [user] = await run<User>(
    database,
    sql`
      insert into core.user_account (organization_id, id, email, name, role)
      select o.id, ${newId('usr')}, ${email}, ${name}, 'member' from core.organization o where o.id = ${organization_id}
      returning ${user_columns}`,
  );
  if (!user) throw new Error(`There is no organization '${organization_id}'. 'npx --no rail org list' lists them.`);
  return user;
}

export const listUsers = (database: Database, organization_id: string | undefined): Promise<User[]> =>
  run(
    database,
    sql`select ${user_columns} from core.user_account
      where ${organization_id ?? null}::text is null or organization_id = ${organization_id ?? null} order by id`,
  );
