/** Sessions of people in a browser: of a user in the dashboard, of a partner in the portal. */
import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import { sha256 } from '../encryption/vault.ts';
import { type Database, run } from '../postgres/database.ts';
import { declareUnique } from '../postgres/errors.ts';
import type { Tx } from '../postgres/transaction.ts';
import { newId } from '../values/id.ts';
import type { Role } from './user.ts';

declareUnique('session', { session_token_unique: null });

/** Who has a session, or gets one. */
export type Person = { user_id: string } | { partner_id: string };

export interface Session {
  id: string;
  organization_id: string;
  /** Null: a partner's. */
  user_id: string | null;
  /** Null: a user's. */
  partner_id: string | null;
  /** The role of the user as it is now. */
  role: Role | null;
  email: string | null;
  name: string | null;
  /** True once the user has set up an app that makes codes. */
  has_totp: boolean;
  /** When the user last gave a code, if that still holds. */
  confirmed_at: string | null;
}

/** A session ends when nobody has used it for so long. */
export const idle_hours = 12;
/** A code of the user's app holds for so long, by the clock of Postgres. */
const confirmed_minutes = 15;
/** A session ends so long after the person signed in. */
const most_days = { user: 7, partner: 30 };
const most_agent_length = 200;

const newToken = (): string => randomBytes(32).toString('base64url');

/** Opens a session. @returns the token, which the cookie holds and which is stored as a hash alone */
export async function openSession(
  tx: Tx,
  organization_id: string,
  person: Person,
  user_agent: string,
): Promise<string> {
  const token = newToken();
  const { user_id, partner_id } = { user_id: null, partner_id: null, ...person };
  const days = user_id === null ? most_days.partner : most_days.user;
  await tx.all(sql`
    insert into core.session (organization_id, id, token_sha256, user_id, partner_id, user_agent, last_seen_at, expires_at, created_at)
    values (
      ${organization_id}, ${newId('ses')}, ${sha256(token)}, ${user_id}, ${partner_id}, ${user_agent.slice(0, most_agent_length)}, ${tx.now},
      ${tx.now}::timestamptz + make_interval(days => ${days}), ${tx.now}
    )`);
  return token;
}

/**
 * Returns the session of a token, and notes once a minute that it is used. Undefined where there is none, or it has ended: revoked, expired, idle for too
 * long, or of a user who was removed.
 */
export async function resumeSession(database: Database, token: string): Promise<Session | undefined> {
  const [session] = await run<Session>(
    database,
    sql`
      with found as (
        select s.organization_id, s.id, s.user_id, s.partner_id, s.last_seen_at, u.role, u.email, u.name, u.totp_secret is not null as has_totp,
          case when s.confirmed_at > now() - make_interval(mins => ${confirmed_minutes}) then s.confirmed_at end as confirmed_at
        from core.session s
        left join core.user_account u on u.organization_id = s.organization_id and u.id = s.user_id and u.removed_at is null
        where s.token_sha256 = ${sha256(token)}
          and s.revoked_at is null
          and s.expires_at > now()
          and s.last_seen_at > now() - make_interval(hours => ${idle_hours})
          and (s.user_id is null or u.id is not null)
      ),
      seen as (
        update core.session s
        set last_seen_at = now()
        from found f
        where s.organization_id = f.organization_id
          and s.id = f.id
          and f.last_seen_at < now() - interval '1 minute'
      )
      select id, organization_id, user_id, partner_id, role, email, name, has_totp, confirmed_at from found`,
  );
  return session;
}

/** Ends a session at once, everywhere. */
export async function endSession(database: Database, { organization_id, id }: Session): Promise<void> {
  await run(
    database,
    sql`update core.session set revoked_at = now()
      where organization_id = ${organization_id} and id = ${id} and revoked_at is null`,
  );
}

