import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import { sha256 } from '../encryption/vault.ts';
import { type Database, run } from '../postgres/database.ts';
import { declareUnique } from '../postgres/errors.ts';
import type { Tx } from '../postgres/transaction.ts';
import { email } from '../values/fields.ts';
import { newId } from '../values/id.ts';

export interface Organization {
  id: string;
  name: string;
  /** Who is emailed. */
  owner_email: string | null;
  created_at: string;
}

export interface ApiKey {
  id: string;
  organization_id: string;
  name: string;
  mode: 'live' | 'test';
  scopes: string[];
  rate_limit: number;
  signature_required: boolean;
  last_used_at: string | null;
  revoked_at: string | null;
  created_at: string;
}

declareUnique('api_key', { api_key_secret_unique: null });

const key_columns = sql`id, organization_id, name, mode, scopes, rate_limit, signature_required, last_used_at, revoked_at, created_at`;

/** Of the organization `o`: its first owner's. */
const first_owner_email = sql`(
  select u.email from core.user_account u where u.organization_id = o.id and u.role = 'owner' order by u.id limit 1
)`;

/** Makes a tenant, with the person who is emailed when something is wrong. */
export async function createOrganization(
  database: Database,
  { name, owner_email }: { name: string; owner_email: string },
): Promise<Organization> {
  const [made] = await run<Organization>(
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
  return made as Organization;
}

export const listOrganizations = (database: Database): Promise<Organization[]> =>
  run(
    database,
    sql`select o.id, o.name, ${first_owner_email} as owner_email, o.created_at from core.organization o order by o.id`,
  );

/** Where the owner of an organization is written to; null where that is no address. In the whole service's own transactions alone. */
export async function ownerEmail(tx: Tx, organization_id: string): Promise<string | null> {
  const owner = await tx.maybe<{ address: string }>(
    sql`select ${first_owner_email} as address from core.organization o where o.id = ${organization_id}`,
  );
  return email.safeParse(owner?.address).data ?? null;
}

export interface NewKey {
  organization_id: string;
  name: string;
  mode: 'live' | 'test';
  scopes: string[];
  rate_limit?: number | undefined;
}

/**
 * Makes a key. Only its SHA-256 is stored: `secret` is in this answer and never again.
 * @throws Error when there is no such organization
 */
export async function createKey(
  database: Database,
  { organization_id, name, mode, scopes, rate_limit }: NewKey,
): Promise<ApiKey & { secret: string }> {
  const secret = `rail_${mode}_${randomBytes(32).toString('base64url')}`;
  const [made] = await run<ApiKey>(
    database,
    sql`
      insert into core.api_key (organization_id, id, name, mode, secret_sha256, scopes, rate_limit)
      select o.id, ${newId('key')}, ${name}, ${mode}, ${sha256(secret)}, ${scopes}, ${rate_limit ?? 25}
      from core.organization o
      where o.id = ${organization_id}
      returning ${key_columns}`,
  );
  if (!made) throw new Error(`There is no organization '${organization_id}': 'rail org list' shows them.`);
  return { ...made, secret };
}

export const listKeys = (database: Database, organization_id: string | undefined): Promise<ApiKey[]> =>
  run(
    database,
    sql`select ${key_columns} from core.api_key where ${organization_id ?? null}::text is null or organization_id = ${organization_id ?? null} order by id`,
  );

/** Ends a key at once. @returns undefined where there is none such */
export async function revokeKey(database: Database, id: string): Promise<ApiKey | undefined> {
  const [revoked] = await run<ApiKey>(
    database,
    sql`update core.api_key set revoked_at = coalesce(revoked_at, now()), updated_at = now() where id = ${id} returning ${key_columns}`,
  );
  return revoked;
}
