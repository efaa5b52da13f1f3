import { randomBytes } from 'node:crypto';
import sql, { join, raw, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { sha256 } from '../encryption/vault.ts';
import { isNetwork } from '../net/ip_range.ts';
import { type Database, run } from '../postgres/database.ts';
import type { Tx } from '../postgres/transaction.ts';
import type { Caller } from '../resource/operation.ts';
import { resource } from '../resource/resource.ts';
import { documentedEnum, id, objectName, text, timestamp } from '../values/fields.ts';
import { newId } from '../values/id.ts';
import { Problem } from '../values/problem.ts';
import { commandLogged } from './audit_log.ts';

/** The requests that a key may make in each second, unless its row says otherwise. */
export const default_rate_limit = 25;

const statuses = {
  active: 'the key can be used',
  expired: 'its time is over; `expires_at` can be changed',
  revoked: 'it cannot be used again',
} as const;

export const ip_range = z
  .string()
  .max(49)
  .refine(isNetwork, 'must be a network in CIDR notation, such as 203.0.113.0/24 or 2001:db8::/32, or an IP address')
  .toLowerCase();

export const apiKeys = resource({
  object: 'api_key',
  plural: 'api_keys',
  listed_as: 'API keys',
  scoped_as: 'keys',
  table: 'core.api_key',
  unique: { api_key_secret_unique: null, api_key_previous_secret_unique: null },
  doc: 'An API key: what its holder may do, from where, until when, and how often. The key itself is shown once, when it is created or rotated.',
  fields: {
    id: id('key'),
    object: objectName('api_key'),
    name: text.describe('The name of the key.'),
    mode: z.enum(['live', 'test']).describe('`live` or `test`: the key begins with `rail_live_` or `rail_test_`.'),
    status: documentedEnum(statuses),
    scopes: z.array(text).describe('What the key may do.'),
    rate_limit: z.number().int().describe('The requests that it may make in each second.'),
    ip_ranges: z
      .array(text)
      .nullable()
      .describe('The networks that requests with the key may come from. Null: from everywhere.'),
    signature_required: z.boolean().describe('Whether every request with the key must be signed.'),
    user_id: id('usr').nullable().describe('The user whose key it is. Null: nobody’s.'),
    expires_at: timestamp.nullable().describe('From when on the key is refused. Null: it does not expire.'),
    previous_secret_expires_at: timestamp
      .nullable()
      .describe('Until when the key before the last rotation is valid too. Null: it was never rotated.'),
    last_used_at: timestamp.nullable().describe('When the key was last used, to the minute. Null: never.'),
    revoked_at: timestamp.nullable().describe('When it was revoked. Null: it was not.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  computed: {
    status: sql`case when t.revoked_at is not null then 'revoked' when t.expires_at <= clock_timestamp() then 'expired' else 'active' end`,
  },
});

export type ApiKey = z.infer<typeof apiKeys.record> & { organization_id: string };

const key_columns = sql`t.organization_id, ${apiKeys.columns}`;

/**
 * Refuses an expiry that is over, which would lock out by mistake: whoever means it revokes.
 * @throws Problem invalid_parameter
 */
export function requireFuture(now: string, expires_at: string | null | undefined): void {
  if (expires_at === undefined || expires_at === null || expires_at > now) return;
  throw new Problem('invalid_parameter', "'expires_at' must be in the future. To end a key now, revoke it.", {
    param: 'expires_at',
  });
}

/** Compares with Postgres' clock. @throws Problem invalid_parameter */
async function requireFutureOf(database: Database, { expires_at }: Pick<KeyChanges, 'expires_at'>): Promise<void> {
  const [clock] = await run<{ now: string }>(database, sql`select now()::timestamptz(3) as now`);
  requireFuture((clock as { now: string }).now, expires_at);
}

/** Returns a new key, which is shown once. Only its SHA-256 is stored. */
export const newSecret = (mode: 'live' | 'test'): string => `rail_${mode}_${randomBytes(32).toString('base64url')}`;

export interface NewKey {
  organization_id: string;
  name: string;
  mode: 'live' | 'test';
  scopes: string[];
  rate_limit?: number | undefined;
  /** The person whose key it is. */
  user_id?: string | undefined;
  expires_at?: string | undefined;
  ip_ranges?: string[] | undefined;
}

/**
 * Creates a key. Only its SHA-256 is stored: `secret` is returned here and never again.
 * @throws Problem for an expiry that is over, Error when there is no such organization, or it has no such user
 */
export async function createKey(database: Database, given: NewKey): Promise<ApiKey & { secret: string }> {
  const { organization_id, name, mode, scopes, rate_limit, user_id, expires_at = null, ip_ranges = null } = given;
  if (expires_at !== null) await requireFutureOf(database, { expires_at });
  const secret = newSecret(mode);
  const [key] = await run<ApiKey>(
    database,
    sql`
      with t as (
        insert into core.api_key
          (organization_id, id, name, mode, secret_sha256, scopes, rate_limit, user_id, expires_at, ip_ranges)
        select
          o.id, ${newId('key')}, ${name}, ${mode}, ${sha256(secret)}, ${scopes}, ${rate_limit ?? default_rate_limit},
          ${user_id ?? null}, ${expires_at}, ${ip_ranges}
        from core.organization o
        where o.id = ${organization_id} and (${user_id ?? null}::text is null or exists (
          select from core.user_account u
          where u.organization_id = o.id and u.id = ${user_id ?? null} and u.removed_at is null))
        returning *
      ),
      ${commandLogged('api_keys.create', sql`t`)}
      select ${key_columns} from t`,
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
    sql`select ${key_columns} from ${apiKeys.from}
      where ${organization_id ?? null}::text is null or t.organization_id = ${organization_id ?? null} order by t.id`,
  );

type Calling = Pick<Caller, 'organization_id' | 'api_key_id' | 'user_id' | 'partner_id'>;

/** The person who calls, or whose key does. Null: a key of no person, or a partner. */
export async function userOf(
  tx: Tx,
  { organization_id, api_key_id, user_id: of_session, partner_id }: Calling,
): Promise<string | null> {
  if (of_session !== undefined || partner_id !== undefined) return of_session ?? null;
  const { user_id } = await tx.one<{ user_id: string | null }>(sql`
    select user_id from core.api_key where organization_id = ${organization_id} and id = ${api_key_id}`);
  return user_id;
}

/** Returns the author of a change: the person who calls, else the partner, or the key. */
export const authorOf = async (tx: Tx, caller: Calling): Promise<string> =>
  (await userOf(tx, caller)) ?? caller.partner_id ?? caller.api_key_id;

/** Returns the line of a mail that names who calls: `API key: key_…, of the user usr_…`. */
export async function callerLine(tx: Tx, caller: Calling): Promise<string> {
  if (caller.user_id !== undefined) return `User: ${caller.user_id}, in the dashboard`;
  const user_id = await userOf(tx, caller);
  return `API key: ${caller.api_key_id}${user_id === null ? '' : `, of the user ${user_id}`}`;
}

/** Revokes a key, everywhere within a second. @returns undefined where there is no such key */
export const revokeKey = (database: Database, key_id: string): Promise<ApiKey | undefined> =>
  changeKey(database, key_id, 'revoke', sql`revoked_at = coalesce(revoked_at, now())`);

export interface KeyChanges {
  name?: string | undefined;
  scopes?: string[] | undefined;
  /** Null: it does not expire. */
  expires_at?: string | null | undefined;
  /** Null: it may be used from everywhere. */
  ip_ranges?: string[] | null | undefined;
  signature_required?: boolean | undefined;
}

/** Changes what restricts a key, everywhere within a second. @returns undefined where there is no such key @throws Problem for an expiry that is over */
export async function updateKey(database: Database, key_id: string, changes: KeyChanges): Promise<ApiKey | undefined> {
  if (changes.expires_at) await requireFutureOf(database, changes);
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  const settings = join(given.map(([column, value]) => sql`${raw(column)} = ${value}`));
  return changeKey(
    database,
    key_id,
    'update',
    settings,
    given.map(([column]) => column),
  );
}

/** Gives a key a new secret, and has the one before be valid for a while. @returns undefined where there is no such key, or it was revoked */
export async function rotateKey(
  database: Database,
  key_id: string,
  overlap_hours: number,
): Promise<(ApiKey & { secret: string }) | undefined> {
  const [known] = await run<{ mode: 'live' | 'test' }>(
    database,
    sql`
    select mode from core.api_key where id = ${key_id} and revoked_at is null`,
  );
  if (!known) return undefined;
  const secret = newSecret(known.mode);
  const settings = sql`
    previous_secret_sha256 = secret_sha256, previous_secret_expires_at = now() + make_interval(hours => ${overlap_hours}),
    secret_sha256 = ${sha256(secret)}`;
  const key = await changeKey(database, key_id, 'rotate', settings, ['overlap_hours']);
  return key && { ...key, secret };
}

async function changeKey(
  database: Database,
  key_id: string,
  verb: 'update' | 'rotate' | 'revoke',
  settings: Sql,
  fields: string[] = [],
): Promise<ApiKey | undefined> {
  const [key] = await run<ApiKey>(
    database,
    sql`
      with t as (
        update core.api_key set ${settings}, updated_at = now() where id = ${key_id} returning *
      ),
      ${commandLogged(`api_keys.${verb}`, sql`t`, fields)}
      select ${key_columns} from t`,
  );
  return key;
}