/** The sessions of a person that have not ended, the one used last first. */
export const openSessionsOf = (
  tx: Tx,
  { user_id, partner_id }: Pick<Session, 'user_id' | 'partner_id'>,
): Promise<{ id: string; user_agent: string; last_seen_at: string; created_at: string }[]> =>
  tx.all(sql`
    select s.id, s.user_agent, s.last_seen_at, s.created_at
    from core.session s
    where s.organization_id = ${tx.organization_id}
      and (s.user_id = ${user_id} or s.partner_id = ${partner_id})
      and s.revoked_at is null
      and s.expires_at > ${tx.now}::timestamptz
      and s.last_seen_at > ${tx.now}::timestamptz - make_interval(hours => ${idle_hours})
    order by s.last_seen_at desc, s.id`);

/** Ends a session of a person, or all of them but one. */
export async function endSessionsOf(
  tx: Tx,
  { id, user_id, partner_id }: Pick<Session, 'id' | 'user_id' | 'partner_id'>,
  which: { id: string } | 'others',
): Promise<void> {
  await tx.all(sql`
    update core.session s set revoked_at = ${tx.now}::timestamptz
    where s.organization_id = ${tx.organization_id}
      and (s.user_id = ${user_id} or s.partner_id = ${partner_id})
      and s.revoked_at is null
      and ${which === 'others' ? sql`s.id <> ${id}` : sql`s.id = ${which.id}`}`);
}

/** The links that a person may ask for in an hour. */
export const most_links_an_hour = 5;
export const link_minutes = 15;

export interface SignInLink {
  user_id: string;
  organization_id: string;
  organization: string;
  email: string;
  token: string;
}

/**
 * Makes links to sign in for the users with an email address, one for each organization, unless they have asked too often. To be run for the whole
 * service.
 */
export async function makeSignInLinks(tx: Tx, email: string): Promise<SignInLink[]> {
  const known = await tx.all<Omit<SignInLink, 'token'>>(sql`
    select u.organization_id, u.id as user_id, u.email, o.name as organization
    from core.user_account u
    join core.organization o on o.id = u.organization_id
    where lower(u.email) = lower(${email}) and u.removed_at is null
      and (
        select count(*) from core.sign_in_link l
        where l.organization_id = u.organization_id and l.user_id = u.id and l.created_at > now() - interval '1 hour'
      ) < ${most_links_an_hour}
    order by o.name, o.id
    limit 20
    for no key update of u`);
  const links = known.map((one) => ({ ...one, token: newToken() }));
  for (const { organization_id, user_id, token } of links) await keepLink(tx, organization_id, user_id, token);
  return links;
}

const keepLink = (tx: Tx, organization_id: string, user_id: string, token: string): Promise<object[]> =>
  tx.all(sql`
    insert into core.sign_in_link (token_sha256, organization_id, user_id, expires_at, created_at)
    values (${sha256(token)}, ${organization_id}, ${user_id}, ${tx.now}::timestamptz + make_interval(mins => ${link_minutes}), ${tx.now})`);

/** Makes a link for one user, as `npx --no rail start` and `npx --no rail user sign-in` print it. @returns its token */
export async function makeSignInLink(tx: Tx, organization_id: string, user_id: string): Promise<string> {
  const token = newToken();
  await keepLink(tx, organization_id, user_id, token);
  return token;
}

/** Redeems a link, once and before it expires. Of two concurrent attempts one succeeds. @returns undefined where it is unknown, used or expired */
export const redeemSignInLink = (
  tx: Tx,
  token: string,
): Promise<{ organization_id: string; user_id: string } | undefined> =>
  tx.maybe(sql`
    update core.sign_in_link l
    set used_at = ${tx.now}::timestamptz
    from core.user_account u
    where l.token_sha256 = ${sha256(token)} and l.used_at is null and l.expires_at > ${tx.now}::timestamptz
      and u.organization_id = l.organization_id and u.id = l.user_id and u.removed_at is null
    returning l.organization_id, l.user_id`);
