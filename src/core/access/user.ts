import sql from 'sql-template-tag';
import type { z } from 'zod';
import { type Database, run } from '../postgres/database.ts';
import { resource } from '../resource/resource.ts';
import { documentedEnum, enumOf, id, meaningsOf, objectName, text, timestamp } from '../values/fields.ts';
import { newId } from '../values/id.ts';
import { commandLogged } from './audit_log.ts';

export const user_statuses = {
  active: 'the person is in the organization',
  removed: 'the person was removed, and their keys were revoked',
} as const;

/** The roles of people, and what each may do in the dashboard. */
export const roles = {
  owner: 'everything',
  admin: 'everything, but for adding, changing or removing owners',
  finance: 'read everything, and change commissions, payouts, sales, rules and risk flags',
  member: 'read everything, and change all but money, keys, people and webhook endpoints',
  viewer: 'read everything',
} as const;
export type Role = keyof typeof roles;

export const role = enumOf(roles).describe(
  `What the person may do in the dashboard. ${meaningsOf(roles)} Emails of the service go to the first owner. What a key may do depends on its scopes alone.`,
);

export const users = resource({
  object: 'user',
  plural: 'users',
  table: 'core.user_account',
  doc: 'A person in your organization, whom API keys can belong to.',
  fields: {
    id: id('usr'),
    object: objectName('user'),
    email: text.describe('The email address of the person. Unique in the organization; letter case is ignored.'),
    name: text.nullable().describe('The name of the person. Null if not provided.'),
    role,
    status: documentedEnum(user_statuses),
    created_at: timestamp,
    updated_at: timestamp,
  },
  computed: { status: sql`case when t.removed_at is null then 'active' else 'removed' end` },
});

export type User = z.infer<typeof users.record> & { organization_id: string };

const user_columns = sql`t.organization_id, ${users.columns}`;

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
  if (known?.status === 'active')
    throw new Error(`${organization_id} has a user with this email address already: ${known.id}.`);
  const [user] = await run<User>(
    database,
    known
      ? sql`
          with t as (
            update core.user_account
            set removed_at = null, name = coalesce(${name}, name), role = 'member', updated_at = now()
            where organization_id = ${organization_id} and id = ${known.id}
            returning *
          ),
          ${commandLogged('users.create', sql`t`)}
          select ${user_columns} from t`
      : sql`
          with t as (
            insert into core.user_account (organization_id, id, email, name, role)
            select o.id, ${newId('usr')}, ${email}, ${name}, 'member' from core.organization o where o.id = ${organization_id}
            returning *
          ),
          ${commandLogged('users.create', sql`t`)}
          select ${user_columns} from t`,
  );
  if (!user) throw new Error(`There is no organization '${organization_id}'. 'npx --no rail org list' lists them.`);
  return user;
}

export const listUsers = (database: Database, organization_id: string | undefined): Promise<User[]> =>
  run(
    database,
    sql`select ${user_columns} from ${users.from}
      where ${organization_id ?? null}::text is null or t.organization_id = ${organization_id ?? null} order by t.id`,
  );
