/**
 * Step 3 of an email: it is handed over to the server of its inbox, with a moment before its end in which it is confirmed (step 2). The connection
 * stays open for as long as the queue has more to send.
 *
 * - What is not confirmed is not ended: the connection is dropped, and the server has nothing.
 * - Up to its end an email may take 2 minutes, then 10 (RFC 5321). A connection lost before the end sent nothing; one lost after it leaves the email
 *   in doubt, and an answer of 4xx or 5xx is proof that it was not accepted.
 * - A refused recipient is followed by RSET: the connection goes on with the next email.
 * - Where the answer to the end names the Message-ID that the server gave the email (Amazon SES, Exchange), it is kept as another one.
 */
import { Readable } from 'node:stream';
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { Problem } from '../../core/values/problem.ts';
import { storable } from '../../core/values/texts/stored_text.ts';
import { idGivenBy } from '../composing/message_ids.ts';
import type { InboxKey } from '../inboxes/inbox.ts';
import { clientName } from '../inboxes/login.ts';
import { LoginRefused, mailServerAddress, openSmtp } from '../inboxes/mail_server.ts';
import { proveStored, readStored } from '../inboxes/stored_login.ts';
import { type Answer, isAboutLogin } from './answer.ts';

/** Deadlines of greeting and login; while an email is sent, `handOver` has others. */
const login_ms = 30_000;
const silence_ms = 600_000;

/** Says why a connection could not be had. */
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
  queue: InboxKey,
  context: Pick<WorkerContext, 'store' | 'services' | 'log'>,
): Promise<SMTPConnection> {
  const { login } = await readStored(queue, context);
  try {
    const proofs = await proveStored(queue, login, context);
    const { services } = context;
    const address = await mailServerAddress('smtp', login.smtp, services);
    const timeouts = { login_ms, silence_ms };
    const connection = await openSmtp(login.smtp, address, proofs.smtp, clientName(services), timeouts);
    // The next email detects a connection that fails while nothing is sent.
    connection.on('error', () => {});
    return connection;
  } catch (error) {
    const is_refused =
      error instanceof LoginRefused ? error.is_certain : error instanceof Problem && error.code === 'oauth_failed';
    const failure = is_refused ? 'auth' : 'unreachable';
    const { code, name, said } = error as { code?: unknown; name?: string; said?: string };
    context.log.warn(
      { inbox_id: queue.inbox_id, failure, code, name, said },
      'logging in to send failed; it is tried again',
    );
    throw new NotConnected(failure, error);
  }
}

/** The outcome of an attempt. */
export type Attempt =
  /** Accepted, with the Message-ID that the server says it gave the email. */
  | { is: 'accepted'; other_id: string | null }
  /** It was not confirmed, and the connection dropped: nothing was sent. */
  | { is: 'held' }
  | { is: 'answered'; answer: Answer }
  /** The connection was lost before the end: nothing was sent. */
  | { is: 'lost' }
  /** The connection was lost after the end: nobody knows. */
  | { is: 'unknown' };

export interface Letter {
  from: string;
  to: string;
  content: Buffer;
}

/** The times that an email may take. */
interface Deadlines {
  /** All that comes before the end. */
  start_ms: number;
  /** RFC 5321, 4.5.3.2.6: "10 minutes" for the answer to the end of the data. */
  end_ms: number;
}
const usual: Deadlines = { start_ms: 120_000, end_ms: 600_000 };
/** The wait for the answer to RSET. */
const reset_ms = 10_000;

/**
 * Sends a letter. The connection is dropped wherever it cannot be used again.
 * @param confirm asked when all but the end has been handed over: true sends the end
 * @param cut_off drops the connection
 * @throws whatever `confirm` throws, with the connection dropped: the end was not sent
 */
