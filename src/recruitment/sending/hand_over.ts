/** One email over an open connection, with a moment before its final dot. */
import { Readable } from 'node:stream';
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { storable } from '../../core/values/texts/stored_text.ts';
import { idGivenBy } from '../composing/message_ids.ts';
import { type Answer, isAboutLogin } from './answer.ts';

/** How an attempt went. */
export type Attempt =
  /** With the Message-ID that the server says it gave the email. */
  | { is: 'accepted'; other_id: string | null }
  /** It was stopped before the final dot, and the connection dropped: nothing was sent. */
  | { is: 'held' }
  | { is: 'answered'; answer: Answer }
  /** The connection was lost before the final dot: nothing was sent. */
  | { is: 'lost' }
  /** The connection was lost after the final dot: nobody knows. */
  | { is: 'unknown' };

export interface Letter {
  from: string;
  to: string;
  content: Buffer;
}

/** How long an email may take. */
interface Deadlines {
  /** All that comes before the final dot. */
  start_ms: number;
  /** RFC 5321, 4.5.3.2.6: "10 minutes" for the answer to the end of the data. */
  end_ms: number;
}
const usual: Deadlines = { start_ms: 120_000, end_ms: 600_000 };
/** Of the answer to RSET. */
const reset_ms = 10_000;

/**
 * Sends a letter. The connection is dropped wherever it cannot be used again.
 * @param mayEnd asked when all but the final dot has been handed over: true sends the dot
 * @param cut_off drops the connection
 * @throws whatever `mayEnd` throws, with the connection dropped: the dot was not sent
 */
export function transmit(
  connection: SMTPConnection,
  { from, to, content }: Letter,
  mayEnd: () => Promise<boolean>,
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
    const may = await mayEnd().catch((error: unknown) => {
      finish(() => {
        connection.close();
        reject(error);
      });
      return false;
    });
    if (!may) finish(() => end({ is: 'held' }));
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

/** RSET; the connection is dropped where the server does not take it. */
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

/** A content whose end waits: the end of the stream is what sends the final dot. It is read once the server has answered 354. */
class HeldBack extends Readable {
  #content: Buffer | undefined;
  readonly #mayEnd: () => Promise<boolean>;

  constructor(content: Buffer, mayEnd: () => Promise<boolean>) {
    super();
    this.#content = content;
    this.#mayEnd = mayEnd;
  }

  override _read(): void {
    if (this.#content) {
      this.push(this.#content);
      this.#content = undefined;
      return;
    }
    void this.#mayEnd().then((may) => {
      if (may) this.push(null);
    });
  }
}
