/** A role can always change its own password and settings in Postgres: one of a team would lock out the others. What it changed is undone. */

import pg from 'pg';
import type { Logger } from 'pino';
import sql, { raw } from 'sql-template-tag';
import { run } from '../core/postgres/database.ts';
import { type Store, transaction } from '../core/postgres/transaction.ts';
import { passwordStatement, settingStatements, settingsOf } from './login_role.ts';

const { escapeIdentifier } = pg;

interface Login {
  user: string;
  statement_timeout_ms: number;
  verifier: string | null;
}

/** The settings of a role: for all databases, or for one. */
interface Settings {
  database: string | null;
  settings: string[];
}

/** Sets the password and the settings of logins to what they were made with, as far as this user may, and logs each that differed. */
export async function restoreLogins(store: Store, log: Logger): Promise<void> {
  const logins = await run<Login & { set: Settings[] }>(
    store.database,
    sql`
      select l.role_name as user, l.statement_timeout_ms, l.verifier, coalesce(
          (
            select json_agg(json_build_object('database', d.datname, 'settings', s.setconfig))
            from pg_db_role_setting s
            left join pg_database d on d.oid = s.setdatabase
            where s.setrole = r.oid
          ),
          '[]'
        ) as set
      from core.data_login l
      join pg_roles r on r.rolname = l.role_name
      where l.revoked_at is null`,
  );
  const passwords = logins.length > 0 ? await otherPasswords(store) : [];
  for (const login of logins) {
    await restore(store, log, login.user, 'settings', restoredSettings(login, login.set));
    if (login.verifier !== null && passwords.includes(login.user))
      await restore(store, log, login.user, 'password', [passwordStatement(login.user, login.verifier)]);
  }
}

/** The logins whose password is another one than they were given: a superuser alone sees that. */
async function otherPasswords({ database }: Store): Promise<string[]> {
  const [seen] = await run<{ is_seen: boolean }>(
    database,
    sql`select has_column_privilege('pg_catalog.pg_authid', 'rolpassword', 'select') as is_seen`,
  );
  if (!seen?.is_seen) return [];
  const changed = await run<{ user: string }>(
    database,
    sql`
      select l.role_name as user
      from core.data_login l
      join pg_catalog.pg_authid a on a.rolname = l.role_name
      where l.revoked_at is null and a.rolcanlogin and a.rolpassword is distinct from l.verifier`,
  );
  return changed.map(({ user }) => user);
}

function restoredSettings(login: Login, set: Settings[]): string[] {
  const role = escapeIdentifier(login.user);
  const of_databases = set.flatMap(({ database }) =>
    database === null ? [] : [`alter role ${role} in database ${escapeIdentifier(database)} reset all`],
  );
  const settings = set.find(({ database }) => database === null)?.settings ?? [];
  const expected = settingsOf(login).map(([setting, value]) => `${setting}=${value}`);
  const is_same = settings.length === expected.length && expected.every((one) => settings.includes(one));
  return [...of_databases, ...(is_same ? [] : [`alter role ${role} reset all`, ...settingStatements(login)])];
}

const insufficient_privilege = '42501';

async function restore(store: Store, log: Logger, user: string, what: string, statements: string[]): Promise<void> {
  if (statements.length === 0) return;
  try {
    await transaction(store, { organization_id: null, request_id: null }, async (tx) => {
      for (const statement of statements) await tx.all(raw(statement));
    });
    log.warn({ role_name: user }, `restored the ${what} of a data login`);
  } catch (error) {
    if ((error as { code?: string }).code !== insufficient_privilege) throw error;
    log.warn(
      { role_name: user },
      `the ${what} of a data login were changed, and this database user may not restore them`,
    );
  }
}
