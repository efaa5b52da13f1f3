/** The SQL that makes and drops the Postgres role of a login. */
import pg from 'pg';
import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';

const { escapeIdentifier, escapeLiteral } = pg;

/** How long a transaction of a login may be idle, and wait for a lock. It can undo both; a worker ends what lasts longer: data.end_sessions. */
const idle_ms = 60_000;
const lock_ms = 5_000;
/** What a statement of a login may write to temporary files, such as to sort: a setting that a login cannot undo. */
const most_temp_mib = 2_048;

/** What has to run before the first login is made: it takes from PUBLIC what would let a login hold up the service. */
export async function missingProtection(tx: Tx): Promise<string[]> {
  const missing = await tx.all<{ statement: string }>(
    sql`select m.statement from data.missing_protection() m order by m.nth, m.subject`,
  );
  return missing.map(({ statement }) => statement);
}

/** What Postgres itself holds a login to. */
export interface LoginRole {
  /** The name of the Postgres role. */
  user: string;
  expires_at: string | null;
  statement_timeout_ms: number;
  connection_limit: number;
}

/** What is set on the role of a login. It can undo the most of it for itself, until a worker sets it again. */
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
    // As for requests of the API: see core.open_request.
    random_page_cost: '1.1',
  });

export const settingStatements = (login: Pick<LoginRole, 'user' | 'statement_timeout_ms'>): string[] =>
  settingsOf(login).map(
    ([setting, value]) => `alter role ${escapeIdentifier(login.user)} set ${setting} = ${escapeLiteral(value)}`,
  );

export const passwordStatement = (user: string, verifier: string): string =>
  `alter role ${escapeIdentifier(user)} password ${escapeLiteral(verifier)}`;

/** Where a login is made. */
export interface Place {
  /** The name of the database. */
  database: string;
  /** Who runs this service, and must be able to end the login's sessions. */
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

/** What keeps a role from logging in. It is run by itself, so that it holds whatever becomes of the rest. */
export const closeStatement = (user: string): string => `alter role ${escapeIdentifier(user)} nologin password null`;

/** What a login may own is of its own making alone, such as default privileges; no role is dropped that owns something. */
export const dropStatements = (user: string): string[] => [
  `drop owned by ${escapeIdentifier(user)}`,
  `drop role ${escapeIdentifier(user)}`,
];
