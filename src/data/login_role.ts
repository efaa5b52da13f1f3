/** The SQL that makes and drops the Postgres role of a login. */
import pg from 'pg';
import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';

const { escapeIdentifier, escapeLiteral } = pg;

/** The limits of a transaction's idle time and of its waits for locks. A login can change both; a worker ends what lasts longer: data.end_sessions. */
const idle_ms = 60_000;
const lock_ms = 5_000;
/** The limit of temporary files of a statement, such as to sort: a setting that a login cannot change. */
const most_temp_mib = 2_048;

/** Returns the statements to run before the first login is made: they take from PUBLIC privileges by which a login could hold up the service. */
export async function missingProtection(tx: Tx): Promise<string[]> {
  const missing = await tx.all<{ statement: string }>(
    sql`select m.statement from data.missing_protection() m order by m.nth, m.subject`,
  );
  return missing.map(({ statement }) => statement);
}

/** The properties of a login that Postgres itself enforces. */
export interface LoginRole {
  /** The name of the Postgres role. */
  user: string;
  expires_at: string | null;
  statement_timeout_ms: number;
  connection_limit: number;
}

/** Returns the settings of a login's role. The login can change most of them for itself, until a worker restores them. */
export const settingsOf = ({ statement_timeout_ms }: Pick<LoginRole, 'statement_timeout_ms'>): [string, string][] =>
  Object.entries({
    default_transaction_read_only: 'on',
    statement_timeout: String(statement_timeout_ms),
    idle_in_transaction_session_timeout: String(idle_ms),
    lock_timeout: String(lock_ms),
    temp_file_limit: `${most_temp_mib}MB`,
    // Else it could fill the log: with errors, and with the plans of its statements (debug_print_plan). It cannot undo this.
    log_min_messages: 'fatal',
    search_path: 'data',
    // The same as for requests of the API: see core.open_request.
    random_page_cost: '1.1',
  });

export const settingStatements = (login: Pick<LoginRole, 'user' | 'statement_timeout_ms'>): string[] =>
  settingsOf(login).map(
    ([setting, value]) => `alter role ${escapeIdentifier(login.user)} set ${setting} = ${escapeLiteral(value)}`,
  );

export const passwordStatement = (user: string, verifier: string): string =>
  `alter role ${escapeIdentifier(user)} password ${escapeLiteral(verifier)}`;

/** The database and the owner of a login. */
export interface Place {
  /** The name of the database. */
  database: string;
  /** The user that runs this service, and must be able to end the login's sessions. */
  service: string;
}

/** @param verifier what Postgres stores of the password */
export function createStatements(login: LoginRole, verifier: string, { database, service }: Place): string[] {
  const role = escapeIdentifier(login.user);
  const until = login.expires_at === null ? '' : ` valid until ${escapeLiteral(login.expires_at)}`;
  return [
    `create role ${role} login nosuperuser nocreatedb nocreaterole noreplication connection limit ${login.connection_limit} password ${escapeLiteral(verifier)}${until}`,
    `grant rail_data_reader to ${role}`,
    `grant ${role} to ${escapeIdentifier(service)}`,
    // Everybody may connect, unless another service on this server has taken that away, as this one does of other databases.
    `grant connect on database ${escapeIdentifier(database)} to ${role}`,
    ...settingStatements(login),
  ];
}

/** Keeps a role from logging in. It is run by itself, so that it holds even if the rest fails. */
export const closeStatement = (user: string): string => `alter role ${escapeIdentifier(user)} nologin password null`;

/** A login may own only its own objects, such as default privileges; a role that owns something cannot be dropped. */
export const dropStatements = (user: string): string[] => [
  `drop owned by ${escapeIdentifier(user)}`,
  `drop role ${escapeIdentifier(user)}`,
];
