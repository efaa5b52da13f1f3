import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import { sha256 } from '../encryption/vault.ts';
import { type Database, run } from '../postgres/database.ts';
import { declareUnique } from '../postgres/errors.ts';
import type { Tx } from '../postgres/transaction.ts';
import { newId } from '../values/id.ts';

/** The requests that a key may make in each second, unless its row says otherwise. */
export const default_rate_limit = 25;

export interface ApiKey {
  id: string;
  organization_id: string;
  name: string;
  mode: 'live' | 'test';
  scopes: string[];
  rate_limit: number;
  signature_required: boolean;
  /** The person whose key it is: `usr_…`. Null: nobody's. */
  user_id: string | null;
  last_used_at: string | null;
  revoked_at: string | null;
  created_at: string;
}

declareUnique('api_key', { api_key_secret_unique: null });

const key_columns = sql`id, organization_id, name, mode, scopes, rate_limit, signature_required, user_id, last_used_at, revoked_at, created_at`;

export interface NewKey {
  organization_id: string;
  name: string;
  mode: 'live' | 'test';
  scopes: string[];
  rate_limit?: number | undefined;
  /** The person whose key it is. */
  user_id?: string | undefined;
}

/**
 * Creates a key. Only its SHA-256 is stored: `secret` is returned here and never again.
 * @throws Error when there is no such organization, or it has no such user
 */
export async function createKey(
  database: Database,
  { organization_id, name, mode, scopes, rate_limit, user_id }: NewKey,
): Promise<ApiKey & { secret: string }> {
  const secret = `rail_${mode}_${randomBytes(32).toString('base64url')}`;
  const [key] = await run<ApiKey>(
    database,
    sql`
      insert into core.api_key (organization_id, id, name, mode, secret_sha256, scopes, rate_limit, user_id)
      select o.id, ${newId('key')}, ${name}, ${mode}, ${sha256(secret)}, ${scopes}, ${rate_limit ?? default_rate_limit}, ${user_id ?? null}
      from core.organization o
      where o.id = ${organization_id} and (${user_id ?? null}::text is null or exists (
        select from core.user_account u where u.organization_id = o.id and u.id = ${user_id ?? null}))
      returning ${key_columns}`,
  );
  if (!key) {
    throw new Error(
      user_id === undefined
        ? `There is no organization '${organization_id}'. 'npx --no rail org list' lists them.`
        : `No organization '${organization_id}' with a user '${user_id}' exists. 'npx --no rail user list' lists users.`,
    );
  }
  return { ...key, secret };
}

export const listKeys = (database: Database, organization_id: string | undefined): Promise<ApiKey[]> =>
  run(
    database,
    sql`select ${key_columns} from core.api_key where ${organization_id ?? null}::text is null or organization_id = ${organization_id ?? null} order by id`,
  );

/** The person whose key calls. Null: a key of no person. */
export async function userOfKey(
  tx: Tx,
  { organization_id, api_key_id }: { organization_id: string; api_key_id: string },
): Promise<string | null> {
  const { user_id } = await tx.one<{ user_id: string | null }>(sql`
    select user_id from core.api_key where organization_id = ${organization_id} and id = ${api_key_id}`);
  return user_id;
}

/** Returns the author of a change: the person whose key calls, else the key. */
export const authorOf = async (tx: Tx, caller: { organization_id: string; api_key_id: string }): Promise<string> =>
  (await userOfKey(tx, caller)) ?? caller.api_key_id;

/** Revokes a key, everywhere within a second. @returns undefined where there is no such key */
export async function revokeKey(database: Database, id: string): Promise<ApiKey | undefined> {
  const [key] = await run<ApiKey>(
    database,
    sql`update core.api_key set revoked_at = coalesce(revoked_at, now()), updated_at = now() where id = ${id} returning ${key_columns}`,
  );
  return key;
}

/** Sets whether requests with a key must be signed, everywhere within a second. @returns undefined where there is no such key */
export async function requireSignatures(
  database: Database,
  id: string,
  signature_required: boolean,
): Promise<ApiKey | undefined> {
  const [key] = await run<ApiKey>(
    database,
    sql`update core.api_key set signature_required = ${signature_required}, updated_at = now() where id = ${id} returning ${key_columns}`,
  );
  return key;
}
