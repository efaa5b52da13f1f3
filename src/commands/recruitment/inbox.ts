import sql from 'sql-template-tag';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import type { Operation } from '../../core/resource/operation.ts';
import { type Inbox, inboxes } from '../../recruitment/inboxes/inbox.ts';
import { inboxOperations } from '../../recruitment/inboxes/inbox_operations.ts';
import { choose, requireOrganization } from '../chosen.ts';
import { answer, UsageError, withStore } from '../command.ts';
import { table } from '../output/table.ts';
import { callOperation } from './call.ts';
import { readSecrets } from './secrets.ts';
import { organizationOfInbox } from './tenant.ts';

interface ServerOptions {
  host: string | undefined;
  port: number | undefined;
  security: string;
  username: string | undefined;
}

interface AddOptions {
  organization?: string;
  email: string;
  fromName: string;
  smtpHost?: string;
  smtpPort?: number;
  smtpSecurity: string;
  smtpUsername?: string;
  imapHost?: string;
  imapPort?: number;
  imapSecurity: string;
  imapUsername?: string;
  oauth?: string;
  clientId?: string;
  dailyLimit?: number;
  timezone?: string;
  replyTo?: string;
  authservId?: string;
  json?: boolean;
}

/** `rail inbox add`: connects an inbox, after trying both of its logins. */
export async function addInbox(options: AddOptions): Promise<void> {
  const login = await (options.oauth ? providerLogin(options) : passwordLogin(options));
  const { email, fromName: from_name, dailyLimit: daily_limit, timezone, replyTo: reply_to } = options;
  const { authservId: authserv_id } = options;
  await withStore(async (opened) => {
    const { id: organization_id } = await choose(opened, 'organization', options.organization);
    const body = given({ email, from_name, daily_limit, timezone, reply_to, authserv_id, ...login });
    const inbox = await callOperation<Inbox>(opened, organization_id, operationNamed('inboxes.create'), { body });
    answer(inbox, { json: options.json, lines: [`Connected ${inbox.id} (${inbox.email}). Both logins work.`] });
  });
}

async function passwordLogin(options: AddOptions): Promise<object> {
  const { smtpHost, smtpPort, smtpSecurity, smtpUsername, imapHost, imapPort, imapSecurity, imapUsername } = options;
  if (!smtpHost || !imapHost) throw new UsageError('--smtp-host and --imap-host are required, or --oauth.');
  const [password, imap_password] = await readSecrets(['Password', 'Password of the IMAP server (Enter: the same)']);
  if (!password) throw new UsageError('Send the password on standard input.');
  const server = ({ username = options.email, ...others }: ServerOptions, secret: string) =>
    given({ ...others, username, password: secret });
  return {
    smtp: server({ host: smtpHost, port: smtpPort, security: smtpSecurity, username: smtpUsername }, password),
    imap: server(
      { host: imapHost, port: imapPort, security: imapSecurity, username: imapUsername },
      imap_password || password,
    ),
  };
}

async function providerLogin({
  oauth: provider,
  clientId: client_id,
  smtpHost,
  imapHost,
}: AddOptions): Promise<object> {
  if (smtpHost || imapHost) throw new UsageError('With --oauth, the servers are those of the provider.');
  if (!client_id) throw new UsageError('--client-id is required with --oauth.');
  const [client_secret, refresh_token] = await readSecrets(['Client secret', 'Refresh token']);
  if (!client_secret || !refresh_token) {
    throw new UsageError('Send the client secret and the refresh token on standard input, a line each.');
  }
  return { oauth: { provider, client_id, client_secret, refresh_token } };
}

/** Without what was not given. */
const given = (values: object): object =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

const operationNamed = (name: string): Operation =>
  inboxOperations.find((operation) => operation.name === name) as Operation;

/** `rail inbox test`: tries both logins of an inbox. */
export const testInbox = (id: string, { json }: { json?: boolean }): Promise<void> =>
  withStore(async (opened) => {
    const organization_id = await organizationOfInbox(opened.store.database, id);
    const tested = await callOperation<object>(opened, organization_id, operationNamed('inboxes.test'), {
      params: { id },
    });
    answer(tested, { json, lines: [`Both logins of ${id} work.`] });
  });

/** `rail inbox list`. */
export const listInboxes = ({ organization, json }: { organization?: string; json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const listed = await inboxesOf(store, organization);
    answer(listed, { json, lines: linesOf(listed) });
  });

async function inboxesOf(store: Store, organization: string | undefined): Promise<Inbox[]> {
  if (organization !== undefined) await requireOrganization(store.database, organization);
  return transaction(store, { organization_id: organization ?? null, request_id: null }, (tx) =>
    tx.all<Inbox>(sql`
      select ${inboxes.columns}
      from ${inboxes.from}
      where ${inboxes.alive} and (${organization ?? null}::text is null or t.organization_id = ${organization ?? null})
      order by t.created_at desc, t.id desc`),
  );
}

function linesOf(listed: Inbox[]): string[] {
  const rows = listed.map(({ id, email, status, disconnected_reason, daily_limit, timezone, created_at }) => [
    ...[id, email, status, disconnected_reason ?? '', daily_limit, timezone, created_at],
  ]);
  const columns = ['ID', 'EMAIL', 'STATUS', 'REASON', 'DAILY LIMIT', 'TIME ZONE', 'CREATED AT'];
  return table(columns, rows, 'There is no inbox.');
}