export function handOver(
  connection: SMTPConnection,
  { from, to, content }: Letter,
  confirm: () => Promise<boolean>,
  cut_off: AbortSignal,
  { start_ms, end_ms }: Deadlines = usual,
): Promise<Attempt> {
  const { promise, resolve, reject } = Promise.withResolvers<Attempt>();
  let is_ended = false;
  let is_over = false;
  const finish = (how: () => void) => {
    if (is_over) return;
    is_over = true;
    clearTimeout(timer);
    cut_off.removeEventListener('abort', drop);
    how();
  };
  const drop = () => finish(() => end({ is: is_ended ? 'unknown' : 'lost' }));
  const end = (attempt: Attempt) => {
    if (!canGoOn(attempt, is_ended)) connection.close();
    if (leavesSender(attempt)) forgetSender(connection, () => resolve(attempt));
    else resolve(attempt);
  };
  let timer = setTimeout(drop, start_ms);
  cut_off.addEventListener('abort', drop, { once: true });
  const body = new HeldBack(content, async () => {
    const is_confirmed = await confirm().catch((error: unknown) => {
      finish(() => {
        connection.close();
        reject(error);
      });
      return false;
    });
    if (!is_confirmed) finish(() => end({ is: 'held' }));
    if (is_over) return false;
    is_ended = true;
    clearTimeout(timer);
    timer = setTimeout(drop, end_ms);
    return true;
  });
  if (cut_off.aborted) drop();
  else {
    connection.send({ from, to, size: content.length }, body, (error, info) =>
      finish(() => end(error ? attemptOf(error, is_ended) : acceptedBy(connection, info.response))),
    );
  }
  return promise;
}

const acceptedBy = ({ options }: SMTPConnection, answer: string): Attempt => ({
  is: 'accepted',
  other_id: idGivenBy(storable(answer), String(options.tls?.servername ?? '')),
});

/** A refusal leaves the connection usable, unless it came amid the data, the server is about to close, or wants another login. */
const canGoOn = (attempt: Attempt, is_ended: boolean): boolean =>
  attempt.is === 'accepted' ||
  (attempt.is === 'answered' &&
    attempt.answer.code !== 421 &&
    !isAboutLogin(attempt.answer) &&
    (attempt.answer.command !== 'DATA' || is_ended));

/** The server still has the sender of an email whose recipient it refused: to the next one it would answer that commands are out of order. */
const leavesSender = (attempt: Attempt): boolean =>
  attempt.is === 'answered' && attempt.answer.command === 'RCPT' && attempt.answer.code !== 421;

/** Sends RSET; the connection is dropped where the server does not take it. */
function forgetSender(connection: SMTPConnection, done: () => void): void {
  const over = (is_reset: boolean) => {
    clearTimeout(timer);
    connection.off('end', lost);
    if (!is_reset) connection.close();
    done();
  };
  const lost = () => over(false);
  const timer = setTimeout(lost, reset_ms);
  connection.once('end', lost);
  connection.reset((error) => over(!error));
}

function attemptOf(error: Error, is_ended: boolean): Attempt {
  const {
    code,
    responseCode,
    response,
    command = '',
  } = error as { code?: string; responseCode?: number; response?: string; command?: string };
  // It is not offered to a server whose greeting says that it takes none of that size (RFC 1870): 552 is what that would answer.
  if (code === 'EMESSAGE' && !responseCode)
    return { is: 'answered', answer: { code: 552, text: error.message, command: 'MAIL' } };
  if (!responseCode || responseCode < 400) return { is: is_ended ? 'unknown' : 'lost' };
  const [name = 'other'] = /^(MAIL|RCPT|DATA)/.exec(command) ?? [];
  const text = storable(response ?? '');
  return { is: 'answered', answer: { code: responseCode, text, command: name as Answer['command'] } };
}

/** A content whose end waits: the end of the stream is what sends the final dot of SMTP. It is read once the server has answered 354. */
class HeldBack extends Readable {
  #content: Buffer | undefined;
  readonly #confirm: () => Promise<boolean>;

  constructor(content: Buffer, confirm: () => Promise<boolean>) {
    super();
    this.#content = content;
    this.#confirm = confirm;
  }

  override _read(): void {
    if (this.#content) {
      this.push(this.#content);
      this.#content = undefined;
      return;
    }
    void this.#confirm().then((is_confirmed) => {
      if (is_confirmed) this.push(null);
    });
  }
}
