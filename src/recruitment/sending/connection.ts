/** The connections of a worker to the servers that send: kept for as long as a lane has more to send. */
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { Problem } from '../../core/values/problem.ts';
import { clientName } from '../inboxes/login.ts';
import { mailServerAddress } from '../inboxes/mail_host.ts';
import { LoginRefused, openSmtp } from '../inboxes/smtp_login.ts';
import { proveStored, readStored } from '../inboxes/try_stored.ts';

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
 * Connects to the server of an inbox and logs in.
 * @throws NotConnected
 */
export async function connectTo(
  lane: { organization_id: string; inbox_id: string },
  context: Pick<WorkerContext, 'store' | 'services' | 'log'>,
): Promise<SMTPConnection> {
  const { login } = await readStored(lane, context);
  try {
    const proofs = await proveStored(lane, login, context);
    const { services } = context;
    const address = await mailServerAddress('smtp', login.smtp, services);
    const timeouts = { login_ms, silence_ms };
    const connection = await openSmtp(login.smtp, address, proofs.smtp, clientName(services), timeouts);
    // What fails while nothing is sent is found out by the next email.
    connection.on('error', () => {});
    return connection;
  } catch (error) {
    const is_refused =
      error instanceof LoginRefused ? error.is_certain : error instanceof Problem && error.code === 'oauth_failed';
    const failure = is_refused ? 'auth' : 'unreachable';
    const { code, name, said } = error as { code?: unknown; name?: string; said?: string };
    context.log.warn(
      { inbox_id: lane.inbox_id, failure, code, name, said },
      'logging in to send failed; it is tried again',
    );
    throw new NotConnected(failure, error);
  }
}
