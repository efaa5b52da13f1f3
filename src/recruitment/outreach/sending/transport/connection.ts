/** The connections of a worker to the servers that send: kept for as long as a lane has more to send. */
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { type Store, transaction } from '../../../../core/postgres/transaction.ts';
import type { Services } from '../../../../core/resource/services.ts';
import { Problem } from '../../../../core/values/problem.ts';
import { inboxes } from '../../../inboxes/inbox.ts';
import { clientName, type Login, proofsOf } from '../../../inboxes/login.ts';
import { mailServerAddress } from '../../../inboxes/mail_host.ts';
import { LoginRefused, openSmtp } from '../../../inboxes/smtp_login.ts';
import { loginColumns, storedLogin } from '../../../inboxes/stored_login.ts';

/** Of greeting and login; while an email is sent, `transmit` has deadlines of its own. */
const login_ms = 30_000;
const silence_ms = 600_000;

/** Why a connection could not be had. */
export class NotConnected extends Error {
  override readonly name = 'NotConnected';
  readonly is: 'auth' | 'unreachable';

  constructor(is: 'auth' | 'unreachable', cause: unknown) {
    super('The server that sends cannot be used.', { cause });
    this.is = is;
  }
}

/**
 * Connects to the server of an inbox and logs in. A refresh token that the provider replaced is stored at once.
 * @throws NotConnected
 */
export async function connectTo(
  inbox_id: string,
  organization_id: string,
  { store, services }: { store: Store; services: Services },
): Promise<SMTPConnection> {
  const opening = { organization_id, request_id: null };
  const { login } = await transaction(store, opening, (tx) => storedLogin(tx, inbox_id, services.vault));
  try {
    const { proofs, secrets } = await proofsOf(login, services);
    if (secrets !== login.secrets && JSON.stringify(secrets) !== JSON.stringify(login.secrets))
      await keepSecrets(inbox_id, organization_id, { login, secrets }, { store, services });
    const address = await mailServerAddress('smtp', login.smtp, services);
    const timeouts = { login_ms, silence_ms };
    const connection = await openSmtp(login.smtp, address, proofs.smtp, clientName(services), timeouts);
    // What fails while nothing is sent is found out by the next email.
    connection.on('error', () => {});
    return connection;
  } catch (error) {
    const is_refused = error instanceof LoginRefused || (error instanceof Problem && error.code === 'oauth_failed');
    throw new NotConnected(is_refused ? 'auth' : 'unreachable', error);
  }
}

const keepSecrets = (
  inbox_id: string,
  organization_id: string,
  { login, secrets }: { login: Login; secrets: Login['secrets'] },
  { store, services: { vault } }: { store: Store; services: Services },
): Promise<void> =>
  transaction(store, { organization_id, request_id: null }, async (tx) => {
    await inboxes.get(tx, inbox_id, { lock: true });
    const { login: stored } = await storedLogin(tx, inbox_id, vault);
    if (JSON.stringify(stored) === JSON.stringify(login))
      await inboxes.update(tx, inbox_id, loginColumns(inbox_id, login, secrets, vault));
  });
