/** `rail data user`: logins that read schema data of one organization. */
import sql from 'sql-template-tag';
import { run } from '../../core/postgres/database.ts';
import type { Store } from '../../core/postgres/transaction.ts';
import {
  createLogin,
  type DataLogin,
  type LoginState,
  listLogins,
  type RevokedLogin,
  revokeLogin,
} from '../../data/login.ts';
import { choose } from '../chosen.ts';
import { answer, UsageError, withStore } from '../command.ts';
import { table } from '../output/table.ts';

interface NewUserOptions {
  organization?: string;
  name: string;
  personalData?: boolean;
  expires?: string;
  statementTimeout: number;
  connections: number;
  json?: boolean;
}

export const createDataUser = (options: NewUserOptions): Promise<void> =>
  withStore(async (opened) => {
    const { store, config, url } = opened;
    const { id: organization_id } = await choose(opened, 'organization', options.organization);
    const login = await createLogin(store, config.DATABASE_READ_URL ?? url, {
      organization_id,
      name: options.name,
      personal_data: options.personalData ?? false,
      expires_at: options.expires === undefined ? null : await expiryOf(store, options.expires),
      statement_timeout_ms: options.statementTimeout * 1_000,
      connection_limit: options.connections,
    });
    const until = login.expires_at === null ? '' : ` until ${login.expires_at},`;
    const columns = login.personal_data ? 'with personal columns' : 'without emails, names and other personal columns';
    const summary = `${login.user} reads the rows of ${login.organization_id} in the schema 'data'${until} ${columns}.`;
    const lines = [
      summary,
      'Connect with this URL. It cannot be shown again:',
      '',
      login.url,
      ...toRun(inOneTransaction(login.sql)),
    ];
    answer(login, { json: options.json, lines });
  });

/** @throws UsageError for a time that is over, by Postgres' clock */
async function expiryOf({ database }: Store, given: string): Promise<string> {
  const at = given.endsWith('d')
    ? sql`now() + make_interval(days => ${Number.parseInt(given, 10)})`
    : sql`${given}::timestamptz`;
  const [expiry] = await run<{ at: string }>(
    database,
    sql`select e.at from (select (${at})::timestamptz(3) as at) e where e.at > now()`,
  );
  if (expiry) return expiry.at;
  throw new UsageError('--expires must be in the future.');
}

export const listDataUsers = ({ organization, json }: { organization?: string; json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const logins = await listLogins(store.database, organization);
    const columns = ['USER', 'ORGANIZATION', 'NAME', 'STATE', 'PERSONAL DATA', 'EXPIRES AT', 'CREATED AT'];
    answer(logins, { json, lines: table(columns, logins.map(row), 'There is no login.') });
  });

const row = (login: DataLogin & { state: LoginState }): string[] => [
  login.user,
  login.organization_id,
  login.name,
  login.state.replace('_', ' '),
  login.personal_data ? 'yes' : 'no',
  login.expires_at ?? 'never',
  login.created_at,
];

export const revokeDataUser = (user: string, { json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const revoked = await revokeLogin(store, user);
    if (!revoked) throw new Error(`There is no login '${user}': 'npx --no rail data user list' shows them.`);
    answer(revoked, { json, lines: [whatBecameOf(revoked), ...toRun(revoked.sql)] });
  });

function whatBecameOf({ user, name, role, reason }: RevokedLogin): string {
  const revoked = `Revoked ${user} (${name}): it can no longer read anything`;
  if (role === 'dropped') return `${revoked}.`;
  if (role === 'closed')
    return `${revoked} or log in. Its Postgres role is still there, because it could not be dropped: ${reason}. If that names another database, run 'drop owned by' there first.`;
  return `${revoked}, but it can still log in to Postgres: ${reason}.`;
}

const inOneTransaction = (statements: string[]): string[] =>
  statements.length === 0 ? [] : ['begin', ...statements, 'commit'];

const toRun = (statements: string[]): string[] =>
  statements.length === 0
    ? []
    : [
        '',
        'The user of DATABASE_URL may not do all of it. As a superuser, run this in the same database:',
        '',
        ...statements.map((statement) => `${statement};`),
      ];
