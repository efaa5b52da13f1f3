/** Logins of data teams: Postgres roles that read schema data of one organization, and nothing else. */
import sql, { raw, type Sql } from 'sql-template-tag';
import { type Database, run } from '../core/postgres/database.ts';
import { type Store, type Tx, transaction } from '../core/postgres/transaction.ts';
import { newId } from '../core/values/id.ts';
import {
  closeStatement,
  createStatements,
  dropStatements,
  type LoginRole,
  missingProtection,
  type Place,
} from './login_role.ts';
import { newPassword, scramVerifier } from './scram.ts';

export interface DataLogin extends LoginRole {
  organization_id: string;
  /** The purpose of the login, for people. */
  name: string;
  /** True if it sees emails, names and other personal columns. */
  personal_data: boolean;
  created_at: string;
}

/** The terms of a new login. */
export type LoginTerms = Omit<DataLogin, 'user' | 'created_at'>;

/**
 * `not_created`: nobody has run the SQL that was printed when it was made. `not_closed`: it is revoked and reads nothing, but can still log in,
 * because nobody has run the SQL that was printed then.
 */
export type LoginState = 'active' | 'not_created' | 'expired' | 'revoked' | 'not_closed';

export interface NewLogin extends DataLogin {
  /** The connection URL with the password, which is stored nowhere. */
  url: string;
  /** Statements that a superuser has to run, because this database user may not; empty if the login is ready. */
  sql: string[];
}

/** A revoked login, and the state of its Postgres role. */
export interface RevokedLogin extends DataLogin {
  /** `closed`: it cannot log in, and is still there. `open`: it can still log in. */
  role: 'dropped' | 'closed' | 'open';
  /** The reason why the role still exists; null where it is dropped. */
  reason: string | null;
  /** Statements that a superuser has to run, one at a time, because this database user could not; empty if the role is dropped. */
  sql: string[];
}

const insufficient_privilege = '42501';
const dependent_objects = '2BP01';
const of_the_service = { organization_id: null, request_id: null };

/**
 * Makes a login. What everybody may do on this database, and no such login must, is taken from PUBLIC before.
 * @param url where the login connects to, as any user
 * @throws Error when there is no such organization
 */
export async function createLogin(store: Store, url: string, terms: LoginTerms): Promise<NewLogin> {
  const login = { ...terms, user: newId('rail_data') };
  const password = newPassword();
  const verifier = await scramVerifier(password);
  const own_url = Object.assign(new URL(url), { username: login.user, password }).href;
  const made = await allowed(() =>
    transaction(store, of_the_service, async (tx) => {
      const statements = await statementsFor(tx, login, verifier);
      await runAll(tx, statements);
      // To revoke what another user granted is no error in Postgres, and does nothing.
      if ((await missingProtection(tx)).length > 0) throw new NotAllowed();
      return insertLogin(tx, login, verifier);
    }),
  );
  if (made) return { ...login, ...made, url: own_url, sql: [] };
  return transaction(store, of_the_service, async (tx) => {
    const statements = await statementsFor(tx, login, verifier);
    return { ...login, ...(await insertLogin(tx, login, verifier)), url: own_url, sql: statements };
  });
}

async function statementsFor(tx: Tx, login: Omit<DataLogin, 'created_at'>, verifier: string): Promise<string[]> {
  const place = await tx.one<Place>(sql`select current_database() as database, current_user as service`);
  return [...(await missingProtection(tx)), ...createStatements(login, verifier, place)];
}

async function insertLogin(
  tx: Tx,
  login: Omit<DataLogin, 'created_at'>,
  verifier: string,
): Promise<{ created_at: string }> {
  const { organization_id, user, name, personal_data, expires_at, statement_timeout_ms, connection_limit } = login;
  const inserted = await tx.maybe<{ created_at: string }>(sql`
    insert into core.data_login (role_name, organization_id, name, sees_personal, statement_timeout_ms, connection_limit, expires_at, verifier)
    select ${user}, o.id, ${name}, ${personal_data}, ${statement_timeout_ms}, ${connection_limit}, ${expires_at}::timestamptz, ${verifier}
    from core.organization o
    where o.id = ${organization_id}
    returning created_at`);
  if (inserted) return inserted;
  throw new Error(`There is no organization '${organization_id}'. 'npx --no rail org list' lists them.`);
}

/** The logins of all organizations or of one, the newest first. */
export const listLogins = (
  database: Database,
  organization_id: string | undefined,
): Promise<(DataLogin & { state: LoginState })[]> =>
  run(
    database,
    sql`select ${login_columns},
        case
          when l.revoked_at is not null then case when r.rolcanlogin then 'not_closed' else 'revoked' end
          when l.expires_at <= now() then 'expired'
          when r.oid is null then 'not_created'
          else 'active'
        end as state
      from core.data_login l
      left join pg_roles r on r.rolname = l.role_name
      where ${organization_id ?? null}::text is null or l.organization_id = ${organization_id ?? null}
      order by l.created_at desc, l.role_name desc`,
  );

const login_columns: Sql = sql`
  l.role_name as user, l.organization_id, l.name, l.sees_personal as personal_data, l.expires_at, l.statement_timeout_ms,
  l.connection_limit, l.created_at`;

/**
 * Revokes a login: it sees nothing from now on, cannot log in, its sessions are ended, and its role is dropped. Each step is kept, whatever
 * becomes of those after it.
 * @returns undefined where there is none
 */
export async function revokeLogin(store: Store, user: string): Promise<RevokedLogin | undefined> {
  const revoked = await transaction(store, of_the_service, (tx) =>
    tx.maybe<DataLogin & { is_made: boolean }>(sql`
      update core.data_login l
      set revoked_at = coalesce(l.revoked_at, now())
      where l.role_name = ${user}
      returning ${login_columns}, exists (select from pg_roles r where r.rolname = l.role_name) as is_made`),
  );
  if (!revoked) return undefined;
  const { is_made, ...login } = revoked;
  const dropped: RevokedLogin = { ...login, role: 'dropped', reason: null, sql: [] };
  if (!is_made) return dropped;
  const [close, drop] = [closeStatement(user), dropStatements(user)];
  const unclosed = await whyNot(store, [close]);
  // Postgres drops a role that has sessions; they would go on.
  const kept = (await whyNot(store, ['select from data.end_sessions()'])) ?? (await whyNot(store, drop));
  if (unclosed !== undefined && kept !== undefined)
    return { ...login, role: 'open', reason: unclosed, sql: [close, ...drop] };
  return kept === undefined ? dropped : { ...login, role: 'closed', reason: kept, sql: drop };
}

/** Runs statements in a transaction. @returns why Postgres refused them; undefined where it did not */
async function whyNot(store: Store, statements: string[]): Promise<string | undefined> {
  try {
    await transaction(store, of_the_service, (tx) => runAll(tx, statements));
    return undefined;
  } catch (error) {
    const { code, message, detail } = error as { code?: string; message: string; detail?: string };
    if (code !== insufficient_privilege && code !== dependent_objects) throw error;
    return detail === undefined ? message : `${message} (${detail.replaceAll('\n', '; ')})`;
  }
}

class NotAllowed extends Error {}

/** @returns undefined where this database user may not do it */
async function allowed<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NotAllowed || (error as { code?: string }).code === insufficient_privilege) return undefined;
    throw error;
  }
}

async function runAll(tx: Tx, statements: string[]): Promise<void> {
  for (const statement of statements) await tx.all(raw(statement));
}
